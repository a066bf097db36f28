//! Arrays from files: NumPy's `.npy` and raw little-endian binary.

pub use super::npy::{Array, NpyError, parse_npy};

pub(super) use super::npy::npy_file;
use super::npy::{MAGIC, MOST_HEADER_BYTES, parse_start};
use crate::element::{ElementType, Instance};
use crate::file;
use crate::lab::dataset::{Dataset, NotEnoughMemory};
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
    /// More than there is room for.
    #[error(transparent)]
    TooLarge(#[from] NotEnoughMemory),
    /// Somebody writes it.
    #[error("{} became shorter while it was read; try again when it is complete", path.display())]
    Changed { path: PathBuf },
}

/// Reads a `.npy` or raw file. `asked` is the one type of the command line, if it has one. What the file says of itself
/// is checked before its elements are read.
///
/// # Errors
/// When the file cannot be read, is damaged, holds what no scan takes, or does not fit into memory.
pub fn read(path: &Path, asked: Option<ElementType>) -> Result<Array, InputError> {
    let path_of = || path.to_owned();
    let io_error = |source| InputError::Io { path: path_of(), source };
    let (mut file, file_bytes) = file::open(path).map_err(io_error)?;
    let mut bytes = Vec::new();
    (&mut file).take(MOST_HEADER_BYTES).read_to_end(&mut bytes).map_err(io_error)?;
    let named_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
    let (element, data_start) = if named_npy || bytes.starts_with(MAGIC) {
        let found = parse_start(&bytes, file_bytes).map_err(|problem| InputError::Npy { path: path_of(), problem })?;
        if let Some(asked) = asked.filter(|&asked| asked != found.0) {
            return Err(InputError::OtherType { path: path_of(), found: found.0, asked });
        }
        found
    } else {
        let element = asked.ok_or_else(|| InputError::TypeMissing { path: path_of() })?;
        let element_bytes = element.bytes();
        if !file_bytes.is_multiple_of(element_bytes as u64) {
            return Err(InputError::PartialElement { path: path_of(), bytes: file_bytes, element, element_bytes });
        }
        (element, 0)
    };
    let data_bytes = file_bytes - data_start as u64;
    // With the reference of whatever operator: which one is scanned is not known here.
    let mut instances = Instance::all().filter(|instance| instance.element() == element);
    instances.try_for_each(|instance| Dataset::fits(instance, data_bytes / element.bytes() as u64))?;
    let rest = file::read_up_to(file, file_bytes - bytes.len() as u64).map_err(io_error)?;
    bytes.drain(..data_start);
    bytes.extend(rest);
    let found = bytes.len() as u64;
    if found != data_bytes {
        return Err(InputError::Changed { path: path_of() });
    }
    Ok(Array { element, bytes })
}
