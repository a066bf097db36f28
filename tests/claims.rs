//! What README and docs say of the committed records is what these say.

#![cfg(feature = "cli")]

mod common;

use common::committed;
use lookback::lab::claims::{ClaimError, check};
use std::path::Path;

#[test]
fn every_claim_holds() {
    let Some(table) = committed("reports/claims.toml") else { return };
    let judged = check(&table).expect("the table and all that it names can be read");
    let failed: Vec<_> = judged.iter().filter(|claim| !claim.holds()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(judged.len() > 250, "{}", judged.len());
    for record in ["between-h200", "compaction-h200", "sorting-h200", "targets-h100", "targets-h200"] {
        let is_of = |claim: &Path| claim == Path::new(&format!("{record}.jsonl.gz"));
        assert!(judged.iter().any(|judged| is_of(&judged.claim.record)), "nothing is claimed of {record}");
    }
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
    check(&table).map(|judged| judged.iter().all(|claim| claim.holds()))
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
