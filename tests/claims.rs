//! What README and docs say of the committed records is what these say.

#![cfg(feature = "cli")]

mod common;

use common::committed;
use lookback::lab::claims::{ClaimError, Judgement, Saying, check};
use std::path::Path;

/// Records of each kind of which the texts say the most.
const RECORDS: [&str; 10] = [
    "between-h200.jsonl.gz",
    "compaction-h200.jsonl.gz",
    "costs-h200.json",
    "h100/problems-h100.jsonl.gz",
    "h100/pytorch-h100.txt",
    "ranks-h200/u32/ranks.json",
    "sorting-h200.jsonl.gz",
    "h100/targets-h100.jsonl.gz",
    "targets-h200.jsonl.gz",
    "trace-h200-4mib/traces.json.gz",
];

/// The table of the repository, judged.
fn judged() -> Option<Judgement> {
    let table = committed("reports/claims.toml")?;
    Some(check(&table).expect("the table and all that it names can be read"))
}

#[test]
fn every_claim_holds() {
    let Some(Judgement { claims, .. }) = judged() else { return };
    let failed: Vec<_> = claims.iter().filter(|claim| !claim.holds()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(claims.len() > 500, "{}", claims.len());
    for record in RECORDS {
        assert!(claims.iter().any(|claim| claim.record == Path::new(record)), "nothing is claimed of {record}");
    }
}

#[test]
fn no_sentence_stands_without_a_row() {
    let Some(Judgement { unclaimed, .. }) = judged() else { return };
    let told: Vec<_> = unclaimed.iter().map(|sentence| format!("{sentence}\n")).collect();
    assert!(told.is_empty(), "without a row:\n{}", told.concat());
}

#[test]
fn what_is_told_or_no_figure_still_stands() {
    let Some(judgement) = judged() else { return };
    let gone: Vec<_> = judgement.quoted.iter().filter(|text| !text.is_written).collect();
    assert!(gone.is_empty(), "{gone:#?}");
    assert!(judgement.count(Saying::Told) > 0 && judgement.count(Saying::NoFigure) > 0);
}

/// A table about a text beside it and a record of the repository, judged.
fn judgement(table: &str, text: &str, record: &Path) -> Result<Judgement, ClaimError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let reports = folder.path().join("reports");
    std::fs::create_dir(&reports).expect("a folder");
    std::fs::write(folder.path().join("text.md"), text).expect("a text");
    std::fs::copy(record, reports.join("record.jsonl.gz")).expect("a record");
    std::fs::write(reports.join("claims.toml"), table).expect("a table");
    check(&reports.join("claims.toml"))
}

/// Whether all of a table holds.
fn judge(table: &str, record: &Path) -> Result<bool, ClaimError> {
    judgement(table, "It is faster\nat 216 sizes.\n", record).map(|judgement| judgement.holds())
}

const CLAIM: &str = r#"
[[sentence]]
file = "text.md"
text = "faster at 216 sizes"

[[sentence.claims]]
record = "record.jsonl.gz"
against = "peers"
figure = "graph"
quantity = "times-as-fast"
statistic = "points"
value = 216
"#;

#[test]
fn a_claim_holds_as_long_as_its_text_and_its_number_do() {
    let Some(record) = committed("reports/between-h200.jsonl.gz") else { return };
    assert!(judge(CLAIM, &record).expect("a claim"));
    let changed = |from: &str, to: &str| {
        assert!(CLAIM.contains(from), "{from}");
        judge(&CLAIM.replace(from, to), &record)
    };
    for (from, to) in [
        ("at 216 sizes", "at 217 sizes"),
        ("value = 216", "value = 215"),
        ("\"graph\"", "\"stream\""),
        ("value = 216", "value = 216\ntypes = [\"u8\"]"),
        ("value = 216", "value = 216\nfrom = \"1GiB\""),
        ("\"peers\"", "\"nobody\""),
        ("value = 216", "value = 216\nsubject = \"lookback\""),
    ] {
        assert!(!changed(from, to).expect("a claim"), "{from} -> {to}");
    }
    for (from, to, says) in [
        ("text.md", "no.md", "no.md"),
        ("\"record.jsonl.gz\"", "\"none.jsonl.gz\"", "none"),
        ("\"times-as-fast\"", "\"microseconds\"", "stands alone"),
        ("\"times-as-fast\"", "\"parsecs\"", "parsecs"),
        ("value = 216", "value = 216\nfrom = \"some\"", "2^"),
        ("value = 216", "value = 216\ncolour = \"red\"", "colour"),
        (CLAIM, "sentence = []", "no claims"),
    ] {
        let error = changed(from, to).expect_err(to).to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
}

const TOLD: &str = r#"
[[told]]
file = "text.md"
texts = ["by 1.5 times"]
command = "lookback compare"
device = "one H200"
date = "2026-11-28"
commit = "6665273"
"#;

#[test]
fn a_figure_that_nothing_is_said_of_is_told_with_its_place_and_what_to_do() {
    let Some(record) = committed("reports/between-h200.jsonl.gz") else { return };
    let text = "# Title\n\nIt is faster\nat 216 sizes. Elsewhere\nit is faster by 1.5 times. It has 3 ways.\n";
    let documents = format!("documents = [\"text.md\"]\n{CLAIM}");
    let judged = |more: &str| judgement(&format!("{documents}{more}"), text, &record).expect("a table");

    let alone = judged("");
    let [sentence] = &alone.unclaimed[..] else { panic!("one sentence, not {:#?}", alone.unclaimed) };
    let told = sentence.to_string();
    for part in ["text.md:5: ", "'Elsewhere it is faster by 1.5 times.'", "states 1.5", "[[told]]", "[[no-figure]]"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!alone.holds());

    let no_figure = "[[no-figure]]\nfile = \"text.md\"\nblocks = [\"Elsewhere\"]\nwhy = \"a paragraph\"\n";
    let sentence = CLAIM.replace("faster at 216 sizes", "faster at 216 sizes. Elsewhere it is faster by 1.5 times");
    for said in [TOLD, no_figure, &sentence] {
        assert!(judged(said).holds(), "{said}");
    }
    assert!(judged(&TOLD.replace("1.5 times", "1.6 times")).quoted.iter().all(|text| !text.is_written));
}

#[test]
fn what_is_told_says_how_it_came_about() {
    let Some(record) = committed("reports/between-h200.jsonl.gz") else { return };
    for (from, to, says) in [
        ("lookback compare", "", "what was run"),
        ("one H200", " ", "on what device"),
        ("2026-11-28", "yesterday", "no day"),
        ("2026-11-28", "2026-11-27 to then", "no day"),
        ("6665273", "a later one", "hexadecimal"),
        ("date", "day", "unknown field"),
    ] {
        let told = format!("{CLAIM}{}", TOLD.replace(from, to));
        let error = judge(&told, &record).expect_err(to).to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
    let silent = format!("{CLAIM}[[no-figure]]\nfile = \"text.md\"\ntexts = [\"faster\"]\nwhy = \" \"\n");
    let empty = format!("{CLAIM}[[sentence]]\nfile = \"text.md\"\ntext = \"faster\"\n");
    for (table, says) in [(silent, "say why"), (empty, "nothing is computed")] {
        assert!(judge(&table, &record).expect_err(says).to_string().contains(says));
    }
    let two_days = format!("{CLAIM}{}", TOLD.replace("2026-11-28", "2026-11-27 to 2026-11-28"));
    assert!(!judge(&two_days, &record).expect("a table"), "the text is not there");
}

#[test]
fn a_reading_is_of_a_number_in_a_record_of_another_kind() {
    let Some(record) = committed("reports/h100/pytorch-h100.txt") else { return };
    let reading = |of: &str, value: f64| {
        let folder = record.parent().expect("its folder").display();
        let table = format!(
            "[[sentence]]\nfile = \"text.md\"\ntext = \"faster\"\n\
             readings = [{{ record = '{folder}/pytorch-h100.txt', of = ['{of}'], after = 'us', value = {value} }}]\n"
        );
        judge(&table, &record)
    };
    assert!(reading("flat f32 268435456", 1.41).expect("a reading"));
    assert!(!reading("flat f32 268435456", 1.42).expect("a reading"));
    for tolerance in ["inf", "nan", "-1.0"] {
        let value = format!("value = 1.41, tolerance = {tolerance}");
        let folder = record.parent().expect("its folder").display();
        let table = format!(
            "[[sentence]]\nfile = \"text.md\"\ntext = \"faster\"\n\
             readings = [{{ record = '{folder}/pytorch-h100.txt', of = ['flat f32 268435456'], after = 'us', {value} }}]\n"
        );
        assert!(judge(&table, &record).expect_err(tolerance).to_string().contains("its tolerance is"), "{tolerance}");
    }
    for (of, says) in [("nobody", "no entry"), ("torch", "more than one entry")] {
        assert!(reading(of, 1.0).expect_err(of).to_string().contains(says));
    }
}
