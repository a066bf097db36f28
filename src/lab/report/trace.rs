//! Pictures and page of recorded scans (`lookback trace`).

use super::axis::Axis;
use super::chart::{Chart, Point, Series, Standing, begin_pen, text_at};
use super::error::ReportError;
use super::html::{END, cell, escaped, facts, folded, head, link, table};
use super::pen::Pen;
use super::svg::{Drawing, GRID, INK, Plot, Refusal, drawing_with, text, title_of};
use super::{write_if_changed, write_plots};
use crate::file::{self, RECORD_BYTES};
use crate::lab::record::PAGE;
use crate::lab::recorder::{compressed, write_atomically};
use crate::lab::trace::perfetto::encode;
use crate::lab::trace::record::{RecordedScan, TRACES, TraceRecord};
use crate::lab::trace::story::{Front, Slice, Story, Track};
use crate::lab::trace::{Clock, Phase};
use crate::text::significant;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How the pictures' names begin.
const KINDS: [&str; 3] = ["wave-", "tiles-", "rounds-"];

/// A recorded scan, told.
struct Told<'a> {
    scan: &'a RecordedScan,
    story: Story,
}

impl Told<'_> {
    /// Its trace, beside the page.
    fn trace(&self) -> String {
        format!("{}.perfetto-trace.gz", self.scan.name)
    }
}

/// Renders pictures, traces and page of recorded scans into a folder and returns the page's path.
///
/// # Errors
/// When a picture cannot be drawn or the folder cannot be written.
pub fn write_traces(record: &TraceRecord, directory: &Path) -> Result<PathBuf, ReportError> {
    let told = |scan| Told { scan, story: Story::new(&scan.recording) };
    let told: Vec<Told<'_>> = record.scans.iter().map(told).collect();
    // Side by side, scans have one scale.
    let duration = told.iter().map(|told| told.story.duration).max().unwrap_or(0);
    let plots: Vec<Vec<Plot>> = told.iter().map(|told| plots(told, duration)).collect::<Result<_, _>>()?;
    let all: Vec<Plot> = plots.iter().flatten().cloned().collect();
    write_plots(&all, directory, &KINDS.map(str::to_owned), &[])?;
    for told in &told {
        let path = directory.join(told.trace());
        let bytes = compressed(&encode(&told.scan.recording, &told.story), &path)?;
        if file::read(&path, RECORD_BYTES).ok().as_ref() != Some(&bytes) {
            write_atomically(&path, &bytes)?;
        }
    }
    let page = directory.join(PAGE);
    write_if_changed(&page, &html(record, &told, &plots))?;
    Ok(page)
}

fn plots(told: &Told<'_>, duration: u64) -> Result<Vec<Plot>, ReportError> {
    let mut plots = vec![wave(told, duration)?, tiles(told, duration)?];
    if !told.story.rounds.is_empty() {
        plots.push(rounds(told)?);
    }
    Ok(plots)
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Tiles that a picture shows one by one; of more, so many, evenly.
const MOST_TILES: usize = 96;

/// When each tile came to what others wait for.
fn wave(told: &Told<'_>, duration: u64) -> Result<Plot, ReportError> {
    let Told { scan: RecordedScan { name, recording, .. }, story } = told;
    let (unit, scale) = recording.clock.unit();
    let fronts: Vec<&Front> = story.fronts.iter().collect();
    let step = fronts.len().div_ceil(MOST_TILES).max(1);
    let series = |label: &str, index: usize, when: fn(&Front) -> Option<u64>| {
        let points = fronts.iter().step_by(step).filter_map(|front| {
            let (x, y) = (when(front)? as f64 / scale, front.tile as f64);
            Some(Point {
                x,
                y,
                lower: y,
                upper: y,
                standing: Standing::OnLine,
                is_trusted: true,
                what: "tile".to_owned(),
            })
        });
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|left, right| left.x.total_cmp(&right.x));
        Series { label: label.to_owned(), pen: Pen::of_index(index), points }
    };
    let series = [
        series("landed", 7, |front| front.landed),
        series("published", 4, |front| front.published),
        series("prefix known", 0, |front| front.prefix),
        series("last store", 1, |front| front.stored),
    ];
    let series: Vec<Series> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let between = |from: fn(&Front) -> Option<u64>, to: fn(&Front) -> Option<u64>| {
        median(fronts.iter().filter_map(|front| Some(to(front)?.saturating_sub(from(front)?))).collect())
    };
    let time = |time: Option<u64>| {
        time.map_or("–".to_owned(), |time| format!("{} {unit}", significant(time as f64 / scale, 8)))
    };
    let title = format!(
        "{name}: half of all prefixes are known within {} of the tile's landing, and stored within {} more",
        time(between(|front| front.landed, |front| front.prefix)),
        time(between(|front| front.prefix, |front| front.stored)),
    );
    let places = series.iter().flat_map(|series| &series.points);
    let y = Axis::from_zero(places.map(|point| point.y));
    let chart = Chart {
        title: title.clone(),
        x_description: match recording.clock {
            Clock::Steps => "steps of the scheduler",
            Clock::Nanoseconds { .. } => "µs from the first step",
        },
        y_description: "tile".to_owned(),
        unit: "",
        x: Axis::from_zero([duration as f64 / scale].into_iter()),
        y,
        series,
        band: "",
        reference: None,
        is_joined: false,
    };
    let shown = if step == 1 { "Every tile".to_owned() } else { format!("One tile of {step}") };
    let caption = format!(
        "{shown}: when its elements were there, when it published, when its prefix was known, when its last store was on its way."
    );
    Plot::drawn(format!("wave-{name}"), title, caption, || chart.drawing())
}

/// Blocks that have rows of their own in a picture; of more, so many, evenly.
const MOST_BLOCKS: usize = 12;
const ROW: i32 = 11;
const LEFT: i32 = 96;
const WIDTH: i32 = 900;

/// What the warps of blocks do over time: of warps that do the same, the first.
fn tiles(told: &Told<'_>, duration: u64) -> Result<Plot, ReportError> {
    let Told { scan: RecordedScan { name, recording, .. }, story } = told;
    let (unit, scale) = recording.clock.unit();
    let mut phases: Vec<BTreeSet<Phase>> = vec![BTreeSet::new(); story.tracks.len()];
    for slice in &story.slices {
        phases[slice.track].insert(slice.phase);
    }
    // Of each block the first warp of each kind.
    let mut blocks: BTreeMap<(u32, u32), BTreeMap<Vec<Phase>, usize>> = BTreeMap::new();
    for (index, Track { multiprocessor, place, .. }) in story.tracks.iter().enumerate() {
        let does: Vec<Phase> = phases[index].iter().copied().collect();
        if !does.is_empty() {
            blocks.entry((*multiprocessor, *place)).or_default().entry(does).or_insert(index);
        }
    }
    let count = blocks.len();
    let step = count.div_ceil(MOST_BLOCKS).max(1);
    let mut rows: Vec<(usize, String)> = Vec::new();
    for ((multiprocessor, place), kinds) in blocks.into_iter().step_by(step) {
        let mut tracks: Vec<usize> = kinds.into_values().collect();
        tracks.sort_unstable();
        for (at, track) in tracks.into_iter().enumerate() {
            let block = match recording.clock {
                Clock::Steps => format!("block {multiprocessor}"),
                Clock::Nanoseconds { .. } => format!("SM {multiprocessor}.{place}"),
            };
            let warp = format!("warp {}", story.tracks[track].warp);
            let label = if at == 0 { format!("{block}, {warp}") } else { warp };
            rows.push((track, label));
        }
    }
    let shares = story.phases();
    let longest = shares.iter().max_by(|left, right| left.share.total_cmp(&right.share));
    let title = longest.map_or_else(
        || format!("{name}: no phase was recorded"),
        |figures| {
            let share = (100.0 * figures.share).round();
            format!("{name}: {share} % of the recorded warps' time is '{}'", figures.phase)
        },
    );
    let top = 66;
    let bottom = top + ROW * rows.len() as i32;
    let x = |time: u64| f64::from(LEFT) + f64::from(WIDTH - LEFT - 16) * time as f64 / duration.max(1) as f64;
    let by_track: BTreeMap<usize, i32> =
        rows.iter().enumerate().map(|(row, (track, _))| (*track, top + ROW * row as i32)).collect();
    let draw = || -> Result<Drawing, Refusal> {
        let svg = drawing_with((WIDTH as u32, (bottom + 40) as u32), &title, |root| {
            title_of(root, &title)?;
            for (row, (_, label)) in rows.iter().enumerate() {
                let y = top + ROW * row as i32 + ROW / 2;
                root.draw(&Text::new(label.clone(), (LEFT - 6, y), text(11, INK, HPos::Right)))?;
            }
            let axis = Axis::from_zero([duration as f64 / scale].into_iter());
            for (tick, label) in axis.labelled_ticks() {
                let place = x((tick * scale) as u64) as i32;
                root.draw(&PathElement::new(vec![(place, top - 2), (place, bottom + 3)], GRID.stroke_width(1)))?;
                root.draw(&Text::new(format!("{label} {unit}"), (place, bottom + 14), text(12, INK, HPos::Center)))?;
            }
            let mut elements = String::new();
            let mut left = 16;
            for figures in &shares {
                begin_pen(&mut elements, phase_pen(figures.phase));
                let _ = writeln!(elements, "<rect x=\"{left}\" y=\"40\" width=\"12\" height=\"12\"/>");
                for slice in story.slices.iter().filter(|slice| slice.phase == figures.phase) {
                    let Some(y) = by_track.get(&slice.track) else { continue };
                    rectangle(&mut elements, slice, *y, x);
                }
                elements.push_str("</g>\n");
                text_at(&mut elements, (left + 16, 46), 11, figures.phase.name());
                left += 30 + 6 * figures.phase.name().len() as u32;
            }
            Ok(elements)
        })?;
        Ok(Drawing { wide: svg, narrow: None })
    };
    let shown =
        if step == 1 { format!("All {count} blocks") } else { format!("One of {step} of {count} places of blocks") };
    let caption = format!("{shown}; of warps that do the same, the first. A blank is a warp that has no tile.");
    Plot::drawn(format!("tiles-{name}"), title.clone(), caption, draw)
}

fn rectangle(svg: &mut String, slice: &Slice, y: i32, x: impl Fn(u64) -> f64) {
    let (left, right) = (x(slice.start), x(slice.end));
    let width = (right - left).max(0.4);
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\"><title>tile {}: {}</title></rect>",
        y + 1,
        ROW - 2,
        slice.tile,
        slice.phase
    );
}

/// The colour of a phase in every picture.
fn phase_pen(phase: Phase) -> Pen {
    let index = match phase {
        Phase::Load | Phase::Request => 7,
        Phase::Reduce => 5,
        Phase::Publish => 4,
        Phase::PublishPrefix => 0,
        Phase::Read => 1,
        Phase::Combine => 3,
        Phase::Wait => 6,
        Phase::Store => 2,
    };
    Pen::of_index(index)
}

/// How far, how often and how long tiles look: three histograms.
fn rounds(told: &Told<'_>) -> Result<Plot, ReportError> {
    let Told { scan: RecordedScan { name, recording, .. }, story } = told;
    let (unit, scale) = recording.clock.unit();
    let mut by_tile: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for round in &story.rounds {
        let (count, descriptors) = by_tile.entry(round.tile).or_default();
        *count += 1;
        *descriptors += u64::from(round.descriptors);
    }
    let waits: Vec<f64> = story
        .rounds
        .iter()
        .filter(|round| round.missing_tile.is_some())
        .map(|round| round.took as f64 / scale)
        .collect();
    let waited = 100 * waits.len() / story.rounds.len().max(1);
    let panels = [
        ("rounds of a tile", by_tile.values().map(|&(count, _)| count as f64).collect::<Vec<f64>>(), String::new()),
        ("descriptors that a tile read", by_tile.values().map(|&(_, all)| all as f64).collect(), String::new()),
        ("a wait for a publication", waits, unit.to_owned()),
    ];
    let title = format!("{name}: {waited} % of the rounds of reading descriptors had to wait");
    let draw = || -> Result<Drawing, Refusal> {
        let svg = drawing_with((WIDTH as u32, 250), &title, |root| {
            title_of(root, &title)?;
            let mut elements = String::new();
            for (index, (heading, values, unit)) in panels.iter().enumerate() {
                let left = 24 + 290 * index as i32;
                root.draw(&Text::new(*heading, (left, 54), text(13, INK, HPos::Left)))?;
                let bars = histogram(values);
                let most = bars.iter().map(|&(_, count)| count).max().unwrap_or(0).max(1);
                begin_pen(&mut elements, Pen::of_index(0));
                let width = (260 / bars.len().max(1) as i32).clamp(4, 40);
                for (place, &(_, count)) in bars.iter().enumerate() {
                    let height = (110.0 * count as f64 / most as f64).ceil();
                    let _ = writeln!(
                        elements,
                        "<rect x=\"{}\" y=\"{:.0}\" width=\"{}\" height=\"{height:.0}\"/>",
                        left + width * place as i32,
                        200.0 - height,
                        width - 2
                    );
                }
                elements.push_str("</g>\n");
                for (place, (label, count)) in bars.iter().enumerate() {
                    let middle = left + width * place as i32 + width / 2;
                    let height = (110.0 * *count as f64 / most as f64).ceil() as i32;
                    if width >= 24 || place % 3 == 0 {
                        root.draw(&Text::new(label.clone(), (middle, 210), text(11, INK, HPos::Center)))?;
                    }
                    if width >= 24 && *count > 0 {
                        root.draw(&Text::new(count.to_string(), (middle, 192 - height), text(11, INK, HPos::Center)))?;
                    }
                }
                let below = match (values.is_empty(), unit.is_empty()) {
                    (true, _) => "none".to_owned(),
                    (false, true) => "from a label up to the next".to_owned(),
                    (false, false) => format!("{unit}, from a label up to the next"),
                };
                root.draw(&Text::new(below, (left, 230), text(12, INK, HPos::Left)))?;
            }
            Ok(elements)
        })?;
        Ok(Drawing { wide: svg, narrow: None })
    };
    let caption = "How many tiles, and how many waits. A round reads a window of descriptors and ends when all are there that it needs.";
    Plot::drawn(format!("rounds-{name}"), title.clone(), caption.to_owned(), draw)
}

/// How many values lie from each power of two up to the next; what is below the first counts with it.
fn histogram(values: &[f64]) -> Vec<(String, usize)> {
    let exponents: Vec<i32> =
        values.iter().map(|&value| if value > 0.0 { value.log2().floor().max(-6.0) as i32 } else { -6 }).collect();
    let (Some(&low), Some(&high)) = (exponents.iter().min(), exponents.iter().max()) else { return Vec::new() };
    let label =
        |exponent: i32| if exponent < 0 { format!("1/{}", 1u64 << -exponent) } else { (1u64 << exponent).to_string() };
    (low..=high)
        .map(|exponent| (label(exponent), exponents.iter().filter(|&&other| other == exponent).count()))
        .collect()
}

fn html(record: &TraceRecord, told: &[Told<'_>], plots: &[Vec<Plot>]) -> String {
    let TraceRecord { header, .. } = record;
    let mut page = head(&format!("Inside scans on {}", escaped(&header.device.name)), "");
    let sections: Vec<String> =
        told.iter().map(|told| link(&format!("#{}", told.scan.name), &told.scan.name)).collect();
    let _ = writeln!(page, "<p>Which publication let which tile go on: {}.</p>", sections.join(" · "));
    for (told, plots) in told.iter().zip(plots) {
        let RecordedScan { name, summary, .. } = told.scan;
        let name = escaped(name);
        let _ = write!(page, "<h2 id=\"{name}\">{name}</h2>\n<pre>{}</pre>\n", escaped(summary));
        let trace = told.trace();
        let _ = writeln!(
            page,
            "<p>Warp by warp, with arrows: {}, which <a href=\"https://ui.perfetto.dev\">ui.perfetto.dev</a> opens.</p>",
            link(&trace, &trace)
        );
        for plot in plots {
            page.push_str(&plot.figure(&link(&plot.file_name(), &plot.file_name())));
        }
        page.push_str(&path(told));
    }
    let _ = write!(page, "<h2>How this came about</h2>\n<pre>{}</pre>\n", escaped(&header.command));
    let commit = header.git_commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let run = [
        ("device", format!("{} ({})", header.device.name, header.device.kind)),
        ("date", header.date.clone()),
        ("program", format!("lookback {}{commit}", header.tool_version)),
    ];
    let device = header.device.facts.iter().map(|(name, value)| (name.as_str(), value.clone()));
    page.push_str(&facts(run.into_iter().chain(device)));
    let _ = writeln!(page, "<p class=\"note\">Drawn from {}.</p>", link(TRACES, TRACES));
    page + END
}

/// The critical path, tile by tile; of some tiles alone there is none.
fn path(told: &Told<'_>) -> String {
    let Told { scan: RecordedScan { recording, .. }, story } = told;
    if (story.fronts.len() as u64) < recording.tiles {
        let (kept, all) = (story.fronts.len(), recording.tiles);
        return format!(
            "<p class=\"note\">Pictures and trace are of {kept} of the {all} tiles, the summary is of all.</p>\n"
        );
    }
    let (unit, scale) = recording.clock.unit();
    let head = ["tile", "warp", "step", unit, "since"].map(|text| cell("th", "", text)).concat();
    let mut at = 0;
    let rows = story.critical_path.iter().map(move |link| {
        at += link.took;
        let event = &link.event;
        let number = |time: u64| significant(time as f64 / scale, 9);
        let cells = [
            event.tile.to_string(),
            event.warp.to_string(),
            event.step.to_string(),
            number(at),
            format!("{} ({})", number(link.took), link.during),
        ];
        cells.map(|text| cell("td", "", &text)).concat()
    });
    let table = table("", &head, rows);
    let (steps, tiles) = (story.critical_path.len(), story.critical_tiles().len());
    folded(&format!("The critical path, {steps} steps through {tiles} tiles"), &table)
}
