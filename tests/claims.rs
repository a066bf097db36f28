//! What README and docs say of the committed records is what these say.

#![cfg(feature = "cli")]

mod common;

use common::committed;
use lookback::lab::claims::{ClaimError, Judgement, Saying, check};
use std::path::Path;

/// Records of which the texts say the most.
const RECORDS: [&str; 5] = [
    "between-h200.jsonl.gz",
    "compaction-h200.jsonl.gz",
    "sorting-h200.jsonl.gz",
    "targets-h100.jsonl.gz",
    "targets-h200.jsonl.gz",
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
    assert!(claims.len() > 250, "{}", claims.len());
    for record in RECORDS {
        assert!(claims.iter().any(|claim| claim.record == Path::new(record)), "nothing is claimed of {record}");
    }
}

#[test]
fn no_sentence_stands_without_a_row() {
    let Some(Judgement { unclaimed, .. }) = judged() else { return };
    let told: Vec<_> = unclaimed.iter().map(|sentence| format!("{sentence}\n")).collect();
    assert!(told.is_empty(), "{} sentences:\n{}", told.len(), told.concat());
}

#[test]
fn what_is_told_or_no_figure_still_stands() {
    let Some(judgement) = judged() else { return };
    let gone: Vec<_> = judgement.quoted.iter().filter(|text| !text.is_written).collect();
    assert!(gone.is_empty(), "{gone:#?}");
    assert!(judgement.count(Saying::Told) > 0 && judgement.count(Saying::NoFigure) > 0);
}

/// A table of one claim of a record of the repository, about a text beside it.
fn judge(claim: &str, record: &Path) -> Result<bool, ClaimError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let reports = folder.path().join("reports");
    std::fs::create_dir(&reports).expect("a folder");
    std::fs::write(folder.path().join("text.md"), "It is faster\nat 216 sizes.\n").expect("a text");
    std::fs::copy(record, reports.join("record.jsonl.gz")).expect("a record");
    let table = reports.join("claims.toml");
    std::fs::write(&table, claim).expect("a table");
    check(&table).map(|judgement| judgement.holds())
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
