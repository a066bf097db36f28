//! Sizes, numbers and lines of text as people write and read them.

/// The most elements of an array: what can be counted and indexed everywhere.
pub const LARGEST_SIZE: u64 = 1 << 44;

/// A number of elements that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is no number of elements.
    #[error("write a size as 1000, 1_000, 1e6, 10K, 10M, 1G, 64Ki, 16Mi, 1Gi, 2^20 or 2^16-1")]
    Form,
    /// There are more than an array has.
    #[error("a size is at most 2^44 elements; choose a smaller one")]
    TooLarge,
}

/// Reads a number of elements.
///
/// # Errors
/// When it is none, or more than an address space holds.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let after_base = text.strip_prefix("2^");
    let size = if let Some((power, addend)) = after_base.and_then(|rest| rest.split_once('+')) {
        let (power, addend) = (power_of_two(power), digits(addend)?);
        power?.checked_add(addend).ok_or(SizeError::TooLarge)?
    } else if let Some((power, subtrahend)) = after_base.and_then(|rest| rest.split_once('-')) {
        let (power, subtrahend) = (power_of_two(power), digits(subtrahend)?);
        power?.checked_sub(subtrahend).ok_or(SizeError::Form)?
    } else if let Some(power) = after_base {
        power_of_two(power)?
    } else if let Some((mantissa, exponent)) = text.split_once(['e', 'E']) {
        let factor = u32::try_from(digits(exponent)?).ok().and_then(|exponent| 10u64.checked_pow(exponent));
        match factor {
            Some(factor) => scaled(mantissa, factor)?,
            // A mantissa that is none is what is wrong first.
            None => return Err(scaled(mantissa, LARGEST_SIZE).err().unwrap_or(SizeError::TooLarge)),
        }
    } else {
        let factors = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("K", 1_000), ("k", 1_000)];
        let factors = factors.into_iter().chain([("M", 1_000_000), ("G", 1_000_000_000), ("", 1)]);
        let mut found = factors.filter_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
        found.next().map_or(Err(SizeError::Form), |(mantissa, factor)| scaled(mantissa, factor))?
    };
    if size <= LARGEST_SIZE { Ok(size) } else { Err(SizeError::TooLarge) }
}

fn digits(text: &str) -> Result<u64, SizeError> {
    let plain: String = text.chars().filter(|&character| character != '_').collect();
    // `parse` takes a sign, a size has none.
    if !plain.is_empty() && plain.chars().all(|character| character.is_ascii_digit()) {
        // Digits alone are a number, so what fails is its length.
        plain.parse().map_err(|_| SizeError::TooLarge)
    } else {
        Err(SizeError::Form)
    }
}

fn power_of_two(exponent: &str) -> Result<u64, SizeError> {
    let exponent = u32::try_from(digits(exponent)?).map_err(|_| SizeError::TooLarge)?;
    1u64.checked_shl(exponent).ok_or(SizeError::TooLarge)
}

/// `mantissa` × `factor`, where the mantissa may have a fraction that the factor makes whole: 1.5M.
fn scaled(mantissa: &str, factor: u64) -> Result<u64, SizeError> {
    let times = |text: &str| digits(text)?.checked_mul(factor).ok_or(SizeError::TooLarge);
    let Some((whole, fraction)) = mantissa.split_once('.') else {
        return times(mantissa);
    };
    let length = u32::try_from(fraction.len()).map_err(|_| SizeError::Form)?;
    let denominator = 10u64.checked_pow(length).ok_or(SizeError::Form)?;
    let (whole, fraction) = (times(whole)?, times(fraction)?);
    if !fraction.is_multiple_of(denominator) {
        return Err(SizeError::Form);
    }
    whole.checked_add(fraction / denominator).ok_or(SizeError::TooLarge)
}

/// A size as people write it: 2^20, 2^16-1, 1000.
pub fn format_size(n: u64) -> String {
    let near = [0i64, 1, -1, 5, -5].into_iter().find_map(|difference| {
        let power = n.checked_add_signed(difference).filter(|power| power.is_power_of_two() && *power >= 1024)?;
        Some((power.trailing_zeros(), -difference))
    });
    match near {
        None => n.to_string(),
        Some((exponent, 0)) => format!("2^{exponent}"),
        Some((exponent, addend)) => format!("2^{exponent}{addend:+}"),
    }
}

/// Binary units of bytes, the largest first.
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Reads a number of elements as sweep files have it: as [`parse_size`], or 10^8, or the bytes of an array of elements
/// of `element_bytes` bytes, with some elements more or less: 64KiB, 1MiB-1. `None` if it is none of these.
pub fn parse_array_size(text: &str, element_bytes: usize) -> Option<u64> {
    let text = text.trim();
    if let Some(exponent) = text.strip_prefix("10^") {
        return exponent.parse().ok().and_then(|exponent| 10u64.checked_pow(exponent));
    }
    let in_bytes = UNITS.iter().find_map(|&(name, unit)| Some((text.split_once(name)?, unit)));
    let Some(((count, change), unit)) = in_bytes else { return parse_size(text).ok() };
    let count = count.trim_end();
    if !count.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let elements = count.parse::<u64>().ok()?.checked_mul(unit)? / element_bytes as u64;
    match change.as_bytes() {
        [] => Some(elements),
        // `parse` takes a sign, but not two.
        [b'+' | b'-', digit, ..] if digit.is_ascii_digit() => elements.checked_add_signed(change.parse().ok()?),
        _ => None,
    }
}

/// 2^20 and 10^8, which are easier read than their digits; otherwise as [`format_size`].
pub fn format_round_size(n: u64) -> String {
    match n.checked_ilog10() {
        Some(exponent) if exponent >= 3 && n == 10u64.pow(exponent) => format!("10^{exponent}"),
        _ => format_size(n),
    }
}

/// 1024 as 2¹⁰; what is no power of two as it is.
pub fn format_power(value: f64) -> String {
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = value.log2();
    if exponent.fract() != 0.0 {
        return value.to_string();
    }
    let superscript = |digit: char| digit.to_digit(10).map_or('⁻', |digit| SUPERSCRIPTS[digit as usize]);
    format!("2{}", exponent.to_string().chars().map(superscript).collect::<String>())
}

/// Bytes as 4 KiB, in the largest unit of which they are a multiple; `None` if there is none.
pub fn format_bytes(bytes: u64) -> Option<String> {
    let (name, unit) = UNITS.iter().find(|(_, unit)| bytes.is_multiple_of(*unit) && bytes > 0)?;
    Some(format!("{} {name}", bytes / unit))
}

/// About four significant digits in at most `width` characters.
pub fn significant(value: f64, width: usize) -> String {
    let digits = match value.abs() {
        magnitude if magnitude >= 1000.0 => 0,
        magnitude if magnitude >= 100.0 => 1,
        magnitude if magnitude >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if text.len() > width { format!("{value:.1e}") } else { text }
}

/// 0.012 s as "12 ms".
pub fn short_seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.0995 => format!("{:.0} ms", (s * 1e3).max(1.0)),
        s if s < 9.95 => format!("{s:.1} s"),
        s => format!("{s:.0} s"),
    }
}

/// 1234567 as "1.2 M".
pub fn short_count(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{} k", count / 1000),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}

/// What stands in a table where there is nothing.
pub const NONE: &str = "–";

/// The value, or a dash.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// Lines of at most `width` characters, broken at blanks.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, size) in [
            ("0", 0),
            ("1000", 1000),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("2.5e6", 2_500_000),
            ("10K", 10_000),
            ("10M", 10_000_000),
            ("1.5G", 1_500_000_000),
            ("64Ki", 65_536),
            ("16Mi", 1 << 24),
            ("2^0", 1),
            ("2^20", 1 << 20),
            ("2^16-1", 65_535),
            ("2^32+5", (1 << 32) + 5),
            (" 7 ", 7),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in [
            "", "-1", "+1", "1.5", "1.0001K", "2^", "2^3-9", "2^99+x", "M", "ten", "3^2", "1e", "e6", "e99", "xe99",
            ".",
        ] {
            assert_eq!(parse_size(text), Err(SizeError::Form), "{text}");
        }
        assert_eq!(parse_size("2^44"), Ok(1 << 44));
        for text in [
            "2^44+1",
            "2^45",
            "2^63",
            "2^64",
            "2^99",
            "2^99999999999",
            "1e14",
            "1e99",
            "99999999999999999999999",
            "17592186044417",
            "99999999G",
            "2^63+99999999999999999999",
        ] {
            assert_eq!(parse_size(text), Err(SizeError::TooLarge), "{text}");
        }
        assert!(SizeError::TooLarge.to_string().contains(&format_size(LARGEST_SIZE)));
    }

    proptest! {
        #[test]
        fn a_size_shown_reads_back(n in 0u64..1 << 40) {
            prop_assert_eq!(parse_size(&format_size(n)), Ok(n));
        }

        #[test]
        fn a_size_near_a_power_of_two_reads_back(exponent in 0u32..40, difference in -6i64..7) {
            let n = (1u64 << exponent).saturating_add_signed(difference);
            prop_assert_eq!(parse_size(&format_size(n)), Ok(n));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9KMGi^+e._-]{0,12}") {
            let _ = parse_size(&text);
        }
    }

    #[test]
    fn sizes_in_bytes_are_as_many_elements_as_fit() {
        for (text, element_bytes, elements) in [
            ("4KiB", 1, Some(4096)),
            ("64 KiB", 2, Some(32_768)),
            ("1MiB-1", 8, Some((1 << 17) - 1)),
            ("1MiB+3", 4, Some((1 << 18) + 3)),
            ("4GiB", 4, Some(1 << 30)),
            ("64Ki", 8, Some(65_536)),
            ("2^16+1", 8, Some(65_537)),
            ("10^4", 8, Some(10_000)),
            ("KiB", 1, None),
            ("-1KiB", 1, None),
            ("1KiB1", 1, None),
            ("1KiB-+1", 1, None),
            ("1KiB-2000", 1, None),
            ("99999999999999GiB", 1, None),
        ] {
            assert_eq!(parse_array_size(text, element_bytes), elements, "{text} of {element_bytes}");
        }
    }

    #[test]
    fn powers_of_two_are_written_as_such() {
        for (value, label) in [(1.0, "2⁰"), (128.0, "2⁷"), (1024.0, "2¹⁰"), (0.25, "2⁻²"), (1000.0, "1000")] {
            assert_eq!(format_power(value), label);
        }
    }
}
