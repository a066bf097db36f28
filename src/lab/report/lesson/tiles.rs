//! Tiles of several strategies on one seed: a picture of all steps, and the state of each tile at some of them.

use crate::lab::report::axis::Axis;
use crate::lab::report::chart::{begin_pen, text_at};
use crate::lab::report::error::ReportError;
use crate::lab::report::html::{cell, escaped, folded, table};
use crate::lab::report::pen::Pen;
use crate::lab::report::svg::{Drawing, GRID, INK, Plot, Refusal, drawing_with, text, title_of};
use crate::lab::trace::{Event, Recording, Step};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::fmt::Write;

/// What a tile has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody has it.
    Nobody,
    /// Its elements are on their way or being reduced, or it waits for others and has published nothing.
    Loading,
    /// Its aggregate is published.
    Published,
    /// It waits for this one's publication.
    WaitsFor(u64),
    /// What stands left of it is known.
    Known,
    /// All of it is stored.
    Stored,
}

impl State {
    /// The sign in a cell, its class, and what it means.
    fn sign(self) -> (String, &'static str, String) {
        let (sign, class, words) = match self {
            Self::Nobody => ("·", "nobody", "nobody has it"),
            Self::Loading => ("L", "loading", "load, reduce, or wait with nothing published"),
            Self::Published => ("A", "published", "aggregate published"),
            Self::WaitsFor(tile) => return (format!("→{tile}"), "waits", format!("waits for tile {tile}")),
            Self::Known => ("P", "known", "prefix known"),
            Self::Stored => ("S", "stored", "stored"),
        };
        (sign.to_owned(), class, words.to_owned())
    }
}

/// Colours of the states. They are seen by their signs, too.
pub(super) const STYLE: &str = "\
.tiles td,.tiles th{text-align:center;padding:.15rem .25rem;min-width:1.5rem}.tiles th:first-child{text-align:left;font-weight:400}
.nobody,.loading{color:var(--muted)}.published{color:var(--link)}.waits{color:var(--bad);font-weight:600}.known,.stored{color:var(--good)}.stored{font-weight:600}
.steps label{display:block}.steps input{width:100%}.steps:not(.live) .slider{display:none}.steps.live details{display:none}
";

/// When a tile came to what others see of it.
struct Life {
    begin: Option<u64>,
    reduced: Option<u64>,
    published: Option<u64>,
    known: Option<u64>,
    stored: Option<u64>,
}

impl Life {
    fn of(recording: &Recording, tile: u64) -> Self {
        let times = |is_meant: fn(&Event) -> bool| {
            let of_tile = recording.events.iter().filter(move |event| event.tile == tile && is_meant(event));
            of_tile.map(|event| event.time)
        };
        Self {
            begin: times(|_| true).min(),
            // By the last of its warps.
            reduced: times(|event| event.step == Step::Reduced).max(),
            published: times(|event| matches!(event.step, Step::Aggregate | Step::Published)).min(),
            known: times(|event| matches!(event.step, Step::Prefix)).min(),
            stored: times(|event| event.step == Step::Stored).max(),
        }
    }

    fn at(&self, recording: &Recording, tile: u64, now: u64) -> State {
        let by = |time: Option<u64>| time.is_some_and(|time| time <= now);
        if by(self.stored) {
            State::Stored
        } else if by(self.known) {
            State::Known
        } else if let Some(missing) = waits_for(recording, tile, now) {
            State::WaitsFor(missing)
        } else if by(self.published) {
            State::Published
        } else if by(self.begin) {
            State::Loading
        } else {
            State::Nobody
        }
    }
}

/// For whose publication a tile waits now.
fn waits_for(recording: &Recording, tile: u64, now: u64) -> Option<u64> {
    let rounds = recording.events.iter().filter(|event| event.tile == tile);
    let found = rounds.clone().filter(|event| event.step == Step::Found && event.time > now);
    let found = found.min_by_key(|event| event.time)?;
    let has_begun = |event: &Event| event.step == Step::Read && event.round == found.round && event.time <= now;
    rounds.clone().any(has_begun).then_some(found.missing_tile).flatten()
}

fn end(recordings: &[Recording]) -> u64 {
    recordings.iter().flat_map(|recording| &recording.events).map(|event| event.time).max().unwrap_or(0)
}

/// Tiles that published an aggregate before they knew their prefix.
fn early(recording: &Recording) -> usize {
    let is_early =
        |life: &Life| matches!((life.published, life.known), (Some(published), Some(known)) if published < known);
    (0..recording.tiles).filter(|&tile| is_early(&Life::of(recording, tile))).count()
}

const LEFT: i32 = 60;
const WIDTH: i32 = 900;
const ROW: i32 = 11;

/// All tiles over all steps, a strategy below the other.
pub(super) fn picture(recordings: &[Recording]) -> Result<Plot, ReportError> {
    let early = recordings.iter().map(|recording| format!("{} {}", recording.subject.strategy, early(recording)));
    let early = early.collect::<Vec<_>>().join(", ");
    let tiles = recordings.iter().map(|recording| recording.tiles).max().unwrap_or(0);
    let title = format!("Of {tiles} tiles, those that others could go on from while they waited: {early}");
    let duration = end(recordings);
    let x = |time: u64| LEFT + ((WIDTH - LEFT - 16) as u64 * time / duration.max(1)) as i32;
    let heights: Vec<i32> = recordings.iter().map(|recording| 40 + ROW * recording.tiles as i32).collect();
    let height = 66 + heights.iter().sum::<i32>() + 30;
    let kinds = [("load, reduce", 7), ("wait", 6), ("wait, aggregate published", 4), ("prefix known", 2)];
    let draw = || -> Result<Drawing, Refusal> {
        let svg = drawing_with((WIDTH as u32, height as u32), &title, |root| {
            title_of(root, &title)?;
            for (tick, label) in Axis::from_zero([duration as f64].into_iter()).labelled_ticks() {
                let place = x(tick as u64);
                root.draw(&PathElement::new(vec![(place, 64), (place, height - 34)], GRID.stroke_width(1)))?;
                root.draw(&Text::new(format!("step {label}"), (place, height - 20), text(12, INK, HPos::Center)))?;
            }
            let mut elements = String::new();
            let mut left = 16;
            for (name, index) in kinds {
                begin_pen(&mut elements, Pen::of_index(index));
                let _ = writeln!(elements, "<rect x=\"{left}\" y=\"40\" width=\"12\" height=\"12\"/></g>");
                text_at(&mut elements, (left + 16, 46), 12, name);
                left += 40 + 7 * name.len() as u32;
            }
            let mut top = 66;
            for (recording, height) in recordings.iter().zip(&heights) {
                text_at(&mut elements, (16, (top + 10) as u32), 13, recording.subject.strategy.name());
                for tile in 0..recording.tiles {
                    let Life { begin, reduced, published, known, stored } = Life::of(recording, tile);
                    let told = published.or(known);
                    // Warps of a ring reduce once more when others have published.
                    let reduced = reduced.min(told);
                    let times = [begin, reduced, told, known, stored];
                    let y = top + 22 + ROW * tile as i32;
                    for (part, (name, index)) in kinds.iter().enumerate() {
                        let (Some(from), Some(to)) = (times[part], times[part + 1]) else { continue };
                        begin_pen(&mut elements, Pen::of_index(*index));
                        let (from, to) = (x(from), x(to));
                        let _ = writeln!(
                            elements,
                            "<rect x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"{}\"><title>tile {tile}: {name}</title></rect></g>",
                            (to - from).max(1),
                            ROW - 2
                        );
                    }
                }
                top += height;
            }
            Ok(elements)
        })?;
        Ok(Drawing { wide: svg, narrow: None })
    };
    let caption =
        "A bar for each tile, the first one on top; it ends with the last store. Steps are those of the scheduler.";
    Plot::drawn("tiles".to_owned(), title.clone(), caption.to_owned(), draw)
}

/// Steps that are shown one by one.
const FRAMES: u64 = 16;

/// The state of each tile at some steps: folded, and where a page runs scripts, by a slider.
pub(super) fn frames(recordings: &[Recording]) -> String {
    let duration = end(recordings);
    let times: Vec<u64> = (1..=FRAMES).map(|frame| duration * frame / FRAMES).collect();
    let lives: Vec<Vec<Life>> = recordings
        .iter()
        .map(|recording| (0..recording.tiles).map(|tile| Life::of(recording, tile)).collect())
        .collect();
    let tiles = recordings.iter().map(|recording| recording.tiles).max().unwrap_or(0);
    let head: String = [String::from("tile")]
        .into_iter()
        .chain((0..tiles).map(|tile| tile.to_string()))
        .map(|text| cell("th", "", &text))
        .collect();
    let frame = |&now: &u64| {
        let rows = recordings.iter().zip(&lives).map(|(recording, lives)| {
            let states = lives.iter().zip(0..).map(|(life, tile)| life.at(recording, tile, now).sign());
            let cells = states.map(|(sign, class, _)| cell("td", &format!(" class=\"{class}\""), &sign));
            cell("th", "", recording.subject.strategy.name()) + &cells.collect::<String>()
        });
        table(" class=\"tiles\"", &head, rows)
    };
    let mut page = String::from("<div class=\"steps\">\n");
    let _ = writeln!(
        page,
        "<div class=\"slider\"><label>step <output></output> of {duration}\n\
         <input type=\"range\" min=\"0\" max=\"{}\" value=\"0\"></label><div></div></div>",
        times.len() - 1
    );
    for now in &times {
        page.push_str(&folded(&format!("step {now}"), &frame(now)));
    }
    page.push_str("</div>\n");
    let all = [State::Nobody, State::Loading, State::Published, State::WaitsFor(3), State::Known, State::Stored];
    let legend = all.map(|state| {
        let (sign, class, words) = state.sign();
        format!("<span class=\"{class}\">{}</span> {words}", escaped(&sign))
    });
    let _ = writeln!(page, "<p class=\"note\">{}</p>", legend.join(" · "));
    page
}

/// What makes the slider of [`frames`] go: without it each step unfolds by itself.
pub(super) const SCRIPT: &str = "\
<script>
for (const steps of document.querySelectorAll('.steps')) {
  const frames = [...steps.querySelectorAll('details')], input = steps.querySelector('input');
  const show = () => {
    const frame = frames[input.value];
    steps.querySelector('output').textContent = frame.querySelector('summary').textContent.replace('step ', '');
    steps.querySelector('.slider > div').replaceChildren(frame.querySelector('.scroll').cloneNode(true));
  };
  input.addEventListener('input', show);
  steps.classList.add('live');
  show();
}
</script>
";
