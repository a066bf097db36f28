//! The faults as data: `rows/cuda/launch.toml` says what can be wrong in `src/cuda/launch.rs`, and which test must fail
//! then. docs/stress.md says how one is written.

use super::source::Source;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A fault on purpose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Unique among all.
    pub name: String,
    /// What it is, in a sentence.
    pub text: String,
    /// Who must see it: `driver::` and a test of `tests/driver.rs`, or `lib::` and the path of one in `src/`.
    pub test: String,
    /// Whether nothing may come back from it: else a test that takes too long is an error.
    #[serde(default)]
    pub hangs: bool,
    #[serde(rename = "edit")]
    edits: Vec<Edit>,
    /// The file that it is in, below the repository's root.
    #[serde(skip)]
    pub file: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The function, with its type if it has one: `Workspace::reserve`.
    #[serde(rename = "in")]
    function: String,
    /// What is looked for; its brackets are whole.
    replace: String,
    /// What stands in its place.
    becomes: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "fault")]
    faults: Vec<Fault>,
}

impl Fault {
    /// Every one, by file and as the files have them.
    ///
    /// # Errors
    /// When a file cannot be read; the error names it.
    pub fn all(root: &Path) -> Result<Vec<Self>, String> {
        let folder = root.join("tests/host_faults/rows");
        let mut faults = Vec::new();
        for path in super::files_below(&folder) {
            let below = path.strip_prefix(&folder).expect("found below it");
            let in_file = |error: String| format!("{}: {error}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| in_file(error.to_string()))?;
            let read: File = toml::from_str(&text).map_err(|error| in_file(error.to_string()))?;
            let file = Path::new("src").join(below).with_extension("rs");
            faults.extend(read.faults.into_iter().map(|fault| Self { file: file.clone(), ..fault }));
        }
        Ok(faults)
    }

    /// Its file with the fault in it.
    ///
    /// # Errors
    /// When an edit does not fit exactly once, or the file with it is no Rust or the same.
    pub fn woven(&self, root: &Path) -> Result<String, String> {
        let in_fault = |error: String| format!("the host fault '{}' of {}: {error}", self.name, self.file.display());
        let text = std::fs::read_to_string(root.join(&self.file)).map_err(|error| in_fault(error.to_string()))?;
        let source = Source::new(text).map_err(in_fault)?;
        let place = |edit: &Edit| source.find(&edit.function, &edit.replace);
        let edits: Result<Vec<_>, _> =
            self.edits.iter().map(|edit| Ok((place(edit)?, edit.becomes.as_str()))).collect();
        source.with(edits.map_err(in_fault)?).map_err(in_fault)
    }

    /// The program that holds the test, as cargo names it, and the test's name there.
    pub fn test(&self) -> (&str, &str) {
        self.test.split_once("::").unwrap_or(("", &self.test))
    }

    /// Whether its test is there.
    pub fn has_its_test(&self, root: &Path) -> bool {
        let (program, name) = self.test();
        let (files, test) = match (program, name.split_once("::tests::")) {
            ("driver", _) => (vec![root.join("tests/driver.rs")], name.to_owned()),
            ("lib", Some((module, test))) => {
                let at = root.join("src").join(module.replace("::", "/"));
                (vec![at.with_extension("rs"), at.join("mod.rs")], format!("tests::{test}"))
            }
            _ => return false,
        };
        files.into_iter().any(|file| {
            let source = std::fs::read_to_string(file).ok().and_then(|text| Source::new(text).ok());
            source.is_some_and(|source| source.functions.iter().any(|known| known.is_test && known.path == test))
        })
    }
}
