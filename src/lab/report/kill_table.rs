//! The picture and the page of a kill table (`lookback stress --mutants`).

use super::ReportError;
use super::chart::Refusal;
use super::look::{INK, PAPER, finish_svg};
use super::page::{STYLE, escaped};
use crate::kernels::mutant::Kind;
use crate::lab::stress::table::{Cell, KillTable, Row, heading};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

// After Okabe and Ito: told apart by lightness too, and every field says in words what it is.
const KILLED: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const SURVIVED: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const EMPTY: RGBColor = RGBColor(0xd0, 0xd0, 0xd4);
// Apart from `INK`, because a field keeps its colour on a dark page.
const ON_FIELD: RGBColor = RGBColor(0x10, 0x10, 0x10);

const LEFT: i32 = 300;
const COLUMN: i32 = 92;
const ROW: i32 = 21;
const TOP: i32 = 76;

/// A mutant a row, a detector a column, and in the field how long it took to find the fault.
pub(super) fn svg(table: &KillTable, name: &str) -> Result<String, ReportError> {
    draw(table).map_err(|refusal| ReportError::Drawing { plot: name.to_owned(), reason: refusal.to_string() })
}

fn draw(table: &KillTable) -> Result<String, Refusal> {
    let groups = table.mutants.chunk_by(|left, right| left.kind == right.kind).count() as i32;
    let width = LEFT + COLUMN * table.detectors.len() as i32 + 24;
    let height = TOP + ROW * (table.mutants.len() as i32 + 2 * groups + 4) + 30;
    let text = |size: i32, color: RGBColor, horizontal: HPos| {
        ("sans-serif", size).into_font().color(&color).pos(Pos::new(horizontal, VPos::Center))
    };
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width as u32, height as u32)).into_drawing_area();
        root.fill(&PAPER)?;
        let title = "Which detector kills which mutant, and after how long";
        root.draw(&Text::new(title, (16, 24), text(17, INK, HPos::Left)))?;
        for (column, detector) in (0..).zip(&table.detectors) {
            let middle = LEFT + COLUMN * column + COLUMN / 2;
            root.draw(&Text::new(detector.short_name(), (middle, TOP - 18), text(13, INK, HPos::Center)))?;
        }
        let mut y = TOP;
        let mut last = None;
        for row in &table.mutants {
            if last != Some(row.kind) {
                y += ROW / 2 + 4;
                root.draw(&Text::new(heading(row.kind), (16, y), text(13, INK, HPos::Left)))?;
                y += ROW;
                last = Some(row.kind);
            }
            let mark = if row.is_right() { "" } else { "  (wrong)" };
            let label = format!("{}{mark}", row.name);
            root.draw(&Text::new(label, (LEFT - 10, y), text(12, INK, HPos::Right)))?;
            for (column, detector) in (0..).zip(&table.detectors) {
                field(&root, column, y, row.detectors.get(detector), |cell| cell.short())?;
            }
            y += ROW;
        }
        y += ROW;
        root.draw(&Text::new("the kernels as they are: runs", (LEFT - 10, y), text(12, INK, HPos::Right)))?;
        for (column, detector) in (0..).zip(&table.detectors) {
            field(&root, column, y, table.unmutated.get(detector), |cell| match cell {
                Cell::Survived { runs, .. } => short_count(*runs),
                Cell::Killed { .. } => "reported".to_owned(),
                other => other.short(),
            })?;
        }
        y += 2 * ROW;
        let mut x = 16;
        for (color, what, wide) in [
            (KILLED, "killed, after this time", 180),
            (SURVIVED, "survived", 100),
            (EMPTY, "· not in the detector's model, – not run", 300),
        ] {
            root.draw(&Rectangle::new([(x, y - 7), (x + 14, y + 7)], color.filled()))?;
            root.draw(&Text::new(what, (x + 20, y), text(12, INK, HPos::Left)))?;
            x += wide;
        }
        root.present()?;
    }
    Ok(finish_svg(&svg, "Which detector kills which mutant"))
}

fn field(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    column: i32,
    y: i32,
    cell: Option<&Cell>,
    label: impl Fn(&Cell) -> String,
) -> Result<(), Refusal> {
    let color = match cell {
        Some(Cell::Killed { .. }) => KILLED,
        Some(Cell::Survived { .. }) => SURVIVED,
        _ => EMPTY,
    };
    let x = LEFT + COLUMN * column;
    root.draw(&Rectangle::new([(x + 1, y - ROW / 2 + 1), (x + COLUMN - 1, y + ROW / 2)], color.filled()))?;
    let style = ("sans-serif", 12).into_font().color(&ON_FIELD).pos(Pos::new(HPos::Center, VPos::Center));
    let text = cell.map_or("–".to_owned(), label);
    root.draw(&Text::new(text, (x + COLUMN / 2, y), style))?;
    Ok(())
}

/// 1234567 as "1.2 M".
fn short_count(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{} k", count / 1000),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}

/// The page: picture, machines, every field in full.
pub(super) fn html(table: &KillTable, picture: &str) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Mutants and detectors</title>\n<style>\n{STYLE}body{{max-width:1060px}}\
         th,td{{text-align:left;white-space:normal;vertical-align:top}}</style>\n</head>\n<body>\n\
         <h1>Mutants and detectors</h1>\n\
         <p>Every mutant is a fault put into the kernels on purpose; a detector that does not find it would not find \
         the bug that it stands for. Drawn by <code>lookback report DIR</code> from the record alone.</p>\n"
    );
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&table.command));
    page.push_str("<table class=\"facts\">\n");
    let commit = table.git_commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let facts = [("program".to_owned(), format!("{}{commit}", table.program)), ("date".to_owned(), table.date.clone())];
    for (name, value) in facts.into_iter().chain(table.machine.clone()) {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(&name), escaped(&value));
    }
    let _ = write!(page, "</table>\n<figure>\n{}\n</figure>\n", picture.trim_end());
    page.push_str("<h2>In full</h2>\n");
    for row in &table.mutants {
        details(&mut page, table, row);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn details(page: &mut String, table: &KillTable, row: &Row) {
    let class = if row.is_right() { "good" } else { "bad" };
    let verdict = match (row.verdict, row.kind) {
        (crate::lab::stress::table::Verdict::Killed, _) => "killed",
        (_, Kind::Harmless) => "let pass",
        _ => "survived",
    };
    let _ = write!(
        page,
        "<details><summary><code>{}</code> <span class=\"{class}\">{verdict}</span> {} (<code>{}</code>)</summary>\n<table>\n",
        escaped(&row.name),
        escaped(&row.text),
        escaped(&row.place)
    );
    for detector in &table.detectors {
        let Some(cell) = row.detectors.get(detector) else { continue };
        let text = match cell {
            Cell::Killed { seed, runs, seconds, how, reproduce } => {
                let seed = seed.map(|seed| format!(" at seed {seed}")).unwrap_or_default();
                let again = reproduce.as_deref().map(|line| format!("<br><code>{}</code>", escaped(line)));
                format!("killed{seed} after {runs} runs, {seconds:.3} s: {}{}", escaped(how), again.unwrap_or_default())
            }
            Cell::Survived { runs, seconds } => format!("survived {runs} runs, {seconds:.1} s"),
            Cell::NotModelled { why } => format!("not in its model: {}", escaped(why)),
            Cell::NotRun { why } => format!("not run: {}", escaped(why)),
        };
        let _ = writeln!(page, "<tr><td>{}</td><td>{text}</td></tr>", detector.name());
    }
    page.push_str("</table>\n</details>\n");
}
