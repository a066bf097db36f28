//! Which detector kills which mutant: the record of `lookback stress --mutants`.

use super::detector::Cell;
use super::detectors::DetectorName;
use crate::kernels::mutant::{Kind, Mutant};
use indicatif::HumanCount;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::marker::PhantomData;

/// What all detectors together say of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MutantOutcome {
    /// At least one detector found it.
    Killed,
    /// None did.
    Survived,
}

/// One mutant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it breaks; harmless variants must survive.
    pub kind: Kind,
    /// What it is.
    pub text: String,
    /// The rule that it follows from; `None` where somebody thought of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// Where its first hook stands.
    pub place: String,
    /// What all detectors together say.
    pub verdict: MutantOutcome,
    /// What each says.
    #[serde(deserialize_with = "each_key_once")]
    pub detectors: BTreeMap<DetectorName, Cell>,
}

impl Row {
    /// A row without cells.
    pub fn new(mutant: &Mutant) -> Self {
        Self {
            name: mutant.name.clone(),
            kind: mutant.kind,
            text: mutant.text.clone(),
            rule: mutant.rule.map(str::to_owned),
            place: format!("{}:{}", mutant.file, mutant.line),
            verdict: MutantOutcome::Survived,
            detectors: BTreeMap::new(),
        }
    }

    /// Whether both are about one fault, as far as rows say.
    fn is_of_same_fault(&self, other: &Self) -> bool {
        (&self.name, self.kind, &self.text) == (&other.name, other.kind, &other.text)
    }

    /// Adds what a detector says.
    pub fn set(&mut self, detector: DetectorName, cell: Cell) {
        self.detectors.insert(detector, cell);
        self.verdict = self.verdict_of_cells();
    }

    fn verdict_of_cells(&self) -> MutantOutcome {
        let is_killed = self.detectors.values().any(Cell::is_killed);
        if is_killed { MutantOutcome::Killed } else { MutantOutcome::Survived }
    }

    /// The kernel file, and the line in it.
    pub fn file_and_line(&self) -> (&str, u32) {
        let (file, line) = self.place.rsplit_once(':').unwrap_or((&self.place, ""));
        (file, line.parse().unwrap_or(0))
    }

    /// Whether any detector looked at it.
    pub fn was_asked(&self) -> bool {
        self.detectors.values().any(|cell| !matches!(cell, Cell::NotRun { .. }))
    }

    /// Whether detectors looked at it and came to another verdict.
    pub fn is_wrong(&self) -> bool {
        self.was_asked() && !self.is_right()
    }

    /// Whether the verdict is the one that the mutant's kind asks for.
    pub fn is_right(&self) -> bool {
        match self.kind {
            // Nobody who has not looked can have let it pass.
            Kind::Harmless => {
                let passed = self.detectors.values().any(|cell| matches!(cell, Cell::Survived { .. }));
                passed && self.verdict == MutantOutcome::Survived
            }
            _ => self.verdict == MutantOutcome::Killed,
        }
    }
}

/// Reads a map and refuses a key that stands twice, of which serde takes the last.
fn each_key_once<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    struct Once<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de> + Ord + fmt::Display, V: Deserialize<'de>> Visitor<'de> for Once<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry::<K, V>()? {
                match map.entry(key) {
                    Entry::Vacant(place) => place.insert(value),
                    Entry::Occupied(found) => {
                        return Err(A::Error::custom(format!("{} stands twice in a map", found.key())));
                    }
                };
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(Once(PhantomData))
}

/// A text that is no table of mutants.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It is of another form.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// No detector looked at anything, or at nothing.
    #[error("it has no {0}; make one with `lookback stress --mutants`")]
    Empty(&'static str),
    /// A row or a column would count twice.
    #[error("{0} stands twice in it; make it anew with `lookback stress --mutants`")]
    Twice(String),
    /// What no detector says.
    #[error("{name} cannot be: {reason}; make it anew with `lookback stress --mutants`")]
    Impossible { name: String, reason: String },
}

/// The kill table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KillTable {
    /// Version of the program.
    pub program: String,
    /// The commit that it was built from, if known.
    pub git_commit: Option<String>,
    /// When, in UTC.
    pub date: String,
    /// The command.
    pub command: String,
    /// What the detectors ran on: processor, compilers, GPU.
    #[serde(deserialize_with = "each_key_once")]
    pub machine: BTreeMap<String, String>,
    /// The columns.
    pub detectors: Vec<DetectorName>,
    /// The kernels as they are, by each detector.
    #[serde(deserialize_with = "each_key_once")]
    pub unmutated: BTreeMap<DetectorName, Cell>,
    /// The rows.
    pub mutants: Vec<Row>,
}

impl KillTable {
    /// The table that this text is.
    ///
    /// # Errors
    /// When it is none, or says what cannot be.
    pub fn from_json(text: &str) -> Result<Self, TableError> {
        let table: Self = serde_json::from_str(text)?;
        table.check()?;
        Ok(table)
    }

    /// Refuses what this program does not write.
    fn check(&self) -> Result<(), TableError> {
        if self.mutants.is_empty() || self.detectors.is_empty() {
            return Err(TableError::Empty(if self.mutants.is_empty() { "mutants" } else { "detectors" }));
        }
        let names = self.mutants.iter().map(|row| row.name.as_str());
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.chain(self.detectors.iter().map(|name| name.name())).find(|name| !seen.insert(*name))
        {
            return Err(TableError::Twice(twice.to_owned()));
        }
        const LONGEST_NAME: usize = 200;
        if let Some(row) = self.mutants.iter().find(|row| row.name.len() > LONGEST_NAME) {
            let (name, reason) = (row.name.chars().take(20).collect(), "no mutant has so long a name".to_owned());
            return Err(TableError::Impossible { name, reason });
        }
        self.check_cells("the kernels as they are", &self.unmutated)?;
        self.mutants.iter().try_for_each(|row| {
            self.check_cells(&row.name, &row.detectors)?;
            if row.verdict != row.verdict_of_cells() {
                let reason = "its verdict is not that of its detectors".to_owned();
                return Err(TableError::Impossible { name: row.name.clone(), reason });
            }
            Ok(())
        })
    }

    fn check_cells(&self, name: &str, cells: &BTreeMap<DetectorName, Cell>) -> Result<(), TableError> {
        let impossible = |reason| Err(TableError::Impossible { name: name.to_owned(), reason });
        if let Some(detector) = cells.keys().find(|detector| !self.detectors.contains(detector)) {
            return impossible(format!("{} is no column of the table", detector.name()));
        }
        if cells.values().any(|cell| matches!(cell, Cell::Survived { runs: 0, .. })) {
            return impossible("it survived a detector that ran nothing".to_owned());
        }
        let is_time = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
        match cells.values().filter_map(Cell::seconds).find(|&seconds| !is_time(seconds)) {
            Some(seconds) => impossible(format!("a detector took {seconds} s")),
            None => Ok(()),
        }
    }

    /// Whether both are of one known commit, without changes: kernels, faults and detectors are the same.
    pub fn is_of_commit(&self, other: &Self) -> bool {
        let is_clean = self.git_commit.as_ref().is_some_and(|commit| !commit.ends_with("-dirty"));
        is_clean && self.git_commit == other.git_commit
    }

    /// Whether a detector has found a fault. What was reported of a harmless variant is none.
    pub fn has_found(&self, detector: DetectorName, mutant: &Mutant) -> bool {
        let row = self.mutants.iter().find(|row| row.name == mutant.name && row.kind != Kind::Harmless);
        row.and_then(|row| row.detectors.get(&detector)).is_some_and(Cell::is_killed)
    }

    /// Takes the columns, rows and fields that this table has not from another one. Of a row that is about something else
    /// there nothing is taken: faults that follow from a rule are numbered, so that at another commit one may have
    /// another's name. Where both do the same to the same text, nothing tells them apart.
    pub fn add(&mut self, other: &Self) {
        let from = || {
            let date = other.date.get(..10).unwrap_or(&other.date);
            format!("{}, {date}, commit {}", other.command, other.git_commit.as_deref().unwrap_or("unknown"))
        };
        for &detector in other.detectors.iter().filter(|detector| !self.detectors.contains(detector)) {
            self.machine.entry(format!("column {}", detector.row().column)).or_insert_with(from);
        }
        let asked = self.detectors.clone();
        self.detectors.extend(&other.detectors);
        self.detectors.sort_unstable();
        self.detectors.dedup();
        let rows: BTreeSet<String> = self.mutants.iter().map(|mine| mine.name.clone()).collect();
        let missing = other.mutants.iter().filter(|theirs| !rows.contains(&theirs.name));
        self.mutants.extend(missing.map(|theirs| Row { detectors: BTreeMap::new(), ..theirs.clone() }));
        if self.mutants.len() > rows.len() {
            self.machine.entry("other rows".to_owned()).or_insert_with(from);
        }
        self.mutants.sort_by_key(|row| row.kind);
        let is_known = |cell: &Cell| !matches!(cell, Cell::NotRun { .. });
        let theirs: HashMap<&str, &Row> = other.mutants.iter().map(|theirs| (theirs.name.as_str(), theirs)).collect();
        for row in &mut self.mutants {
            let theirs = theirs.get(row.name.as_str()).filter(|theirs| theirs.is_of_same_fault(row));
            for &detector in &self.detectors {
                let mine = row.detectors.get(&detector);
                let theirs = theirs.and_then(|theirs| theirs.detectors.get(&detector));
                if mine.is_some_and(is_known) {
                    continue;
                }
                let missing = || Cell::NotRun { why: "not in the table that it is from".to_owned() };
                let known = theirs.filter(|cell| is_known(cell));
                if known.is_some() && asked.contains(&detector) && rows.contains(&row.name) {
                    self.machine.entry(format!("part of column {}", detector.row().column)).or_insert_with(from);
                }
                let cell = known.or(mine).or(theirs).cloned().unwrap_or_else(missing);
                row.set(detector, cell);
            }
        }
        for (&detector, theirs) in &other.unmutated {
            // Who has raised a false alarm once may kill anything, here too.
            if theirs.is_killed() || !self.unmutated.get(&detector).is_some_and(is_known) {
                self.unmutated.insert(detector, theirs.clone());
            }
        }
        for (name, value) in &other.machine {
            self.machine.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// The rows by rule in groups, which `group` names, in the order of its names; a group in that of files and lines.
    pub fn by_rule<K: Ord>(&self, group: impl Fn(&Row, &str) -> K) -> Vec<(K, Vec<&Row>)> {
        let mut groups: BTreeMap<K, Vec<&Row>> = BTreeMap::new();
        for row in &self.mutants {
            if let Some(rule) = &row.rule {
                groups.entry(group(row, rule)).or_default().push(row);
            }
        }
        for rows in groups.values_mut() {
            rows.sort_by_key(|row| row.file_and_line());
        }
        groups.into_iter().collect()
    }

    /// Rows whose verdict is not what it must be: mutants that survived, harmless variants that were reported.
    pub fn wrong_rows(&self) -> impl Iterator<Item = &Row> {
        self.mutants.iter().filter(|row| row.is_wrong())
    }

    /// Faults that no detector has found, whether any has looked or not.
    pub fn survivors(&self) -> impl Iterator<Item = &Row> {
        self.mutants.iter().filter(|row| row.kind != Kind::Harmless && row.verdict == MutantOutcome::Survived)
    }

    /// Rows that no detector looked at.
    pub fn unasked_rows(&self) -> impl Iterator<Item = &Row> {
        self.mutants.iter().filter(|row| !row.was_asked())
    }

    /// Detectors that report the kernels as they are.
    pub fn false_alarms(&self) -> impl Iterator<Item = (DetectorName, &Cell)> {
        self.unmutated.iter().filter(|(_, cell)| cell.is_killed()).map(|(&detector, cell)| (detector, cell))
    }

    /// Detectors that kill mutants and have neither let the kernels as they are pass nor reported them, and why not: they
    /// may kill anything.
    pub fn unproven(&self) -> impl Iterator<Item = (DetectorName, &str)> {
        self.detectors.iter().filter_map(|&detector| {
            let why = match self.unmutated.get(&detector) {
                Some(Cell::Survived { .. } | Cell::Killed { .. }) => return None,
                Some(Cell::NotModelled { why } | Cell::NotRun { why }) => why,
                None => "it was not asked about them",
            };
            let kills = |row: &Row| row.detectors.get(&detector).is_some_and(Cell::is_killed);
            self.mutants.iter().any(kills).then_some((detector, why))
        })
    }

    /// Whether a mutant survived, something harmless was killed, or a detector reports the kernels as they are.
    pub fn is_wrong(&self) -> bool {
        self.wrong_rows().next().is_some() || self.false_alarms().next().is_some()
    }

    /// Whether every mutant was killed, nothing harmless was, no detector reports the kernels as they are, and all that
    /// kill have let them pass.
    pub fn is_right(&self) -> bool {
        !self.is_wrong() && self.unasked_rows().next().is_none() && self.unproven().next().is_none()
    }

    /// The table for a terminal of 80 columns and more.
    pub fn text(&self) -> String {
        let names = self.mutants.iter().map(|row| row.name.len()).max().unwrap_or(0).max(10);
        let mut text = String::new();
        let _ = write!(text, "{:<names$}", "mutant");
        for detector in &self.detectors {
            let _ = write!(text, " {:>9}", detector.row().column);
        }
        text.push('\n');
        let mut last = None;
        for row in &self.mutants {
            if last != Some(row.kind) {
                let _ = writeln!(text, "-- {}", heading(row.kind));
                last = Some(row.kind);
            }
            let _ = write!(text, "{:<names$}", row.name);
            for detector in &self.detectors {
                let _ = write!(text, " {:>9}", row.detectors.get(detector).map_or("–".to_owned(), Cell::short));
            }
            if row.is_wrong() {
                text.push_str("  WRONG");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "-- the kernels as they are: runs without a failure");
        let _ = write!(text, "{:<names$}", "unmutated");
        for detector in &self.detectors {
            let cell = match self.unmutated.get(detector) {
                Some(Cell::Survived { runs, .. }) => runs.to_string(),
                Some(Cell::Killed { .. }) => "REPORTED".to_owned(),
                Some(_) | None => "–".to_owned(),
            };
            let _ = write!(text, " {cell:>9}");
        }
        text.push('\n');
        let _ = writeln!(
            text,
            "{}.\nTimes are from the first run to the kill; · is not in the detector's model, – was not run.",
            self.summary()
        );
        text
    }

    /// How many mutants were killed, and how many harmless variants were not.
    pub fn summary(&self) -> String {
        let killed = self.mutants.iter().filter(|row| row.kind != Kind::Harmless);
        let (killed, all) = (killed.clone().filter(|row| row.verdict == MutantOutcome::Killed).count(), killed.count());
        let harmless = self.mutants.iter().filter(|row| row.kind == Kind::Harmless);
        let (quiet, variants) = (harmless.clone().filter(|row| row.is_right()).count(), harmless.count());
        format!("{killed} of {all} mutants killed, {quiet} of {variants} harmless variants let pass")
    }

    /// Kills by kind and detector, and folded away a line a mutant: for a document.
    pub fn markdown(&self) -> String {
        let machine = |name: &str| self.machine.get(name).map(|value| format!(", {value}")).unwrap_or_default();
        let (processor, gpu) = (machine("processor"), machine("GPU"));
        let date = self.date.get(..10).unwrap_or(&self.date);
        let mut text = format!("Faults that each detector found: {date}{processor}{gpu}, `{}`.\n\n", self.command);
        self.head(&mut text, &["faults", "how many"]);
        for &kind in Kind::ALL {
            let rows: Vec<_> = self.mutants.iter().filter(|row| row.kind == kind).collect();
            let _ = write!(text, "| {} | {} |", heading(kind), rows.len());
            for detector in &self.detectors {
                let _ = write!(text, " {} |", killed_by(&rows, *detector));
            }
            text.push('\n');
        }
        for (rule, rows) in self.by_rule(|_, rule| rule.replace('_', " ")) {
            let _ = write!(text, "| of these by rule: {rule} | {} |", rows.len());
            for detector in &self.detectors {
                let _ = write!(text, " {} |", killed_by(&rows, *detector));
            }
            text.push('\n');
        }
        let _ = write!(text, "| the kernels as they are: runs without a failure | |");
        for detector in &self.detectors {
            let cell = match self.unmutated.get(detector) {
                Some(Cell::Survived { runs, .. }) => HumanCount(*runs).to_string(),
                Some(Cell::Killed { .. }) => "**reported**".to_owned(),
                Some(_) | None => "–".to_owned(),
            };
            let _ = write!(text, " {cell} |");
        }
        text.push_str("\n\n<details><summary>Each fault, and the time to its kill</summary>\n\n");
        self.head(&mut text, &["mutant", "what it is"]);
        for row in &self.mutants {
            let mark = if row.kind == Kind::Harmless { " (harmless)" } else { "" };
            let _ = write!(text, "| `{}`{mark} | {} |", row.name, row.text.replace('|', "\\|"));
            for detector in &self.detectors {
                let _ = write!(text, " {} |", row.detectors.get(detector).map_or("–".to_owned(), Cell::short));
            }
            text.push('\n');
        }
        text.push_str("\n· is not in the detector's model, – was not run.\n\n</details>\n");
        text
    }

    /// The first two lines of a table: two columns of text, then the detectors.
    fn head(&self, text: &mut String, columns: &[&str; 2]) {
        let _ = write!(text, "| {} | {} |", columns[0], columns[1]);
        for detector in &self.detectors {
            let _ = write!(text, " {} |", detector.row().column);
        }
        let _ = writeln!(text, "\n|---|---|{}", "--:|".repeat(self.detectors.len()));
    }
}

/// How many of these a detector killed.
pub fn killed_by(rows: &[&Row], detector: DetectorName) -> usize {
    rows.iter().filter(|row| row.detectors.get(&detector).is_some_and(Cell::is_killed)).count()
}

/// What stands above the rows of a kind.
pub const fn heading(kind: Kind) -> &'static str {
    match kind {
        Kind::Ordering => "order, scope and width of the protocol's accesses",
        Kind::Barrier => "barriers in a block or a warp",
        Kind::Protocol => "tickets, epochs, workspaces",
        Kind::Algorithm => "what is computed",
        Kind::Harmless => "harmless variants: they must survive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> KillTable {
        let cell = |killed: bool| {
            if killed {
                Cell::Killed { seed: Some(3), runs: 4, seconds: 0.012, how: "wrong".to_owned(), reproduce: None }
            } else {
                Cell::Survived { runs: 300, seconds: 1.0 }
            }
        };
        let mut rows = Vec::new();
        for mutant in Mutant::all().expect("readable").iter() {
            let mut row = Row::new(mutant);
            row.set(DetectorName::WeakMemory, cell(!mutant.is_harmless()));
            rows.push(row);
        }
        KillTable {
            program: "lookback".to_owned(),
            git_commit: None,
            date: String::new(),
            command: String::new(),
            machine: BTreeMap::new(),
            detectors: vec![DetectorName::WeakMemory],
            unmutated: BTreeMap::from([(DetectorName::WeakMemory, cell(false))]),
            mutants: rows,
        }
    }

    #[test]
    fn survivors_and_false_alarms_make_it_wrong() {
        let good = table();
        assert!(good.is_right());
        let mut survivor = good.clone();
        survivor.mutants[0].set(DetectorName::WeakMemory, Cell::Survived { runs: 1, seconds: 0.1 });
        assert!(!survivor.is_right());
        assert_eq!(survivor.wrong_rows().count(), 1);
        assert!(survivor.text().contains("WRONG"));
        let mut unasked = good.clone();
        unasked.mutants[0].set(DetectorName::WeakMemory, Cell::NotRun { why: "no time".to_owned() });
        assert!(!unasked.is_right() && !unasked.is_wrong() && !unasked.text().contains("WRONG"));
        let mut alarm = good.clone();
        let kill = good.mutants[0].detectors[&DetectorName::WeakMemory].clone();
        alarm.unmutated.insert(DetectorName::WeakMemory, kill.clone());
        assert!(!alarm.is_right());
        let mut reported = good.clone();
        let harmless = reported.mutants.iter_mut().find(|row| row.kind == Kind::Harmless).expect("there are some");
        harmless.set(DetectorName::WeakMemory, kill);
        assert!(!reported.is_right());
    }

    #[test]
    fn a_table_that_cannot_be_is_refused() {
        let impossible: [fn(&mut KillTable); 7] = [
            |table| table.mutants.clear(),
            |table| table.detectors.clear(),
            |table| table.mutants.push(table.mutants[0].clone()),
            |table| table.detectors.push(DetectorName::WeakMemory),
            |table| table.mutants[0].verdict = MutantOutcome::Survived,
            |table| table.detectors = vec![DetectorName::Loom],
            |table| {
                table.unmutated.insert(DetectorName::WeakMemory, Cell::Survived { runs: 1, seconds: -1.0 });
            },
        ];
        for (index, spoil) in impossible.into_iter().enumerate() {
            let mut table = table();
            spoil(&mut table);
            let text = serde_json::to_string(&table).expect("a table is JSON");
            let refused = KillTable::from_json(&text);
            assert!(matches!(&refused, Err(error) if !matches!(error, TableError::Form(_))), "{index}: {refused:?}");
        }
    }

    #[test]
    fn a_table_of_another_commit_is_read_whatever_its_names_denote_today_and_lends_no_cell_to_another_fault() {
        let earlier = {
            let mut table = table();
            let mut faults = table.mutants.iter_mut().filter(|row| row.kind != Kind::Harmless);
            let row = faults.next().expect("a fault");
            row.kind = Kind::Harmless;
            row.set(DetectorName::WeakMemory, Cell::Survived { runs: 9, seconds: 1.0 });
            faults.next().expect("a fault").text.push('!');
            KillTable::from_json(&serde_json::to_string(&table).expect("a table is JSON")).expect("it was so then")
        };
        let mut now = table();
        let unasked = Cell::NotRun { why: "interrupted".to_owned() };
        now.mutants.iter_mut().for_each(|row| row.set(DetectorName::WeakMemory, unasked.clone()));
        let faults = now.mutants.iter().filter(|row| row.kind != Kind::Harmless);
        let changed: BTreeSet<_> = faults.take(2).map(|row| row.name.clone()).collect();
        now.add(&earlier);
        let of_another = now.mutants.iter().filter(|row| row.detectors[&DetectorName::WeakMemory] == unasked);
        let of_another: BTreeSet<_> = of_another.map(|row| row.name.clone()).collect();
        assert_eq!(of_another, changed);
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        let text = serde_json::to_string(&table()).expect("a table is JSON");
        let survived = r#""weak-memory":{"verdict":"survived","runs":9,"seconds":1.0},"#;
        for map in ["\"unmutated\":{", "\"detectors\":{"] {
            let twice = text.replacen(map, &format!("{map}{survived}"), 1);
            assert_ne!(twice, text);
            let refused = KillTable::from_json(&twice).expect_err(map).to_string();
            assert!(refused.contains("weak-memory stands twice"), "{refused}");
        }
    }

    #[test]
    fn a_table_comes_back_from_json_and_takes_columns() {
        let table = table();
        let text = serde_json::to_string(&table).expect("a table is JSON");
        assert_eq!(KillTable::from_json(&text).expect("it comes back"), table);
        let mut gpu = table.clone();
        gpu.detectors = vec![DetectorName::GpuStress];
        for row in &mut gpu.mutants {
            let cell = row.detectors.remove(&DetectorName::WeakMemory).expect("it has one");
            row.set(DetectorName::GpuStress, cell);
        }
        let mut both = table.clone();
        both.add(&gpu);
        assert_eq!(both.detectors, [DetectorName::WeakMemory, DetectorName::GpuStress]);
        assert!(both.mutants.iter().all(|row| row.detectors.len() == 2));
        // And rows, whatever has not looked at them.
        let mut part = table.clone();
        let (gone, left) = (gpu.mutants.split_off(3), part.mutants[..3].to_vec());
        part.mutants.truncate(3);
        gpu.mutants.clone_from(&gone);
        part.add(&gpu);
        assert_eq!(part.mutants.len(), left.len() + gone.len());
        let cells =
            |row: &Row| [DetectorName::WeakMemory, DetectorName::GpuStress].map(|name| row.detectors[&name].clone());
        for row in &part.mutants {
            let [mine, theirs] = cells(row).map(|cell| !matches!(cell, Cell::NotRun { .. }));
            assert_eq!(mine, left.iter().any(|left| left.name == row.name), "{}", row.name);
            assert_ne!(mine, theirs, "{}", row.name);
        }
        KillTable::from_json(&serde_json::to_string(&part).expect("JSON")).expect("it is one");
    }

    #[test]
    fn what_was_not_run_now_is_kept_from_before_and_a_false_alarm_stays_one() {
        let mut before = table();
        before.mutants.sort_by_key(|row| row.kind);
        let mut now = before.clone();
        let name = DetectorName::WeakMemory;
        for row in &mut now.mutants {
            row.set(name, Cell::NotRun { why: "interrupted".to_owned() });
        }
        now.unmutated.insert(name, Cell::NotRun { why: "interrupted".to_owned() });
        now.add(&before);
        assert!(now.mutants == before.mutants && now.unmutated == before.unmutated);
        let mut alarmed = table();
        let killed = before.mutants.iter().flat_map(|row| row.detectors.values()).find(|cell| cell.is_killed());
        alarmed.unmutated.insert(name, killed.expect("one of all").clone());
        now.add(&alarmed);
        assert_eq!(now.false_alarms().count(), 1);
    }

    #[test]
    fn a_table_goes_on_with_one_of_its_own_clean_commit_alone_and_with_faults_alone() {
        let of = |commit: Option<&str>| KillTable { git_commit: commit.map(str::to_owned), ..table() };
        assert!(of(Some("a")).is_of_commit(&of(Some("a"))));
        for (mine, theirs) in [(Some("a"), Some("b")), (Some("a-dirty"), Some("a-dirty")), (None, None)] {
            assert!(!of(mine).is_of_commit(&of(theirs)), "{mine:?}");
        }
        let mut alarmed = table();
        let is_killed = |row: &Row| row.detectors[&DetectorName::WeakMemory].is_killed();
        let killed = alarmed.mutants.iter().find(|row| is_killed(row)).expect("one").detectors.clone();
        alarmed.mutants.iter_mut().for_each(|row| row.detectors.clone_from(&killed));
        for mutant in Mutant::all().expect("readable") {
            let row = alarmed.mutants.iter().find(|row| row.name == mutant.name);
            let is_fault = row.is_some_and(|row| row.kind != Kind::Harmless);
            assert_eq!(alarmed.has_found(DetectorName::WeakMemory, mutant), is_fault, "{mutant}");
            assert!(!alarmed.has_found(DetectorName::GpuStress, mutant), "{mutant}");
        }
    }

    #[test]
    fn nobody_lets_a_harmless_variant_pass_without_looking() {
        let mut unseen = table();
        let row = unseen.mutants.iter_mut().find(|row| row.kind == Kind::Harmless).expect("there are some");
        row.set(DetectorName::WeakMemory, Cell::NotModelled { why: String::new() });
        assert!(!unseen.is_right());
    }
}
