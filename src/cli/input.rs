//! Arrays from files: NumPy's `.npy` and raw little-endian binary.

pub use super::npy::{Array, NpyError, parse_npy};

use super::npy::MAGIC;
use crate::element::ElementType;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that is no array for a scan.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The operating system refused.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A `.npy` file that is none.
    #[error("{}: {problem}", path.display())]
    Npy { path: PathBuf, problem: NpyError },
    /// The file says one type, the command line another.
    #[error("{} holds {found} elements, --types asks for {asked}; leave --types out or convert the file", path.display())]
    OtherType { path: PathBuf, found: ElementType, asked: ElementType },
    /// A raw file does not say what it holds.
    #[error("{} is raw binary (no .npy header): say what it holds with one type, for example --types u32", path.display())]
    TypeMissing { path: PathBuf },
    /// A raw file with a piece of an element at its end.
    #[error("{} has {bytes} bytes, no multiple of the {element_bytes} bytes of {element}; it is cut off or of another type", path.display())]
    PartialElement { path: PathBuf, bytes: u64, element: ElementType, element_bytes: usize },
}

/// Reads a `.npy` or raw file. `asked` is the one type of the command line, if it has one.
///
/// # Errors
/// When the file cannot be read, is damaged, or holds what no scan takes.
pub fn read(path: &Path, asked: Option<ElementType>) -> Result<Array, InputError> {
    let io_error = |source| InputError::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(io_error)?;
    let named_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    if named_npy || bytes.starts_with(MAGIC) {
        let array = parse_npy(bytes).map_err(|problem| InputError::Npy { path: path.to_owned(), problem })?;
        match asked {
            Some(asked) if asked != array.element => {
                Err(InputError::OtherType { path: path.to_owned(), found: array.element, asked })
            }
            _ => Ok(array),
        }
    } else {
        let element = asked.ok_or_else(|| InputError::TypeMissing { path: path.to_owned() })?;
        let element_bytes = element.bytes();
        if bytes.len().is_multiple_of(element_bytes) {
            Ok(Array { element, bytes })
        } else {
            let bytes = bytes.len() as u64;
            Err(InputError::PartialElement { path: path.to_owned(), bytes, element, element_bytes })
        }
    }
}
