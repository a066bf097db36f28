//! Two records of the same sweeps: what became faster, slower, stayed the same, or cannot be told.
//!
//! Each configuration and figure is judged by all its samples ([`Ratio`]), never by two
//! medians. That covers the noise *within* the two runs. What differs *between* runs (another GPU of the same
//! name, another temperature) the samples do not know; the threshold has to cover it, and the copy's rows,
//! which no change to a scan can make faster or slower, show how large it is.

use super::record::{FigureRecord, Status, SweepRecord, SweepRow};
use super::sampling::Figure;
use crate::lab::statistics::{self, Difference, Ratio};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Differences up to this share are of no consequence.
pub const THRESHOLD: f64 = 0.01;

/// One configuration and figure in two records.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The configuration, from [`SweepRow::key`].
    pub key: String,
    /// The figure, or none where a whole row is gone or wrong.
    pub figure: Option<Figure>,
    /// Which is faster.
    pub difference: Difference,
    /// New median by old median, with its interval; `None` without samples on both sides.
    pub ratio: Option<Ratio>,
    /// What the samples alone do not say.
    pub remark: Option<String>,
}

impl Change {
    /// Whether something that was right and fast is so no more.
    pub fn is_regression(&self) -> bool {
        self.difference == Difference::Slower
    }
}

/// All configurations of two records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// In the order of the configurations' names.
    pub changes: Vec<Change>,
    /// What makes the two records hard to compare: another GPU, another driver.
    pub remarks: Vec<String>,
    /// Configurations in the new record alone.
    pub only_new: usize,
}

impl Comparison {
    /// How many figures came out so.
    pub fn count(&self, difference: Difference) -> usize {
        self.changes.iter().filter(|change| change.difference == difference).count()
    }

    /// Whether anything is slower, or right no more.
    pub fn has_regression(&self) -> bool {
        self.changes.iter().any(Change::is_regression)
    }

    /// The table on stdout. Figures that stayed the same are counted, and listed only if `all` are asked for.
    pub fn table(&self, all: bool) -> String {
        let mut text = String::new();
        for remark in &self.remarks {
            let _ = writeln!(text, "note: {remark}");
        }
        if !self.remarks.is_empty() {
            text.push('\n');
        }
        let shown: Vec<&Change> =
            self.changes.iter().filter(|change| all || change.difference != Difference::Same).collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "{:<8} {:<8} {:>22}  configuration", "verdict", "figure", "new / old (99 %)");
        }
        for change in shown {
            let ratio = change
                .ratio
                .map_or("-".to_owned(), |ratio| format!("{:.3} ({:.3} to {:.3})", ratio.ratio, ratio.low, ratio.high));
            let remark = change.remark.as_ref().map_or(String::new(), |remark| format!("  [{remark}]"));
            let figure = change.figure.map_or("-", Figure::name);
            let _ = writeln!(text, "{:<8} {figure:<8} {ratio:>22}  {}{remark}", change.difference.name(), change.key);
        }
        let _ = writeln!(
            text,
            "{} faster, {} slower, {} same, {} unclear; {} configurations are new",
            self.count(Difference::Faster),
            self.count(Difference::Slower),
            self.count(Difference::Same),
            self.count(Difference::Unclear),
            self.only_new
        );
        text
    }
}

/// Compares the configurations of two sets of records; those of the new set alone are counted.
pub fn compare_records(old: &[SweepRecord], new: &[SweepRecord], threshold: f64) -> Comparison {
    let mut comparison = Comparison::default();
    let (old_rows, new_rows) = (rows(old), rows(new));
    let of = |records: &[SweepRecord], fact: fn(&SweepRecord) -> String| {
        let mut facts: Vec<String> = records.iter().map(fact).collect();
        facts.sort();
        facts.dedup();
        facts.join(", ")
    };
    type Fact = fn(&SweepRecord) -> String;
    let facts: [(&str, Fact); 3] = [
        ("GPUs", |record| record.header.machine.gpu_identity()),
        ("drivers", |record| record.header.machine.driver.clone()),
        ("compilers", |record| record.header.machine.compiler.clone()),
    ];
    for (what, fact) in facts {
        let (before, after) = (of(old, fact), of(new, fact));
        if before != after {
            comparison.remarks.push(format!("the {what} differ: {before} before, {after} now"));
        }
    }
    comparison.only_new = new_rows.keys().filter(|key| !old_rows.contains_key(*key)).count();
    for (key, before) in &old_rows {
        let Some(after) = new_rows.get(key) else {
            comparison.changes.push(whole(key, Difference::Unclear, "not in the new record"));
            continue;
        };
        match (before.status, after.status) {
            // Bounds, too: what a kernel takes without its waiting can become slower as well.
            (Status::Measured, Status::Measured) | (Status::NotVerified, Status::NotVerified) => {
                for &figure in Figure::ALL {
                    comparison.changes.extend(compare_figure(key, before, after, figure, threshold));
                }
            }
            (Status::Measured, Status::Wrong) => {
                comparison.changes.push(whole(key, Difference::Slower, "its result is wrong now"));
            }
            (Status::Measured, Status::NotLaunchable) => {
                comparison.changes.push(whole(key, Difference::Slower, "it cannot be launched any more"));
            }
            (_, Status::Measured) => {
                comparison.changes.push(whole(key, Difference::Faster, "it works now and did not before"));
            }
            _ => {}
        }
    }
    comparison
}

/// Rows by sweep and configuration: the same configuration may stand in two sweeps.
fn rows(records: &[SweepRecord]) -> BTreeMap<String, &SweepRow> {
    let mut rows = BTreeMap::new();
    for record in records {
        for row in &record.rows {
            rows.insert(format!("{}: {}", record.header.sweep.name, row.key()), row);
        }
    }
    rows
}

fn whole(key: &str, difference: Difference, remark: &str) -> Change {
    Change { key: key.to_owned(), figure: None, difference, ratio: None, remark: Some(remark.to_owned()) }
}

fn compare_figure(key: &str, before: &SweepRow, after: &SweepRow, figure: Figure, threshold: f64) -> Option<Change> {
    let (before, after) = (before.figure(figure)?, after.figure(figure)?);
    if before.unavailable.is_some() && after.unavailable.is_some() {
        return None;
    }
    let mut remark = None;
    let ratio = if before.empty_frame_ns.is_some() == after.empty_frame_ns.is_some() {
        Ratio::bootstrap(&before.samples_ns, &after.samples_ns)
    } else {
        // The older record does not know what its frame took: like is compared with like.
        remark = Some("with the empty frame on both sides".to_owned());
        Ratio::bootstrap(&before.raw_samples_ns(), &after.raw_samples_ns())
    };
    let difference = ratio.map_or(Difference::Unclear, |ratio| ratio.difference(threshold));
    if !(before.is_trusted && after.is_trusted) {
        remark = Some("a noise criterion was not met".to_owned());
    }
    let difference = believed(difference, before, after);
    Some(Change { key: key.to_owned(), figure: Some(figure), difference, ratio, remark })
}

/// What the samples of two figures of one record say: whether `after` takes longer or shorter than `before`.
pub(super) fn judge(before: &FigureRecord, after: &FigureRecord, threshold: f64) -> Difference {
    believed(statistics::compare(&before.samples_ns, &after.samples_ns, threshold), before, after)
}

/// At reduced clock, or with a handful of samples, a difference says nothing about the code.
fn believed(difference: Difference, before: &FigureRecord, after: &FigureRecord) -> Difference {
    let is_trusted = before.is_trusted && after.is_trusted;
    if is_trusted || difference == Difference::Same { difference } else { Difference::Unclear }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Program;
    use super::super::environment::tests::machine;
    use super::super::point::Subject;
    use super::super::record::{FORMAT, SweepHeader};
    use super::super::sampling::{Measured, Series};
    use super::super::stopping::Stop;
    use super::super::sweep::SweepFile;
    use super::*;
    use crate::element::{ElementType, Operator};
    use crate::strategy::{Mode, ScanConfig, Strategy};

    fn figure(mean: f64, stop: Stop) -> FigureRecord {
        let samples = (0..20).map(|index| mean * (1.0 + 0.0005 * f64::from((index * 7) % 10 - 5))).collect();
        let series = Series {
            accepted_nanoseconds: samples,
            reduced_clock_nanoseconds: Vec::new(),
            late_samples: 0,
            runs_per_sample: 1,
            clock_megahertz: None,
            stop,
            unmet: None,
        };
        FigureRecord::new(Measured::Series(series), 1000, None)
    }

    fn record(gpu: &str, times: &[(u64, f64)]) -> SweepRecord {
        let sweep = SweepFile::open("quick").unwrap();
        let program = Program { version: "0".into(), git_commit: None, git_dirty: None, kernels_sha256: String::new() };
        let rows = times
            .iter()
            .map(|&(n, time)| {
                let subject = Subject::Scan {
                    strategy: Strategy::Lookback,
                    mode: Mode::Inclusive,
                    config: ScanConfig::default(),
                };
                let mut row = SweepRow::new(&subject, ElementType::I32, Operator::Sum, n);
                row.status = Status::Measured;
                row.graph = Some(figure(time, Stop::Noise));
                row
            })
            .collect();
        let header = SweepHeader {
            format: FORMAT,
            program,
            date: String::new(),
            command: String::new(),
            sweep,
            machine: machine(gpu),
        };
        SweepRecord { rows, ..SweepRecord::from(header) }
    }

    #[test]
    fn each_configuration_is_judged_by_its_own_samples() {
        let old = [record("A", &[(1, 100.0), (2, 100.0), (3, 100.0), (4, 100.0)])];
        let new = [record("A", &[(1, 106.0), (2, 100.1), (3, 94.0), (5, 1.0)])];
        let comparison = compare_records(&old, &new, THRESHOLD);
        let verdicts: Vec<Difference> = comparison.changes.iter().map(|change| change.difference).collect();
        assert_eq!(verdicts, [Difference::Slower, Difference::Same, Difference::Faster, Difference::Unclear]);
        assert!(comparison.has_regression());
        assert_eq!(comparison.only_new, 1);
        assert!(comparison.remarks.is_empty());
        let table = comparison.table(false);
        assert!(table.contains("1 faster, 1 slower, 1 same, 1 unclear"), "{table}");
        assert!(table.contains("not in the new record"), "{table}");
    }

    #[test]
    fn a_record_compared_with_itself_is_the_same_throughout() {
        let record = [record("A", &[(1, 100.0), (2, 5.0)])];
        let comparison = compare_records(&record, &record, THRESHOLD);
        assert_eq!(comparison.count(Difference::Same), comparison.changes.len());
        assert!(!comparison.has_regression());
    }

    #[test]
    fn a_record_from_before_the_empty_frame_was_measured_is_compared_with_what_the_events_said() {
        let old = [record("A", &[(1, 5000.0)])];
        let mut new = [record("A", &[(1, 3000.0)])];
        if let Some(graph) = &mut new[0].rows[0].graph {
            graph.empty_frame_ns = Some(2000.0);
        }
        let comparison = compare_records(&old, &new, THRESHOLD);
        assert_eq!(comparison.changes[0].difference, Difference::Same, "{:?}", comparison.changes);
        assert_eq!(compare_records(&new, &new, THRESHOLD).changes[0].remark, None);
    }

    #[test]
    fn another_gpu_is_remarked() {
        let comparison = compare_records(&[record("A", &[])], &[record("B", &[])], THRESHOLD);
        assert_eq!(comparison.remarks.len(), 1);
    }

    #[test]
    fn a_result_that_became_wrong_is_a_regression_however_fast() {
        let old = [record("A", &[(1, 100.0)])];
        let mut new = [record("A", &[(1, 10.0)])];
        new[0].rows[0].status = Status::Wrong;
        assert!(compare_records(&old, &new, THRESHOLD).has_regression());
        assert!(!compare_records(&new, &old, THRESHOLD).has_regression());
    }

    #[test]
    fn a_figure_without_its_criterion_decides_nothing() {
        let old = [record("A", &[(1, 100.0)])];
        let mut new = [record("A", &[(1, 150.0)])];
        new[0].rows[0].graph = Some(figure(150.0, Stop::ReducedClock));
        let comparison = compare_records(&old, &new, THRESHOLD);
        assert_eq!(comparison.changes[0].difference, Difference::Unclear);
    }
}
