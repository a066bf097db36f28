//! The picture and the page of a kill table (`lookback stress --mutants`).

use super::html::{END, escaped, facts, head, judged, link};
use super::svg::{Area, INK, ON_LIGHT, PAPER, Refusal, drawing, scrolled, text};
use crate::kernels::mutant::Kind;
use crate::lab::stress::detector::Cell;
use crate::lab::stress::detectors::DetectorName;
use crate::lab::stress::table::{KillTable, MutantOutcome, Row, heading, killed_by};
use crate::text::{or_dash, short_count};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::fmt::Write;

// After Okabe and Ito: told apart by lightness too, and every field says in words what it is.
const KILLED: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
const SURVIVED: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
/// What is harmless and was let pass, as it should be.
const LET_PASS: RGBColor = RGBColor(0x7f, 0xc9, 0xb0);
/// What is harmless and was reported.
const FALSE_ALARM: RGBColor = RGBColor(0xe5, 0x73, 0x73);
const EMPTY: RGBColor = RGBColor(0xd0, 0xd0, 0xd4);

const LEFT: i32 = 300;
const COLUMN: i32 = 92;
const ROW: i32 = 21;
const TOP: i32 = 76;
/// What a kind of mutants takes above its first row.
const HEADING: i32 = ROW + ROW / 2 + 4;
/// From one sign below the table to the next.
const SIGN: i32 = 170;

/// The file of a kernel, below the folder of all.
fn kernel(row: &Row) -> String {
    let (file, _) = row.file_and_line();
    file.strip_prefix("cuda/").unwrap_or(file).to_owned()
}

/// A mutant a row, a detector a column, and in the field how long it took to find the fault. Those by rule are a kernel
/// file a row: how many of them.
pub(super) fn svg(table: &KillTable) -> Result<String, Refusal> {
    let by_hand: Vec<&Row> = table.mutants.iter().filter(|row| row.rule.is_none()).collect();
    let by_rule = table.by_rule(|row, _| kernel(row));
    let groups = by_hand.chunk_by(|left, right| left.kind == right.kind).count() + usize::from(!by_rule.is_empty());
    let (groups, rows) = (groups as i32, (by_hand.len() + by_rule.len()) as i32);
    let columns = table.detectors.len() as i32 + i32::from(!by_rule.is_empty());
    let width = (LEFT + COLUMN * columns + 24).max(3 * SIGN + 100);
    let height = TOP + HEADING * groups + ROW * (rows + 5);
    drawing((width as u32, height as u32), "Which detector kills which mutant", |root| {
        root.fill(&PAPER)?;
        let title = format!("{}: by whom, and after how long", table.summary());
        root.draw(&Text::new(title, (16, 24), text(17, INK, HPos::Left)))?;
        let all = (!by_rule.is_empty()).then_some("all together");
        let heads = table.detectors.iter().map(|detector| detector.row().column).chain(all);
        for (column, head) in (0..).zip(heads) {
            let middle = LEFT + COLUMN * column + COLUMN / 2;
            root.draw(&Text::new(head, (middle, TOP - 18), text(13, INK, HPos::Center)))?;
        }
        let mut y = TOP;
        let mut last = None;
        for row in by_hand {
            if last != Some(row.kind) {
                y += HEADING - ROW;
                root.draw(&Text::new(heading(row.kind), (16, y), text(13, INK, HPos::Left)))?;
                y += ROW;
                last = Some(row.kind);
            }
            let mark = if row.is_wrong() { "  (wrong)" } else { "" };
            let label = format!("{}{mark}", row.name);
            root.draw(&Text::new(label, (LEFT - 10, y), text(12, INK, HPos::Right)))?;
            for (column, detector) in (0..).zip(&table.detectors) {
                field(root, column, y, row.detectors.get(detector), row.kind == Kind::Harmless, |cell| match cell {
                    Cell::Survived { .. } if row.kind == Kind::Harmless => "let pass".to_owned(),
                    cell => cell.short(),
                })?;
            }
            y += ROW;
        }
        if !by_rule.is_empty() {
            y += HEADING - ROW;
            root.draw(&Text::new(
                "by rule, a kernel file a row: killed, of how many",
                (16, y),
                text(13, INK, HPos::Left),
            ))?;
            y += ROW;
        }
        for (file, rows) in &by_rule {
            root.draw(&Text::new(file.as_str(), (LEFT - 10, y), text(12, INK, HPos::Right)))?;
            for (column, &detector) in (0..).zip(&table.detectors) {
                share(root, column, y, killed_by(rows, detector), &asked_by(rows, detector))?;
            }
            let harmful: Vec<&Row> = rows.iter().copied().filter(|row| row.kind != Kind::Harmless).collect();
            let killed = harmful.iter().filter(|row| row.verdict == MutantOutcome::Killed).count();
            share(root, table.detectors.len() as i32, y, killed, &harmful)?;
            y += ROW;
        }
        y += ROW;
        root.draw(&Text::new("the kernels as they are: runs", (LEFT - 10, y), text(12, INK, HPos::Right)))?;
        for (column, detector) in (0..).zip(&table.detectors) {
            field(root, column, y, table.unmutated.get(detector), true, |cell| match cell {
                Cell::Survived { runs, .. } => short_count(*runs),
                Cell::Killed { .. } => "reported".to_owned(),
                other => other.short(),
            })?;
        }
        y += 2 * ROW;
        // Two lines of signs, so that they fit however few detectors there are.
        for (place, (color, what)) in (0..).zip([
            (KILLED, "killed, after this time"),
            (SURVIVED, "survived"),
            (EMPTY, "· not in the detector's model, – not run"),
            (LET_PASS, "harmless, let pass"),
            (FALSE_ALARM, "harmless, reported"),
        ]) {
            let (x, y) = (16 + SIGN * (place % 3), y + ROW * (place / 3));
            root.draw(&Rectangle::new([(x, y - 7), (x + 14, y + 7)], color.filled()))?;
            root.draw(&Text::new(what, (x + 20, y), text(12, INK, HPos::Left)))?;
        }
        Ok(())
    })
}

/// Those of the rows that a detector looked at and that are faults.
fn asked_by<'a>(rows: &[&'a Row], detector: DetectorName) -> Vec<&'a Row> {
    let is_asked =
        |row: &&Row| matches!(row.detectors.get(&detector), Some(Cell::Killed { .. } | Cell::Survived { .. }));
    rows.iter().copied().filter(|row| row.kind != Kind::Harmless).filter(is_asked).collect()
}

/// How many of some rows were killed; the column behind the last detector's is that of all together.
fn share(root: &Area<'_>, column: i32, y: i32, killed: usize, of: &[&Row]) -> Result<(), Refusal> {
    let color = match (killed, of.len()) {
        (_, 0) => EMPTY,
        (killed, all) if killed == all => KILLED,
        _ => SURVIVED,
    };
    let label = if of.is_empty() { "·".to_owned() } else { format!("{killed} of {}", of.len()) };
    let x = LEFT + COLUMN * column;
    root.draw(&Rectangle::new([(x + 1, y - ROW / 2 + 1), (x + COLUMN - 1, y + ROW / 2)], color.filled()))?;
    root.draw(&Text::new(label, (x + COLUMN / 2, y), text(12, ON_LIGHT, HPos::Center)))?;
    Ok(())
}

fn field(
    root: &Area<'_>,
    column: i32,
    y: i32,
    cell: Option<&Cell>,
    is_harmless: bool,
    label: impl Fn(&Cell) -> String,
) -> Result<(), Refusal> {
    let color = match (cell, is_harmless) {
        (Some(Cell::Killed { .. }), false) => KILLED,
        (Some(Cell::Survived { .. }), false) => SURVIVED,
        (Some(Cell::Killed { .. }), true) => FALSE_ALARM,
        (Some(Cell::Survived { .. }), true) => LET_PASS,
        _ => EMPTY,
    };
    let x = LEFT + COLUMN * column;
    root.draw(&Rectangle::new([(x + 1, y - ROW / 2 + 1), (x + COLUMN - 1, y + ROW / 2)], color.filled()))?;
    root.draw(&Text::new(or_dash(cell.map(label)), (x + COLUMN / 2, y), text(12, ON_LIGHT, HPos::Center)))?;
    Ok(())
}

/// The page: picture, machines, every field in full.
pub(super) fn html(table: &KillTable, stem: &str, picture: &str) -> String {
    const MORE_STYLE: &str = "body{max-width:1060px}table{overflow-wrap:anywhere}th,td{text-align:left;white-space:normal;vertical-align:top}";
    let mut page = head("Mutants and detectors", MORE_STYLE);
    let data = format!("{stem}.json");
    let _ = writeln!(page, "<p>{}. Data: {}.</p>", judged(table.is_right(), &table.summary()), link(&data, &data));
    page.push_str(
        "<p>Every mutant is a fault put into the kernels on purpose; a detector that does not find it would not find \
         the bug that it stands for. Drawn by <code>lookback report DIR</code> from the record alone.</p>\n",
    );
    let _ = write!(page, "<figure>\n{}\n</figure>\n", scrolled(picture));
    let _ = writeln!(page, "<h2>How this came about</h2>\n<pre>{}</pre>", escaped(&table.command));
    let commit = table.git_commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let program = [("program", format!("{}{commit}", table.program)), ("date", table.date.clone())];
    let machine = table.machine.iter().map(|(name, value)| (name.as_str(), value.clone()));
    page.push_str(&facts(program.into_iter().chain(machine)));
    let by_kernel = table.by_rule(|row, _| kernel(row));
    if !by_kernel.is_empty() {
        page.push_str("<h2>Beside each synchronisation, vote and loop, who finds that it is broken</h2>\n");
    }
    for (file, rows) in &by_kernel {
        let _ = writeln!(page, "<h3><code>cuda/{}</code></h3>", escaped(file));
        for row in rows {
            details(&mut page, table, row);
        }
    }
    page.push_str("<h2>Faults by hand</h2>\n");
    for row in table.mutants.iter().filter(|row| row.rule.is_none()) {
        details(&mut page, table, row);
    }
    page + END
}

/// One fault, to be unfolded.
fn details(page: &mut String, table: &KillTable, row: &Row) {
    let class = if row.is_wrong() { "bad" } else { "good" };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::stress::detectors::DetectorName;
    use std::collections::BTreeMap;

    fn row(name: &str, kind: Kind, cell: Cell) -> Row {
        let mut row = Row {
            name: name.to_owned(),
            kind,
            text: String::new(),
            rule: None,
            place: String::new(),
            verdict: MutantOutcome::Survived,
            detectors: BTreeMap::new(),
        };
        row.set(DetectorName::ALL[0], cell);
        row
    }

    /// How many fields a picture of these has in each colour, those of the key not counted.
    fn fields(unmutated: Cell, mutants: Vec<Row>) -> [usize; 4] {
        let table = KillTable {
            program: String::new(),
            git_commit: None,
            date: String::new(),
            command: String::new(),
            machine: BTreeMap::new(),
            detectors: vec![DetectorName::ALL[0]],
            unmutated: BTreeMap::from([(DetectorName::ALL[0], unmutated)]),
            mutants,
        };
        let picture = svg(&table).unwrap();
        let count = |color: RGBColor| {
            let fill = format!("fill=\"#{:02X}{:02X}{:02X}\"", color.0, color.1, color.2);
            picture.matches(&fill).count() - 1
        };
        [KILLED, SURVIVED, LET_PASS, FALSE_ALARM].map(count)
    }

    #[test]
    fn what_should_survive_and_does_is_not_coloured_as_a_miss() {
        let survived = || Cell::Survived { runs: 10, seconds: 1.0 };
        let how = || "a wrong result".to_owned();
        let killed = || Cell::Killed { seed: None, runs: 1, seconds: 1.0, how: how(), reproduce: None };
        let fault = *Kind::ALL.iter().find(|&&kind| kind != Kind::Harmless).unwrap();
        let right = vec![row("fault", fault, killed()), row("variant", Kind::Harmless, survived())];
        assert_eq!(fields(survived(), right), [1, 0, 2, 0]);
        let wrong = vec![row("fault", fault, survived()), row("variant", Kind::Harmless, killed())];
        assert_eq!(fields(killed(), wrong), [0, 1, 0, 2]);
    }
}
