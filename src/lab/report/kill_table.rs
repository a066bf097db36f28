//! The picture and the page of a kill table (`lookback stress --mutants`).

use super::html::{END, escaped, facts, head};
use super::svg::{Area, INK, ON_LIGHT, PAPER, Refusal, drawing, text};
use crate::kernels::mutant::Kind;
use crate::lab::stress::detector::Cell;
use crate::lab::stress::table::{KillTable, MutantOutcome, Row, heading};
use crate::text::{or_dash, short_count};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::fmt::Write;

// After Okabe and Ito: told apart by lightness too, and every field says in words what it is.
const KILLED: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const SURVIVED: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const EMPTY: RGBColor = RGBColor(0xd0, 0xd0, 0xd4);

const LEFT: i32 = 300;
const COLUMN: i32 = 92;
const ROW: i32 = 21;
const TOP: i32 = 76;

/// A mutant a row, a detector a column, and in the field how long it took to find the fault.
pub(super) fn svg(table: &KillTable) -> Result<String, Refusal> {
    let groups = table.mutants.chunk_by(|left, right| left.kind == right.kind).count() as i32;
    let width = LEFT + COLUMN * table.detectors.len() as i32 + 24;
    let height = TOP + ROW * (table.mutants.len() as i32 + 2 * groups + 4) + 30;
    drawing((width as u32, height as u32), "Which detector kills which mutant", |root| {
        root.fill(&PAPER)?;
        let title = "Which detector kills which mutant, and after how long";
        root.draw(&Text::new(title, (16, 24), text(17, INK, HPos::Left)))?;
        for (column, detector) in (0..).zip(&table.detectors) {
            let middle = LEFT + COLUMN * column + COLUMN / 2;
            root.draw(&Text::new(detector.row().column, (middle, TOP - 18), text(13, INK, HPos::Center)))?;
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
                field(root, column, y, row.detectors.get(detector), |cell| cell.short())?;
            }
            y += ROW;
        }
        y += ROW;
        root.draw(&Text::new("the kernels as they are: runs", (LEFT - 10, y), text(12, INK, HPos::Right)))?;
        for (column, detector) in (0..).zip(&table.detectors) {
            field(root, column, y, table.unmutated.get(detector), |cell| match cell {
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
        Ok(())
    })
}

fn field(
    root: &Area<'_>,
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
    root.draw(&Text::new(or_dash(cell.map(label)), (x + COLUMN / 2, y), text(12, ON_LIGHT, HPos::Center)))?;
    Ok(())
}

/// The page: picture, machines, every field in full.
pub(super) fn html(table: &KillTable, picture: &str) -> String {
    const MORE_STYLE: &str = "body{max-width:1060px}th,td{text-align:left;white-space:normal;vertical-align:top}";
    let mut page = head("Mutants and detectors", MORE_STYLE);
    page.push_str(
        "<p>Every mutant is a fault put into the kernels on purpose; a detector that does not find it would not find \
         the bug that it stands for. Drawn by <code>lookback report DIR</code> from the record alone.</p>\n",
    );
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&table.command));
    let commit = table.git_commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let program = [("program", format!("{}{commit}", table.program)), ("date", table.date.clone())];
    let machine = table.machine.iter().map(|(name, value)| (name.as_str(), value.clone()));
    page.push_str(&facts(program.into_iter().chain(machine)));
    let _ = write!(page, "<figure>\n{}\n</figure>\n", picture.trim_end());
    page.push_str("<h2>In full</h2>\n");
    for row in &table.mutants {
        details(&mut page, table, row);
    }
    page + END
}

fn details(page: &mut String, table: &KillTable, row: &Row) {
    let class = if row.is_right() { "good" } else { "bad" };
    let verdict = match (row.verdict, row.kind) {
        (MutantOutcome::Killed, _) => "killed",
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
