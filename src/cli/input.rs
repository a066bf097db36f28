//! Arrays from files: NumPy's `.npy` and raw little-endian binary.

pub use super::npy::{Array, NpyError, parse_npy};

use super::npy::{MAGIC, MOST_HEADER_BYTES, parse_start};
pub(super) use super::npy::{npy_file, npy_header};
use crate::element::{ElementType, Instance};
use crate::file;
use crate::lab::dataset::{Dataset, NotEnoughMemory};
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
    /// More than there is room for.
    #[error(transparent)]
    TooLarge(#[from] NotEnoughMemory),
    /// Somebody writes it.
    #[error("{} became shorter while it was read; try again when it is complete", path.display())]
    Changed { path: PathBuf },
}

/// Whether a name is one of a `.npy` file.
pub(super) fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

/// A file that holds an array for a scan, as it says of itself; its elements are not read yet.
#[derive(Debug)]
pub struct ArrayFile {
    /// It, behind its first bytes.
    pub(super) file: File,
    /// What it holds.
    pub(super) element: ElementType,
    /// Where the elements begin, in bytes.
    pub(super) data_start: u64,
    /// Bytes of all elements.
    pub(super) data_bytes: u64,
    /// The first bytes of the file, some elements among them.
    pub(super) first_bytes: Vec<u8>,
}

/// Opens a `.npy` or raw file. `asked` is the one type of the command line, if it has one.
///
/// # Errors
/// When the file cannot be read, is damaged, or holds what no scan takes.
pub fn open(path: &Path, asked: Option<ElementType>) -> Result<ArrayFile, InputError> {
    let path_of = || path.to_owned();
    let io_error = |source| InputError::Io { path: path_of(), source };
    let (mut file, file_bytes) = file::open(path).map_err(io_error)?;
    let mut first_bytes = Vec::new();
    (&mut file).take(MOST_HEADER_BYTES).read_to_end(&mut first_bytes).map_err(io_error)?;
    let (element, data_start) = if is_npy(path) || first_bytes.starts_with(MAGIC) {
        let found =
            parse_start(&first_bytes, file_bytes).map_err(|problem| InputError::Npy { path: path_of(), problem })?;
        if let Some(asked) = asked.filter(|&asked| asked != found.0) {
            return Err(InputError::OtherType { path: path_of(), found: found.0, asked });
        }
        (found.0, found.1 as u64)
    } else {
        let element = asked.ok_or_else(|| InputError::TypeMissing { path: path_of() })?;
        let element_bytes = element.bytes();
        if !file_bytes.is_multiple_of(element_bytes as u64) {
            return Err(InputError::PartialElement { path: path_of(), bytes: file_bytes, element, element_bytes });
        }
        (element, 0)
    };
    Ok(ArrayFile { file, element, data_start, data_bytes: file_bytes - data_start, first_bytes })
}

/// Reads a `.npy` or raw file. `asked` is the one type of the command line, if it has one. What the file says of itself
/// is checked before its elements are read.
///
/// # Errors
/// As [`open`], and when it does not fit into memory.
pub fn read(path: &Path, asked: Option<ElementType>) -> Result<Array, InputError> {
    let ArrayFile { file, element, data_start, data_bytes, first_bytes: mut bytes } = open(path, asked)?;
    // With the reference of whatever operator: which one is scanned is not known here.
    let mut instances = Instance::all().filter(|instance| instance.element() == element);
    instances.try_for_each(|instance| Dataset::fits(instance, data_bytes / element.bytes() as u64))?;
    let left = data_start + data_bytes - bytes.len() as u64;
    let rest = file::read_up_to(file, left).map_err(|source| InputError::Io { path: path.to_owned(), source })?;
    bytes.drain(..data_start as usize);
    bytes.extend(rest);
    if bytes.len() as u64 != data_bytes {
        return Err(InputError::Changed { path: path.to_owned() });
    }
    Ok(Array { element, bytes })
}
