//! Two records of the same sweeps: what became faster, slower, stayed the same, or cannot be told.
//!
//! Each configuration and figure is judged by all its samples ([`Ratio`]), never by two
//! medians. That covers the noise *within* the two runs. What differs *between* runs (another GPU of the same
//! name, another temperature) the samples do not know; the threshold has to cover it, and the copy's rows,
//! which no change to a scan can make faster or slower, show how large it is.

use super::record::{FigureRecord, Status, SweepRecord, SweepRow};
use super::sampling::Figure;
use crate::lab::statistics::{Difference, Ratio};
use crate::text::{format_size, wrapped};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Differences up to this share are of no consequence.
pub const THRESHOLD: f64 = 0.01;

/// One configuration and figure in two records.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The configuration, from [`SweepRow::key`].
    pub key: String,
    /// Whose it is.
    pub subject: String,
    /// Elements.
    pub n: u64,
    /// The figure, or none where a whole row is wrong or right anew.
    pub figure: Option<Figure>,
    /// Whether the result is compared with a reference, too: that of a bound is not.
    pub is_verified: bool,
    /// Which is faster.
    pub difference: Difference,
    /// New median by old median, with its interval; `None` without samples on both sides.
    pub ratio: Option<Ratio>,
    /// What the samples alone do not say.
    pub remark: Option<String>,
}

/// All configurations of two records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// What is in both, in the order of the configurations' names.
    pub changes: Vec<Change>,
    /// What makes the two records hard to compare: another GPU, another driver.
    pub remarks: Vec<String>,
    /// Configurations, and single figures of them, that were measured in the old record, and in the new one are not.
    pub gone: Vec<String>,
    /// Configurations in the new record alone.
    pub only_new: usize,
}

impl Comparison {
    /// How many figures came out so.
    pub fn count(&self, difference: Difference) -> usize {
        self.changes.iter().filter(|change| change.difference == difference).count()
    }

    /// Whether any scan is known to be no slower. Bounds say nothing of scans.
    pub fn is_decided(&self) -> bool {
        self.changes.iter().any(|change| change.is_verified && change.difference != Difference::Unclear)
    }

    /// Whether anything is slower, right no more, or measured no more.
    pub fn has_regression(&self) -> bool {
        self.count(Difference::Slower) > 0 || !self.gone.is_empty()
    }

    /// What is printed: what came out first, then what is slower, unclear or faster, the worst first. Figures that stayed
    /// the same are listed only if `all` are asked for. Lines of up to 80 columns, but for long names.
    pub fn text(&self, all: bool) -> String {
        const WORST_FIRST: [Difference; 4] =
            [Difference::Slower, Difference::Unclear, Difference::Faster, Difference::Same];
        let mut text = String::new();
        for remark in &self.remarks {
            let _ = writeln!(text, "note: {remark}");
        }
        let _ = writeln!(
            text,
            "{} faster, {} slower, {} same, {} unclear; {} configurations or figures gone, {} new",
            self.count(Difference::Faster),
            self.count(Difference::Slower),
            self.count(Difference::Same),
            self.count(Difference::Unclear),
            self.gone.len(),
            self.only_new
        );
        text.push_str(&self.means("subject", |change| (change.subject.clone(), 0)));
        text.push_str(&self.means("elements", |change| (format_size(change.n), change.n)));
        for key in &self.gone {
            let _ = writeln!(text, "\ngone: {}", wrapped(key, 72).join("\n      "));
        }
        let mut shown: Vec<&Change> =
            self.changes.iter().filter(|change| all || change.difference != Difference::Same).collect();
        let verdict = |change: &Change| WORST_FIRST.iter().position(|it| *it == change.difference);
        let ratio = |change: &Change| change.ratio.map_or(f64::INFINITY, |ratio| ratio.ratio);
        shown.sort_by(|left, right| verdict(left).cmp(&verdict(right)).then(ratio(right).total_cmp(&ratio(left))));
        if !shown.is_empty() {
            let _ = writeln!(text, "\n{:<8} {:<8} new / old (99 % interval)", "verdict", "figure");
        }
        for change in shown {
            let ratio = change
                .ratio
                .map_or("-".to_owned(), |ratio| format!("{:.3} ({:.3} to {:.3})", ratio.ratio, ratio.low, ratio.high));
            let figure = change.figure.map_or("-", Figure::name);
            let remark = change.remark.as_ref().map_or(String::new(), |remark| format!("  {remark}"));
            let _ = writeln!(text, "{:<8} {figure:<8} {ratio}{remark}", change.difference.name());
            for line in wrapped(&change.key, 72) {
                let _ = writeln!(text, "         {line}");
            }
        }
        text
    }

    /// Geometric means of the ratios of groups, in the order of the number that `group` gives beside the name.
    fn means(&self, heading: &str, group: impl Fn(&Change) -> (String, u64)) -> String {
        let mut groups: BTreeMap<(u64, String), Vec<f64>> = BTreeMap::new();
        for change in &self.changes {
            let (name, order) = group(change);
            groups.entry((order, name)).or_default().extend(change.ratio.map(|ratio| ratio.ratio.ln()));
        }
        groups.retain(|_, logarithms| !logarithms.is_empty());
        if groups.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{heading:<32} {:>7}  new / old, geometric mean\n", "figures");
        for ((_, name), logarithms) in groups {
            let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
            let _ = writeln!(text, "{name:<32} {:>7}  {mean:.3}", logarithms.len());
        }
        text
    }
}

/// Compares the configurations of two sets of records; those of the new set alone are counted. `progress` is told how many
/// configurations of how many are done.
pub fn compare_records(
    old: &[SweepRecord],
    new: &[SweepRecord],
    threshold: f64,
    progress: &mut dyn FnMut(usize, usize),
) -> Comparison {
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
    for (which, records, rows) in [("old", old, &old_rows), ("new", new, &new_rows)] {
        let twice = records.iter().map(|record| record.rows.len()).sum::<usize>() - rows.len();
        if twice > 0 {
            let text = format!(
                "{twice} rows of the {which} records stand in several of them; each counts once, as the last file has it"
            );
            comparison.remarks.push(text);
        }
    }
    comparison.only_new = new_rows.keys().filter(|key| !old_rows.contains_key(*key)).count();
    for (index, (key, before)) in old_rows.iter().enumerate() {
        progress(index, old_rows.len());
        let Some(after) = new_rows.get(key) else {
            // What never ran is no loss.
            if before.status != Status::NotLaunchable {
                comparison.gone.push(key.clone());
            }
            continue;
        };
        let whole = |difference, remark: &str| Change {
            key: key.clone(),
            subject: before.subject.clone(),
            n: before.n,
            figure: None,
            is_verified: true,
            difference,
            ratio: None,
            remark: Some(remark.to_owned()),
        };
        match (before.status, after.status) {
            // Bounds, too: what a kernel takes without its waiting can become slower as well.
            (Status::Measured, Status::Measured) | (Status::NotVerified, Status::NotVerified) => {
                for &figure in Figure::ALL {
                    if has_samples(before.figure(figure)) && !has_samples(after.figure(figure)) {
                        comparison.gone.push(format!("{key}, the figure {figure}"));
                    } else {
                        comparison.changes.extend(compare_figure(key, before, after, figure, threshold));
                    }
                }
            }
            (Status::Measured, Status::Wrong) => {
                comparison.changes.push(whole(Difference::Slower, "its result is wrong now"));
            }
            (Status::Measured, Status::NotLaunchable) => {
                comparison.changes.push(whole(Difference::Slower, "it cannot be launched any more"));
            }
            (Status::Measured, Status::NotVerified) => comparison.gone.push(format!("{key}, not verified any more")),
            (Status::NotVerified, Status::Wrong | Status::NotLaunchable) => {
                comparison.gone.push(format!("{key}, not timed any more"));
            }
            (_, Status::Measured) => {
                comparison.changes.push(whole(Difference::Faster, "it works now and did not before"));
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

fn has_samples(figure: Option<&FigureRecord>) -> bool {
    figure.is_some_and(|figure| !figure.samples_ns.is_empty())
}

fn compare_figure(
    key: &str,
    before_row: &SweepRow,
    after_row: &SweepRow,
    figure: Figure,
    threshold: f64,
) -> Option<Change> {
    let (before, after) = (before_row.figure(figure)?, after_row.figure(figure)?);
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
    let (key, subject) = (key.to_owned(), before_row.subject.clone());
    let is_verified = before_row.status == Status::Measured;
    Some(Change { key, subject, n: before_row.n, figure: Some(figure), is_verified, difference, ratio, remark })
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
    use crate::element::{ElementType, Instance, Operator};
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

    fn compare(old: &[SweepRecord], new: &[SweepRecord]) -> Comparison {
        compare_records(old, new, THRESHOLD, &mut |_, _| {})
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
                let mut row = SweepRow::new(&subject, Instance::new(ElementType::I32, Operator::Sum).unwrap(), n);
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
    fn what_is_gone_is_a_regression_though_nothing_is_slower() {
        let old = [record("A", &[(1, 100.0), (2, 100.0)])];
        assert!(compare(&old, &old[..0]).has_regression());
        assert!(compare(&old, &[record("A", &[(1, 100.0)])]).has_regression());
    }

    #[test]
    fn a_figure_or_a_verification_that_is_gone_is_a_regression() {
        let old = [record("A", &[(1, 100.0)])];
        let spoilt: [fn(&mut SweepRow); 4] = [
            |row| row.graph = None,
            |row| row.graph = Some(FigureRecord { unavailable: Some("no".to_owned()), ..FigureRecord::default() }),
            |row| row.graph = Some(FigureRecord::default()),
            |row| row.status = Status::NotVerified,
        ];
        for spoil in spoilt {
            let mut new = old.clone();
            spoil(&mut new[0].rows[0]);
            let comparison = compare(&old, &new);
            assert!(comparison.has_regression() && comparison.changes.is_empty(), "{comparison:?}");
            assert!(comparison.text(false).contains("1 configurations or figures gone"), "{}", comparison.text(false));
            assert!(!compare(&new, &old).has_regression(), "what is there anew is none");
        }
        // A bound is timed and never verified.
        let mut bound = old.clone();
        bound[0].rows[0].status = Status::NotVerified;
        let mut new = bound.clone();
        new[0].rows[0].status = Status::NotLaunchable;
        assert!(compare(&bound, &new).has_regression());
    }

    #[test]
    fn each_configuration_is_judged_by_its_own_samples() {
        let old = [record("A", &[(1, 100.0), (2, 100.0), (3, 100.0), (4, 100.0)])];
        let new = [record("A", &[(1, 106.0), (2, 100.1), (3, 94.0), (5, 1.0)])];
        let comparison = compare(&old, &new);
        let verdicts: Vec<Difference> = comparison.changes.iter().map(|change| change.difference).collect();
        assert_eq!(verdicts, [Difference::Slower, Difference::Same, Difference::Faster]);
        assert!(comparison.has_regression());
        assert_eq!((comparison.gone.len(), comparison.only_new), (1, 1));
        assert!(comparison.remarks.is_empty());
        let text = comparison.text(false);
        assert!(
            text.starts_with("1 faster, 1 slower, 1 same, 0 unclear; 1 configurations or figures gone, 1 new"),
            "{text}"
        );
        assert!(text.contains("gone: quick: i32 sum n=4"), "{text}");
        let verdicts: Vec<&str> = text.lines().filter(|line| line.contains("graph")).map(|line| &line[..6]).collect();
        assert_eq!(verdicts, ["slower", "faster"], "{text}");
        let mean = (1.06f64 * 1.001 * 0.94).cbrt();
        let of_subject = format!("{:<32} {:>7}  {mean:.3}", "lookback", 3);
        assert!(text.contains(&of_subject), "{of_subject} in {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 81), "{text}");
    }

    #[test]
    fn a_record_compared_with_itself_is_the_same_throughout() {
        let record = [record("A", &[(1, 100.0), (2, 5.0)])];
        let comparison = compare(&record, &record);
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
        let comparison = compare(&old, &new);
        assert_eq!(comparison.changes[0].difference, Difference::Same, "{:?}", comparison.changes);
        assert_eq!(compare(&new, &new).changes[0].remark, None);
    }

    #[test]
    fn another_gpu_is_remarked() {
        let comparison = compare(&[record("A", &[])], &[record("B", &[])]);
        assert_eq!(comparison.remarks.len(), 1);
    }

    #[test]
    fn what_stands_in_several_records_counts_once_and_is_remarked() {
        let old = [record("A", &[(1, 100.0), (2, 100.0)]), record("A", &[(1, 100.0)])];
        let comparison = compare(&old, &old[..1]);
        assert_eq!(comparison.changes.len(), 2);
        assert!(comparison.remarks.iter().any(|remark| remark.starts_with("1 rows of the old records")));
    }

    #[test]
    fn a_result_that_became_wrong_is_a_regression_however_fast() {
        let old = [record("A", &[(1, 100.0)])];
        let mut new = [record("A", &[(1, 10.0)])];
        new[0].rows[0].status = Status::Wrong;
        assert!(compare(&old, &new).has_regression());
        assert!(!compare(&new, &old).has_regression());
    }

    #[test]
    fn a_figure_without_its_criterion_decides_nothing() {
        let old = [record("A", &[(1, 100.0)])];
        let mut new = [record("A", &[(1, 150.0)])];
        new[0].rows[0].graph = Some(figure(150.0, Stop::ReducedClock));
        let comparison = compare(&old, &new);
        assert_eq!(comparison.changes[0].difference, Difference::Unclear);
    }
}
