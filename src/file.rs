//! Files that a user names: what is none, or is too large, is refused before it is read, so that no read hangs or fills
//! the memory.

use crate::text::format_bytes;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// Text that people write or that describes a run: sweeps, tuning tables, documents, tables of mutants.
pub const TEXT_BYTES: u64 = 64 << 20;
/// Records of a run, as they lie on the disk and when they are decompressed.
pub const RECORD_BYTES: u64 = 4 << 30;

/// Why the operating system refused, in plain words and without its number: "permission denied".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error ").map_or(text.as_str(), |(words, _)| words);
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        // An abbreviation stays as it is.
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().to_string() + &text[first.len_utf8()..]
        }
        _ => text.to_owned(),
    }
}

/// What it is in words, where it is no file.
pub fn kind_of_no_file(kind: FileType) -> Option<&'static str> {
    match (kind.is_file(), kind.is_dir(), kind.is_symlink()) {
        (true, ..) => None,
        (_, true, _) => Some("a folder"),
        (.., true) => Some("a link"),
        _ => Some("a device, a pipe or a socket"),
    }
}

/// Opens a file and says how many bytes it has.
///
/// # Errors
/// When the operating system refuses, or it is a folder, a device, a pipe or a socket.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    // Before it is opened: opening a pipe waits for a writer.
    let metadata = fs::metadata(path)?;
    if let Some(kind) = kind_of_no_file(metadata.file_type()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}; give a file")));
    }
    Ok((File::open(path)?, metadata.len()))
}

/// Reads a file of up to `most` bytes.
///
/// # Errors
/// As [`open`], and when it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, bytes) = open(path)?;
    check_size(bytes, most)?;
    read_up_to(file, most)
}

/// The same of text.
///
/// # Errors
/// As [`read`], and when it is no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, TEXT_BYTES)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text (UTF-8)"))
}

/// Reads to the end of what has up to `most` bytes: a file that grows meanwhile, or what is decompressed.
///
/// # Errors
/// When there are more, or the source fails.
pub fn read_up_to(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    check_size(bytes.len() as u64, most)?;
    Ok(bytes)
}

fn check_size(bytes: u64, most: u64) -> io::Result<()> {
    if bytes <= most {
        return Ok(());
    }
    let most = format_bytes(most).unwrap_or_else(|| format!("{most} bytes"));
    let text = format!("it has more than {most}, which is the most that is read here");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_words() {
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
            assert_eq!(reason(&io::Error::from(kind)), kind.to_string());
        }
        assert_eq!(reason(&io::Error::other("UTF-8 it is not")), "UTF-8 it is not");
        #[cfg(target_os = "linux")]
        for (number, words) in
            [(2, "no such file or directory"), (28, "no space left on device"), (22, "invalid argument")]
        {
            assert_eq!(reason(&io::Error::from_raw_os_error(number)), words);
        }
    }

    #[test]
    fn what_is_no_file_or_too_large_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let small = folder.path().join("small");
        fs::write(&small, b"12345").unwrap();
        assert_eq!(read(&small, 5).unwrap(), b"12345");
        assert_eq!(read(&small, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(read(folder.path(), 5).unwrap_err().to_string().contains("a folder"));
        assert_eq!(read_up_to(io::repeat(0), 100).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // A TiB that takes no room.
        let sparse = folder.path().join("sparse");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&sparse, RECORD_BYTES).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::write(&small, b"\xff").unwrap();
        assert_eq!(read_text(&small).unwrap_err().kind(), io::ErrorKind::InvalidData);
        #[cfg(unix)]
        assert!(read(Path::new("/dev/zero"), 5).unwrap_err().to_string().contains("a device"));
    }
}
