//! Where chunks come from and where they go.

use super::plan::{ChunkPlan, PlanError};
use crate::element::{ArrayElement, own_name};
use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

/// The arrays that a scan loads. Several threads read at once.
pub trait Source: Sync {
    /// Fills `into` with the bytes of the array of that number, in the order of the definition, that begin `offset` bytes from
    /// its start.
    ///
    /// # Errors
    /// When they cannot be read; a source that has fewer says [`io::ErrorKind::UnexpectedEof`].
    fn read(&self, array: usize, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// The arrays that a scan stores. Several threads write at once, each what no other does.
pub trait Sink: Sync {
    /// Takes the bytes of the array of that number that begin `offset` bytes from its start.
    ///
    /// # Errors
    /// When they cannot be written.
    fn write(&self, array: usize, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// So many bytes of an output are written by one thread at a time.
const PIECE_BYTES: usize = 1 << 16;

/// Slices of the host's memory, of any size, mapped files among them.
#[derive(Debug, Default)]
pub struct HostArrays<'a> {
    inputs: Vec<(&'static str, &'a [u8])>,
    outputs: Vec<Output<'a>>,
}

#[derive(Debug)]
struct Output<'a> {
    cuda_type: &'static str,
    bytes: usize,
    pieces: Vec<Mutex<&'a mut [u8]>>,
}

impl<'a> HostArrays<'a> {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next array of those that are loaded, in the order of the definition.
    #[must_use]
    pub fn input<T: ArrayElement>(mut self, array: &'a [T]) -> Self {
        self.inputs.push((T::CUDA_TYPE, bytemuck::cast_slice(array)));
        self
    }

    /// The next array of those that are stored.
    #[must_use]
    pub fn output<T: ArrayElement>(mut self, array: &'a mut [T]) -> Self {
        let array: &mut [u8] = bytemuck::cast_slice_mut(array);
        let (bytes, pieces) = (array.len(), array.chunks_mut(PIECE_BYTES).map(Mutex::new).collect());
        self.outputs.push(Output { cuda_type: T::CUDA_TYPE, bytes, pieces });
        self
    }

    /// Whether they are those that the plan asks for.
    ///
    /// # Errors
    /// Another number of arrays, other types, other lengths.
    pub fn check(&self, plan: &ChunkPlan) -> Result<(), PlanError> {
        let defined = plan.defined();
        let [input_names, output_names] = defined.names();
        let inputs: Vec<_> = self.inputs.iter().map(|(name, bytes)| (*name, bytes.len())).collect();
        let outputs: Vec<_> = self.outputs.iter().map(|output| (output.cuda_type, output.bytes)).collect();
        let sides = [
            ("loads", input_names, inputs, defined.inputs().collect::<Vec<_>>()),
            ("stores", output_names, outputs, defined.outputs().collect()),
        ];
        for (verb, names, given, asked) in sides {
            if given.len() != asked.len() {
                let (asked, given) = (asked.len(), given.len());
                return Err(PlanError::Arrays(format!("{defined} {verb} {asked} array(s) and is given {given}")));
            }
            for ((name, (given, length)), (asked, bytes)) in names.into_iter().zip(given).zip(asked) {
                let elements = plan.elements();
                if given != asked {
                    let [asked, given] = [asked, given].map(own_name);
                    let text =
                        format!("{defined}: the array '{name}' holds '{asked}', and it is given one of '{given}'");
                    return Err(PlanError::Arrays(text));
                }
                if length as u64 != elements * bytes as u64 {
                    let has = length / bytes;
                    let text = format!("{defined}: the array '{name}' has {has} elements, for {elements}");
                    return Err(PlanError::Arrays(text));
                }
            }
        }
        Ok(())
    }
}

impl Source for HostArrays<'_> {
    fn read(&self, array: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let part = start.and_then(|start| self.inputs.get(array)?.1.get(start..)?.get(..into.len()));
        into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Sink for HostArrays<'_> {
    fn write(&self, array: usize, offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        let output = self.outputs.get(array).ok_or(io::ErrorKind::NotFound)?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        if output.bytes.checked_sub(start).is_none_or(|room| room < bytes.len()) {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let mut within = start % PIECE_BYTES;
        for piece in &output.pieces[start / PIECE_BYTES..] {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - within));
            // Whoever panicked with a piece has written a part of what is written again.
            piece.lock().unwrap_or_else(PoisonError::into_inner)[within..within + now.len()].copy_from_slice(now);
            (bytes, within) = (later, 0);
            if bytes.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// One array in a file, read and written by position.
#[derive(Debug)]
pub struct FileArray {
    /// Of one file, opened several times: the operating system reads ahead for each by itself, and would be misled by threads
    /// that take turns on one.
    files: Vec<File>,
    /// Where the array begins.
    start: u64,
    /// What one of them reads before the next one does.
    stride: u64,
}

impl FileArray {
    /// The array that begins `start` bytes from the beginning, in a file that was opened once or several times. Chunks of `stride` bytes go
    /// to one of these after the other.
    ///
    /// # Panics
    /// When the file was not opened.
    pub fn new(files: Vec<File>, start: u64, stride: u64) -> Self {
        assert!(!files.is_empty(), "a file that is open");
        Self { files, start, stride: stride.max(1) }
    }

    fn file(&self, offset: u64) -> &File {
        &self.files[(offset / self.stride % self.files.len() as u64) as usize]
    }
}

#[cfg(unix)]
impl Source for FileArray {
    fn read(&self, _array: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self.file(offset), into, self.start + offset)
    }
}

#[cfg(unix)]
impl Sink for FileArray {
    fn write(&self, _array: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self.file(offset), bytes, self.start + offset)
    }
}

/// Reads nothing, so that what is scanned is whatever was in memory, and keeps nothing: what the device does by itself.
#[derive(Debug, Clone, Copy)]
pub struct NoFile;

impl Source for NoFile {
    fn read(&self, _array: usize, _offset: u64, _into: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for NoFile {
    fn write(&self, _array: usize, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
