//! NumPy's `.npy`, format 1, 2 and 3.
//!
//! The reader is strict and takes what a scan can use: numbers, little-endian, in C order, of any shape (a scan runs over
//! the elements as they lie). Everything else is an error that says what to do in NumPy.

use crate::element::ElementType;

/// What is wrong with a `.npy` file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// The first bytes are not those of the format.
    #[error("not a .npy file: it does not begin with \\x93NUMPY")]
    Magic,
    /// A version from the future.
    #[error(".npy format version {major}.{minor} is unknown; versions 1.0, 2.0 and 3.0 are read")]
    Version { major: u8, minor: u8 },
    /// The file ends inside its header.
    #[error("cut off inside the .npy header: {found} bytes, the header takes {expected}")]
    TruncatedHeader { found: u64, expected: u64 },
    /// The header is not the dictionary it must be.
    #[error("the .npy header is malformed: {0}")]
    Header(String),
    /// A type that no scan takes.
    #[error("the array's dtype is '{0}'; supported are {names} (convert with array.astype)", names = supported())]
    UnsupportedType(String),
    /// The wrong byte order.
    #[error("the array is big-endian ('{0}'); convert with array.astype(array.dtype.newbyteorder('<'))")]
    BigEndian(String),
    /// The wrong element order.
    #[error("the array is in Fortran order; convert with numpy.ascontiguousarray(array)")]
    FortranOrder,
    /// A shape that no memory holds.
    #[error("the shape {0} has more bytes than an address space")]
    ShapeOverflow(String),
    /// Less data than the shape says.
    #[error("cut off: the shape asks for {expected} bytes of data, the file has {found}")]
    TruncatedData { expected: u64, found: u64 },
    /// More data than the shape says.
    #[error(
        "the shape asks for {expected} bytes of data, the file has {found}: the header does not describe this file"
    )]
    ExcessData { expected: u64, found: u64 },
}

/// The elements of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// What they are.
    pub element: ElementType,
    /// Their bytes, little-endian.
    pub bytes: Vec<u8>,
}

/// How every file begins.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The most that a header may take: of a file that says more, nothing more is read.
pub(super) const MOST_HEADER_BYTES: u64 = 1 << 20;

/// Takes the bytes of a `.npy` file apart.
///
/// # Errors
/// When they are none, or an array that no scan takes.
pub fn parse_npy(mut file: Vec<u8>) -> Result<Array, NpyError> {
    let (element, data_start) = parse_start(&file, file.len() as u64)?;
    file.drain(..data_start);
    Ok(Array { element, bytes: file })
}

/// The `.npy` file of an array of numbers, of one dimension.
pub(super) fn npy_file(array: &Array) -> Vec<u8> {
    let Array { element, bytes } = array;
    [&npy_header(*element, (bytes.len() / element.bytes()) as u64)[..], bytes].concat()
}

/// What stands before the elements of such a file.
pub(super) fn npy_header(element: ElementType, length: u64) -> Vec<u8> {
    const START: usize = MAGIC.len() + 4;
    // NumPy says of single bytes that they have no order.
    let order = if element.bytes() == 1 { '|' } else { '<' };
    let name = numpy_name(element);
    let header = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({length},), }}");
    // The elements begin at a multiple of 64, behind a line's end.
    let header_bytes = (START + header.len() + 1).next_multiple_of(64) - START;
    let header = format!("{header:<width$}\n", width = header_bytes - 1);
    let header_length = u16::try_from(header_bytes).expect("a header of one dimension is short");
    [MAGIC, &[1, 0], &header_length.to_le_bytes(), header.as_bytes()].concat()
}

/// What a file of `file_bytes` holds, and where its elements begin, from its first [`MOST_HEADER_BYTES`].
///
/// # Errors
/// As [`parse_npy`].
pub(super) fn parse_start(file: &[u8], file_bytes: u64) -> Result<(ElementType, usize), NpyError> {
    if !file.starts_with(MAGIC) {
        return Err(NpyError::Magic);
    }
    let truncated = |expected: u64| NpyError::TruncatedHeader { found: file_bytes, expected };
    let &[major, minor] = file.get(6..8).and_then(|bytes| bytes.try_into().ok()).ok_or(truncated(8))?;
    let (header_start, header_bytes) = match (major, minor) {
        (1, 0) => {
            let length = file.get(8..10).and_then(|bytes| bytes.try_into().ok()).ok_or(truncated(10))?;
            (10, u64::from(u16::from_le_bytes(length)))
        }
        (2 | 3, 0) => {
            let length = file.get(8..12).and_then(|bytes| bytes.try_into().ok()).ok_or(truncated(12))?;
            (12, u64::from(u32::from_le_bytes(length)))
        }
        _ => return Err(NpyError::Version { major, minor }),
    };
    let data_start = header_start as u64 + header_bytes;
    if data_start > MOST_HEADER_BYTES {
        return Err(NpyError::Header(format!("it takes {data_start} bytes, more than {MOST_HEADER_BYTES}")));
    }
    if (file.len() as u64) < data_start {
        return Err(truncated(data_start));
    }
    let data_start = data_start as usize;
    let text = std::str::from_utf8(&file[header_start..data_start])
        .map_err(|_| NpyError::Header("it is no UTF-8 text".to_owned()))?;
    let header = Header::parse(text)?;
    let element = element_type(&header.description)?;
    // Of an array with fewer than two dimensions, or with all but one of length 1, both orders are one.
    if header.fortran_order && header.shape.iter().filter(|&&length| length != 1).count() > 1 {
        return Err(NpyError::FortranOrder);
    }
    let lengths = || header.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let overflow = || NpyError::ShapeOverflow(format!("({})", lengths()));
    let elements = if header.shape.contains(&0) {
        0
    } else {
        header.shape.iter().try_fold(1u64, |product, &length| product.checked_mul(length)).ok_or_else(overflow)?
    };
    let expected = elements.checked_mul(element.bytes() as u64).ok_or_else(overflow)?;
    if expected > isize::MAX as u64 {
        return Err(overflow());
    }
    let found = file_bytes - data_start as u64;
    if found < expected {
        return Err(NpyError::TruncatedData { expected, found });
    }
    if found > expected {
        return Err(NpyError::ExcessData { expected, found });
    }
    Ok((element, data_start))
}

/// The element type of a NumPy type string, for example `<u4`.
fn element_type(description: &str) -> Result<ElementType, NpyError> {
    let unsupported = || NpyError::UnsupportedType(description.to_owned());
    let mut characters = description.chars();
    let order = characters.next().ok_or_else(unsupported)?;
    let is_it = |element: &ElementType| numpy_name(*element) == characters.as_str();
    let element = ElementType::NUMBERS.iter().copied().find(is_it).ok_or_else(unsupported)?;
    match order {
        '<' => Ok(element),
        '|' if element.bytes() == 1 => Ok(element),
        '>' if element.bytes() == 1 => Ok(element),
        '>' => Err(NpyError::BigEndian(description.to_owned())),
        _ => Err(unsupported()),
    }
}

/// NumPy counts bytes where the names here count bits.
fn numpy_name(element: ElementType) -> String {
    format!("{}{}", &element.name()[..1], element.bytes())
}

/// NumPy's names of the numbers.
fn supported() -> String {
    ElementType::NUMBERS.iter().map(|&element| numpy_name(element)).collect::<Vec<_>>().join(" ")
}

/// The dictionary of a `.npy` file.
#[derive(Debug, PartialEq, Eq)]
struct Header {
    description: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Reads the literal `{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }`, keys in any order.
    fn parse(text: &str) -> Result<Self, NpyError> {
        let mut cursor = Cursor { rest: text };
        let (mut description, mut fortran_order, mut shape) = (None, None, None);
        cursor.expect('{')?;
        while !cursor.accept('}') {
            let key = cursor.string()?;
            cursor.expect(':')?;
            let twice = match key.as_str() {
                "descr" if cursor.peek() == Some('[') => {
                    return Err(NpyError::UnsupportedType("a structured type".to_owned()));
                }
                "descr" => description.replace(cursor.string()?).is_some(),
                "fortran_order" => fortran_order.replace(cursor.boolean()?).is_some(),
                "shape" => shape.replace(cursor.shape()?).is_some(),
                _ => return Err(NpyError::Header(format!("the key '{key}' is unknown"))),
            };
            if twice {
                return Err(NpyError::Header(format!("the key '{key}' is there twice")));
            }
            if !cursor.accept(',') {
                cursor.expect('}')?;
                break;
            }
        }
        if let Some(character) = cursor.peek() {
            return Err(NpyError::Header(format!("'{character}' after the dictionary")));
        }
        let missing = |key| NpyError::Header(format!("the key '{key}' is missing"));
        Ok(Self {
            description: description.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// The rest of a Python literal; white space is skipped before each token.
struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn accept(&mut self, character: char) -> bool {
        let found = self.peek() == Some(character);
        if found {
            self.rest = &self.rest[character.len_utf8()..];
        }
        found
    }

    fn expect(&mut self, character: char) -> Result<(), NpyError> {
        if self.accept(character) { Ok(()) } else { Err(self.unexpected(&format!("'{character}'"))) }
    }

    fn unexpected(&mut self, wanted: &str) -> NpyError {
        NpyError::Header(match self.peek() {
            Some(found) => format!("{wanted} expected, '{}' found", found.escape_default()),
            None => format!("{wanted} expected, the header ends"),
        })
    }

    fn string(&mut self) -> Result<String, NpyError> {
        let quote = self.peek().filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.unexpected("a quoted word"))?;
        self.rest = &self.rest[1..];
        let end = self.rest.find(quote).ok_or_else(|| NpyError::Header("a quotation does not end".to_owned()))?;
        let (word, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        if word.contains('\\') {
            return Err(NpyError::Header("an escape in a word".to_owned()));
        }
        Ok(word.to_owned())
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<u64>, NpyError> {
        self.expect('(')?;
        let mut lengths = Vec::new();
        while !self.accept(')') {
            self.peek();
            let digits = self.rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            if number.is_empty() {
                return Err(self.unexpected("a length"));
            }
            lengths.push(number.parse().map_err(|_| NpyError::ShapeOverflow(number.to_owned()))?);
            // Python 2 wrote its long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(lengths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_begins_at_a_multiple_of_64() {
        for &element in ElementType::NUMBERS {
            for length in [0, 1, 1000, 123_456] {
                let bytes = (0..length * element.bytes()).map(|byte| byte as u8).collect();
                let array = Array { element, bytes };
                let file = npy_file(&array);
                assert_eq!((file.len() - array.bytes.len()) % 64, 0);
                assert_eq!(parse_npy(file), Ok(array));
            }
        }
    }
}
