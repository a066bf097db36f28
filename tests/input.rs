//! Files as they come: what NumPy writes is read, what is damaged is a typed error and never a panic.
#![cfg(feature = "cli")]

use lookback::cli::input::{Array, InputError, NpyError, parse_npy, read};
use lookback::element::ElementType;
use proptest::prelude::*;

/// A `.npy` file as NumPy writes it: the header ends with a newline and pads to 64 bytes.
fn npy(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let prefix = if version == 1 { 10 } else { 12 };
    let mut header = dictionary.to_owned();
    while !(prefix + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend(u16::try_from(header.len()).unwrap().to_le_bytes()),
        _ => file.extend(u32::try_from(header.len()).unwrap().to_le_bytes()),
    }
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn dictionary(description: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{description}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
}

#[test]
fn every_version_and_number_type_is_read() {
    for version in [1, 2, 3] {
        for (description, element) in [
            ("|u1", ElementType::U8),
            ("<u2", ElementType::U16),
            ("<u4", ElementType::U32),
            ("<i4", ElementType::I32),
            ("<u8", ElementType::U64),
            ("<i8", ElementType::I64),
            ("<f4", ElementType::F32),
            ("<f8", ElementType::F64),
        ] {
            let data: Vec<u8> = (0..3 * element.bytes() as u8).collect();
            let file = npy(version, &dictionary(description, "False", "(3,)"), &data);
            assert_eq!(parse_npy(file), Ok(Array { element, bytes: data }), "{description} in version {version}");
        }
    }
}

#[test]
fn shapes_are_flattened_and_may_be_empty() {
    for (shape, elements) in [
        ("()", 1),
        ("(0,)", 0),
        ("(3, 0)", 0),
        ("(2, 3)", 6),
        ("(2, 3, 4)", 24),
        ("(5L,)", 5),
        ("(18446744073709551615, 0)", 0),
    ] {
        let file = npy(1, &dictionary("|u1", "False", shape), &vec![7; elements]);
        assert_eq!(parse_npy(file).map(|array| array.bytes.len()), Ok(elements), "{shape}");
    }
}

#[test]
fn fortran_order_matters_only_where_two_dimensions_are_longer_than_one() {
    for (shape, refused) in [("(6,)", false), ("(6, 1)", false), ("(1, 6)", false), ("(2, 3)", true)] {
        let file = npy(1, &dictionary("|u1", "True", shape), &[0; 6]);
        assert_eq!(parse_npy(file) == Err(NpyError::FortranOrder), refused, "{shape}");
    }
}

#[test]
fn what_no_scan_takes_is_named() {
    let parse =
        |description, shape: &str, bytes| parse_npy(npy(1, &dictionary(description, "False", shape), &vec![0; bytes]));
    assert_eq!(parse(">u4", "(2,)", 8), Err(NpyError::BigEndian(">u4".into())));
    for unsupported in ["|b1", "<f16", "<c8", "<i16", "<u3", "<M8[ns]", "|S4", "|O", "=u4", ""] {
        assert_eq!(parse(unsupported, "(2,)", 8), Err(NpyError::UnsupportedType(unsupported.into())), "{unsupported}");
    }
    let structured = "{'descr': [('a', '<u4'), ('b', '<u4')], 'fortran_order': False, 'shape': (1,), }";
    assert!(matches!(parse_npy(npy(1, structured, &[0; 8])), Err(NpyError::UnsupportedType(_))));
}

#[test]
fn a_header_that_lies_about_the_data_is_refused() {
    let parse = |shape, bytes| parse_npy(npy(1, &dictionary("<u4", "False", shape), &vec![0; bytes]));
    assert_eq!(parse("(3,)", 11), Err(NpyError::TruncatedData { expected: 12, found: 11 }));
    assert_eq!(parse("(3,)", 13), Err(NpyError::ExcessData { expected: 12, found: 13 }));
    assert_eq!(parse("(3,)", 0), Err(NpyError::TruncatedData { expected: 12, found: 0 }));
    for absurd in ["(18446744073709551615, 2)", "(4611686018427387904,)", "(99999999999999999999999,)"] {
        assert!(matches!(parse(absurd, 0), Err(NpyError::ShapeOverflow(_))), "{absurd}");
    }
}

#[test]
fn malformed_headers_are_refused() {
    for header in [
        "",
        "{",
        "{'descr': '<u4', 'fortran_order': False}",
        "{'descr': '<u4', 'shape': (0,)}",
        "{'fortran_order': False, 'shape': (0,)}",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (0,), 'more': 1}",
        "{'descr': '<u4', 'descr': '<u4', 'fortran_order': False, 'shape': (0,)}",
        "{'descr': '<u4', 'fortran_order': 0, 'shape': (0,)}",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<u4', 'fortran_order': False, 'shape': [0]}",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (0,)} x",
        "{'descr': '<u4, 'fortran_order': False, 'shape': (0,)}",
        "{'descr': '<u\\x34', 'fortran_order': False, 'shape': (0,)}",
        "__import__('os').system('true')",
    ] {
        assert!(matches!(parse_npy(npy(1, header, &[])), Err(NpyError::Header(_))), "{header}");
    }
}

#[test]
fn every_truncation_of_a_good_file_is_refused() {
    let good = npy(1, &dictionary("<u4", "False", "(3,)"), &[1; 12]);
    for length in 0..good.len() {
        assert!(parse_npy(good[..length].to_vec()).is_err(), "{length} bytes");
    }
    assert!(parse_npy(good).is_ok());
}

#[test]
fn a_version_from_the_future_is_refused() {
    let mut file = npy(3, &dictionary("<u4", "False", "(0,)"), &[]);
    file[6] = 4;
    assert_eq!(parse_npy(file), Err(NpyError::Version { major: 4, minor: 0 }));
}

#[test]
fn raw_files_need_one_type_and_whole_elements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("array.bin");
    std::fs::write(&path, [1; 12]).unwrap();
    let array = read(&path, Some(ElementType::U32)).unwrap();
    assert_eq!((array.element, array.bytes.len()), (ElementType::U32, 12));
    assert!(matches!(read(&path, None), Err(InputError::TypeMissing { .. })));
    assert!(matches!(read(&path, Some(ElementType::U64)), Err(InputError::PartialElement { bytes: 12, .. })));
    assert!(matches!(read(&directory.path().join("none"), None), Err(InputError::Io { .. })));
    assert!(matches!(read(directory.path(), None), Err(InputError::Io { .. })));
}

#[test]
fn a_type_other_than_the_files_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("array.npy");
    std::fs::write(&path, npy(1, &dictionary("<f4", "False", "(1,)"), &[0; 4])).unwrap();
    assert!(read(&path, Some(ElementType::F32)).is_ok());
    assert!(read(&path, None).is_ok());
    assert!(matches!(read(&path, Some(ElementType::U32)), Err(InputError::OtherType { .. })));
    std::fs::write(&path, [0; 4]).unwrap();
    assert!(matches!(read(&path, None), Err(InputError::Npy { problem: NpyError::Magic, .. })));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(&bytes);
        let _ = parse_npy(file);
        let _ = parse_npy(bytes);
    }

    #[test]
    fn no_change_of_one_byte_makes_the_reader_panic(at in 0usize..140, to: u8) {
        let mut file = npy(1, &dictionary("<u4", "False", "(3,)"), &[1; 12]);
        file[at] = to;
        let _ = parse_npy(file);
    }

    #[test]
    fn no_header_text_makes_the_reader_panic(text in "[{}()\\[\\]'\",: a-zé0-9]{0,60}") {
        let _ = parse_npy(npy(2, &text, &[]));
    }
}

/// A user's mistakes that must neither hang nor fill the memory: nothing is read of what is no file, and of a file nothing
/// beyond what it says it holds.
#[test]
#[cfg(unix)]
fn what_is_no_array_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [std::path::Path::new("/dev/zero"), folder.path(), &pipe] {
        assert!(matches!(read(path, Some(ElementType::U8)), Err(InputError::Io { .. })), "{}", path.display());
    }
    let sparse = |name: &str, start: &[u8]| {
        use std::io::Write as _;
        let path = folder.path().join(name);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(start).unwrap();
        file.set_len(1 << 40).unwrap();
        path
    };
    let refused = read(&sparse("zeros.npy", b""), None);
    assert!(matches!(refused, Err(InputError::Npy { problem: NpyError::Magic, .. })), "{refused:?}");
    let refused = read(&sparse("raw", b""), Some(ElementType::U8));
    assert!(matches!(refused, Err(InputError::TooLarge(_))), "{refused:?}");
    let refused = read(&sparse("more.npy", &npy(1, &dictionary("<u4", "False", "(3,)"), &[0; 12])), None);
    assert!(matches!(refused, Err(InputError::Npy { problem: NpyError::ExcessData { .. }, .. })), "{refused:?}");
    let huge_header = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
    let refused = read(&sparse("header.npy", &huge_header), None);
    assert!(matches!(refused, Err(InputError::Npy { problem: NpyError::Header(_), .. })), "{refused:?}");
}
