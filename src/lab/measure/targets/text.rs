//! The table of targets in 80 columns, and the figures that miss.

use super::GPU;
use super::evaluation::{Evaluation, Finding, NEAR_BOUND, Outcome, SENTINEL_STEP, Sentinel, TargetResult};
use crate::text::wrapped;
use std::fmt::{self, Write as _};

impl Outcome {
    /// How many figures do not count, whatever their ratio, and why the worst of them does not; nothing if all do.
    pub fn uncounted(&self) -> Option<String> {
        let mut problems = self.misses().filter_map(|finding| finding.problem.as_deref());
        let why = problems.next()?;
        Some(format!("{} do not count: {why}", 1 + problems.count()))
    }

    /// Sentences on what the columns do not say: the worst place, what other processes found there, its bound.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.findings.is_empty() {
            notes.push("nothing was measured".to_owned());
        }
        if let Some(worst) = self.worst() {
            let mark = if worst.is_trusted { "" } else { " (no noise criterion met)" };
            let between = worst.between.map_or(String::new(), |[least, most]| {
                let show = |ratio| self.target.yardstick.show(ratio);
                format!(", {} to {} by process", show(least), show(most))
            });
            notes.push(format!("worst: {}{between}{mark}", worst.title()));
            if let Some(bound) = worst.bound.filter(|_| !worst.passed) {
                notes.push(format!(
                    "without waiting: {}, we reach {:.1} % of that",
                    self.target.yardstick.show(bound.ratio),
                    100.0 * bound.share
                ));
            }
        }
        notes.extend(self.uncounted());
        let bounded = self.misses().filter(|finding| finding.bound.is_some()).count();
        if bounded > 0 {
            let near = self.misses().filter(|finding| finding.is_near_bound()).count();
            let percent = 100.0 * NEAR_BOUND;
            notes.push(format!("of {bounded} misses with a bound {near} are at most {percent:.0} % slower than it"));
        }
        notes
    }
}

/// Misses that the short list shows.
const SHOWN_MISSES: usize = 20;

impl Evaluation {
    /// The table in 80 columns, and below it the figures that miss: all of them, or the worst.
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:<20} {:<24} {:>7} {:>7} {:>9}  verdict",
            "target", "at least", "worst", "median", "reached"
        );
        for outcome in &self.outcomes {
            let target = outcome.target;
            let show = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| target.yardstick.show(ratio));
            let reached = format!("{}/{}", outcome.passed(), outcome.findings.len());
            let _ = writeln!(
                text,
                "{:<20} {:<24} {:>7} {:>7} {reached:>9}  {}",
                target.place,
                target.demand(),
                show(outcome.worst().and_then(|worst| worst.ratio)),
                show(outcome.median()),
                word(outcome.result)
            );
            for note in outcome.notes() {
                for line in wrapped(&note, 76) {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        for outcome in &self.host {
            let target = outcome.target;
            let found = outcome.found_us.map_or("-".to_owned(), microseconds);
            let demand = format!("at most {}", microseconds(target.most_us));
            let _ = writeln!(text, "{:<20} {demand:<24} {found:>25}  {}", target.place, word(outcome.result));
        }
        if let Some(sentinel) = &self.sentinel {
            let _ = writeln!(text);
            for line in wrapped(&sentinel.to_string(), 80) {
                let _ = writeln!(text, "{line}");
            }
        }
        let _ = writeln!(text, "\n{}", self.summary());
        self.list_misses(&mut text, all);
        text
    }

    /// How many targets came out how.
    pub fn summary(&self) -> String {
        let [passed, missed] = [TargetResult::Pass, TargetResult::Miss].map(|result| self.count(result));
        if passed + missed == 0 {
            return format!("No target is for the {}: the figures are for information.", self.gpu);
        }
        let (all, by) = (passed + missed, self.processes_in_words());
        format!("{passed} of {all} targets reached on the {}, by {by}.", self.gpu)
    }

    /// "one process", "3 processes".
    pub fn processes_in_words(&self) -> String {
        if self.processes == 1 { "one process".to_owned() } else { format!("{} processes", self.processes) }
    }

    /// The outcomes that decide: of targets that are for the records' GPU.
    fn deciding(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.result != TargetResult::OtherGpu)
    }

    fn list_misses(&self, text: &mut String, all: bool) {
        // Where nothing was measured the table says so.
        let listed = || self.deciding().filter(|outcome| outcome.worst().is_some());
        let misses: Vec<(&Outcome, &Finding)> =
            listed().flat_map(|outcome| outcome.misses().map(move |finding| (outcome, finding))).collect();
        if misses.is_empty() {
            return;
        }
        let _ = writeln!(text, "\nMisses, of each target the worst first:");
        let mut shown: Vec<(&Outcome, &Finding)> = misses.clone();
        if !all && misses.len() > SHOWN_MISSES {
            // Of every target some, so that one with many does not hide the others.
            let targets = listed().filter(|outcome| outcome.result == TargetResult::Miss).count().max(1);
            let each = (SHOWN_MISSES / targets).max(1);
            shown = listed()
                .flat_map(|outcome| outcome.misses().take(each).map(move |finding| (outcome, finding)))
                .collect();
        }
        for (outcome, finding) in &shown {
            let yardstick = outcome.target.yardstick;
            let found = match (&finding.problem, finding.ratio) {
                (Some(problem), _) => problem.clone(),
                (None, Some(ratio)) => {
                    format!("{} of {}", yardstick.show(ratio), yardstick.show(outcome.target.threshold))
                }
                (None, None) => "-".to_owned(),
            };
            let bound = finding.bound.map_or(String::new(), |bound| {
                format!(", without waiting {} ({:.0} %)", yardstick.show(bound.ratio), 100.0 * bound.share)
            });
            for line in wrapped(&finding.title(), 78) {
                let _ = writeln!(text, "  {line}");
            }
            for line in wrapped(&format!("{}: {found}{bound}", outcome.target.place.trim()), 74) {
                let _ = writeln!(text, "      {line}");
            }
        }
        if shown.len() < misses.len() {
            let _ = writeln!(text, "  and {} more; --verbose lists them", misses.len() - shown.len());
        }
    }
}

/// The verdict in a table.
pub fn word(result: TargetResult) -> String {
    if result == TargetResult::OtherGpu { format!("({GPU})") } else { result.name().to_owned() }
}

/// A time on the host: "3.0 us", "20 ms".
pub fn microseconds(time: f64) -> String {
    if time < 1e3 { format!("{time:.1} us") } else { format!("{:.1} ms", time / 1e3) }
}

/// A sentence on what the same copy took at all points.
impl fmt::Display for Sentinel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, median_us, least_us, most_us, steps } = self;
        write!(
            formatter,
            "The sentinel, one copy at all of {points} points, took {median_us:.3} us, {least_us:.3} to {most_us:.3}; at {steps} it \
             was more than {:.0} % off its process's median.",
            100.0 * SENTINEL_STEP
        )
    }
}
