//! The table of targets in 80 columns, and the figures that miss.

use super::Yardstick;
use super::evaluation::{Evaluation, Finding, NEAR_BOUND, Outcome, TargetResult};
use crate::lab::statistics::Difference;
use crate::text::wrapped;
use std::fmt::Write as _;

impl Outcome {
    /// Sentences on what the columns do not say: the worst place, its bound, the stretch, the samples.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.findings.is_empty() {
            notes.push("nothing was measured".to_owned());
        }
        if let Some(worst) = self.worst() {
            let mark = if worst.is_trusted { "" } else { " (no noise criterion met)" };
            notes.push(format!("worst: {}{mark}", worst.title()));
            match worst.bound {
                Some(bound) if !worst.passed => notes.push(format!(
                    "without waiting: {}, we reach {:.1} % of that",
                    self.target.yardstick.show(bound.ratio),
                    100.0 * bound.share
                )),
                None if !worst.passed && worst.waits_for_nothing() => {
                    notes.push("without waiting: the same, one block waits for no other".to_owned());
                }
                None if !worst.passed && worst.strategy.is_some() => {
                    notes.push("without waiting: not measured".to_owned());
                }
                _ => {}
            }
        }
        let misses = self.misses().count();
        if misses > 0 {
            let problems = self.misses().filter(|finding| finding.problem.is_some()).count();
            let near = self.misses().filter(|finding| finding.is_near_bound()).count();
            if problems > 0 {
                let why = self.misses().find_map(|finding| finding.problem.as_deref()).unwrap_or_default();
                notes.push(format!("{problems} do not count: {why}"));
            }
            if problems < misses {
                let nothing = self.misses().filter(|finding| finding.waits_for_nothing()).count();
                let percent = 100.0 * NEAR_BOUND;
                let unknown = misses - self.misses().filter(|finding| finding.bound.is_some()).count() - nothing;
                let mut note = format!("of {misses} misses {near} within {percent:.0} % of the same without waiting");
                if nothing > 0 {
                    let _ = write!(note, ", {nothing} of one block that waits for no other");
                }
                if unknown > 0 {
                    let _ = write!(note, ", {unknown} not measured without");
                }
                notes.push(note);
            }
        }
        if let (Some(stretched), Some(stretch)) = (self.stretched(), self.target.stretch) {
            let all = self.findings.len();
            let reached = if stretched == all && all > 0 { "reached" } else { "not reached" };
            notes.push(format!("stretch {}: {reached}, {stretched} of {all}", self.target.yardstick.show(stretch)));
        }
        if self.target.yardstick == Yardstick::NotSlower && !self.findings.is_empty() {
            notes.push(format!(
                "{} faster, {} within noise, {} undecided, {} slower",
                self.samples(Difference::Faster),
                self.samples(Difference::Same),
                self.samples(Difference::Unclear),
                self.samples(Difference::Slower)
            ));
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
                word(outcome)
            );
            for note in outcome.notes() {
                for line in wrapped(&note, 76) {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        let _ = writeln!(text, "\n{}", self.summary());
        self.list_misses(&mut text, all);
        text
    }

    /// How many targets came out how.
    pub fn summary(&self) -> String {
        let count = |result: TargetResult| self.deciding().filter(|outcome| outcome.result == result).count();
        let (passed, missed) = (count(TargetResult::Pass), count(TargetResult::Miss));
        if passed + missed == 0 {
            return format!("No target is for the {}: the figures are for information.", self.gpu);
        }
        format!("{} of {} targets reached on the {}.", passed, passed + missed, self.gpu)
    }

    fn list_misses(&self, text: &mut String, all: bool) {
        let misses: Vec<(&Outcome, &Finding)> =
            self.deciding().flat_map(|outcome| outcome.misses().map(move |finding| (outcome, finding))).collect();
        if misses.is_empty() {
            return;
        }
        let _ = writeln!(text, "\nMisses, of each target the worst first:");
        let mut shown: Vec<(&Outcome, &Finding)> = misses.clone();
        if !all && misses.len() > SHOWN_MISSES {
            // Of every target some, so that one with many does not hide the others.
            let targets = self.deciding().filter(|outcome| outcome.result == TargetResult::Miss).count().max(1);
            let each = (SHOWN_MISSES / targets).max(1);
            shown = self
                .deciding()
                .flat_map(|outcome| outcome.misses().take(each).map(move |finding| (outcome, finding)))
                .collect();
        }
        for (outcome, finding) in &shown {
            let yardstick = outcome.target.yardstick;
            let found = match (&finding.problem, finding.ratio) {
                (Some(problem), _) => problem.clone(),
                (None, Some(ratio)) => format!("{} of {}", yardstick.show(ratio), yardstick.show_demand(outcome)),
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

impl Yardstick {
    /// What a ratio had to reach.
    fn show_demand(self, outcome: &Outcome) -> String {
        if self == Self::NotSlower { "1.00 x".to_owned() } else { self.show(outcome.target.threshold) }
    }
}

/// The verdict in a table; what decides nothing is in small letters.
pub fn word(outcome: &Outcome) -> String {
    match (outcome.result, outcome.target.decides) {
        (TargetResult::OtherGpu, _) => format!("({})", outcome.target.gpu),
        (TargetResult::Miss, false) => "no".to_owned(),
        (TargetResult::Pass, false) => "yes".to_owned(),
        (result, true) => result.name().to_owned(),
    }
}
