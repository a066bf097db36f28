//! Sizes, numbers and lines of text as people write and read them.

use std::str::FromStr;

/// The most elements of an array: what can be counted and indexed everywhere.
pub const LARGEST_SIZE: u64 = 1 << 44;

/// How a number of elements, or of anything else, is written.
const NUMBERS: &str = "1000, 1_000, 1e6, 10^6, 10K, 10M, 8Ki, 16Mi, 2^20 or 2^16-1";

/// A size that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is no size.
    #[error("write a size as {NUMBERS}; in bytes as 64KiB or 10MiB-1")]
    Form,
    /// It is no number, which no unit of bytes makes one.
    #[error("write a number as {NUMBERS}")]
    CountForm,
    /// There are more than an array has.
    #[error("a size is at most 2^44 elements; choose a smaller one")]
    TooLarge,
    /// There is more than anything here counts.
    #[error("a number is at most 2^44; choose a smaller one")]
    CountTooLarge,
    /// More is taken off than there is.
    #[error("a size is at least 0 elements; take off fewer")]
    Negative,
    /// More is taken off a number than it has.
    #[error("a number is at least 0; take off less")]
    CountNegative,
}

/// The size of an array as people write it: a number of elements (10M, 8Ki, 2^20) or the bytes that they take (64KiB),
/// either with some elements more or less (2^16-1, 10MiB-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArraySize {
    amount: u64,
    is_bytes: bool,
    /// Elements more, or less.
    change: i64,
}

impl ArraySize {
    /// How many elements of so many bytes. What is left of bytes that are no whole number of elements is left out.
    ///
    /// # Errors
    /// When there are more than an array has, or more are taken off than there are.
    pub fn elements(self, element_bytes: usize) -> Result<u64, SizeError> {
        let whole = if self.is_bytes { self.amount / element_bytes as u64 } else { self.amount };
        match whole.checked_add_signed(self.change) {
            Some(elements) if elements <= LARGEST_SIZE => Ok(elements),
            None if self.change < 0 => Err(SizeError::Negative),
            _ => Err(SizeError::TooLarge),
        }
    }
}

impl FromStr for ArraySize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let (amount, change) = match text.rfind(['+', '-']) {
            Some(at) => {
                let change = i64::try_from(digits(&text[at + 1..])?).map_err(|_| SizeError::TooLarge)?;
                (&text[..at], if text[at..].starts_with('-') { -change } else { change })
            }
            None => (text, 0),
        };
        let in_bytes = UNITS.iter().find_map(|&(name, unit)| Some((amount.strip_suffix(name)?, unit)));
        let size = match in_bytes {
            Some((count, unit)) => Self { amount: scaled(count.trim_end(), unit)?, is_bytes: true, change },
            None => Self { amount: number(amount)?, is_bytes: false, change },
        };
        // What no array of the smallest elements is.
        size.elements(1).map(|_| size)
    }
}

/// Reads the number of elements of so many bytes; see [`ArraySize`].
///
/// # Errors
/// As [`ArraySize::elements`], or when it is no size.
pub fn parse_array_size(text: &str, element_bytes: usize) -> Result<u64, SizeError> {
    text.parse::<ArraySize>()?.elements(element_bytes)
}

/// Reads a number, written as a number of elements is.
///
/// # Errors
/// When it is none, or more than an address space holds.
pub fn parse_count(text: &str) -> Result<u64, SizeError> {
    match text.parse::<ArraySize>() {
        Ok(size) if !size.is_bytes => size.elements(1),
        Ok(_) | Err(SizeError::Form) => Err(SizeError::CountForm),
        Err(SizeError::TooLarge) => Err(SizeError::CountTooLarge),
        Err(SizeError::Negative) => Err(SizeError::CountNegative),
        Err(error) => Err(error),
    }
}

/// A number without what is added to it or taken off.
fn number(text: &str) -> Result<u64, SizeError> {
    if let Some((base, exponent)) = text.split_once('^') {
        let base: u64 = match base {
            "2" => 2,
            "10" => 10,
            _ => return Err(SizeError::Form),
        };
        let exponent = u32::try_from(digits(exponent)?).map_err(|_| SizeError::TooLarge)?;
        return base.checked_pow(exponent).ok_or(SizeError::TooLarge);
    }
    if let Some((mantissa, exponent)) = text.split_once(['e', 'E']) {
        let factor = u32::try_from(digits(exponent)?).ok().and_then(|exponent| 10u64.checked_pow(exponent));
        return match factor {
            Some(factor) => scaled(mantissa, factor),
            // A mantissa that is none is what is wrong first.
            None => Err(scaled(mantissa, LARGEST_SIZE).err().unwrap_or(SizeError::TooLarge)),
        };
    }
    let factors = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("K", 1_000), ("k", 1_000)];
    let factors = factors.into_iter().chain([("M", 1_000_000), ("G", 1_000_000_000), ("", 1)]);
    let mut found = factors.filter_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
    found.next().map_or(Err(SizeError::Form), |(mantissa, factor)| scaled(mantissa.trim_end(), factor))
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

/// `mantissa` × `factor`, where the mantissa may have a fraction that the factor makes whole: 1.5M.
fn scaled(mantissa: &str, factor: u64) -> Result<u64, SizeError> {
    let times = |text: &str| digits(text)?.checked_mul(factor).ok_or(SizeError::TooLarge);
    let Some((whole, fraction)) = mantissa.split_once('.') else {
        return times(mantissa);
    };
    // Underscores stand for nothing here, too.
    let length = u32::try_from(fraction.len() - fraction.matches('_').count()).map_err(|_| SizeError::Form)?;
    let denominator = 10u64.checked_pow(length).ok_or(SizeError::Form)?;
    let (whole, fraction) = (times(whole)?, times(fraction)?);
    if !fraction.is_multiple_of(denominator) {
        return Err(SizeError::Form);
    }
    whole.checked_add(fraction / denominator).ok_or(SizeError::TooLarge)
}

/// A number of elements as people write it: 2^20, 2^16-1, 10^8, 1000. [`ArraySize`] reads it back.
pub fn format_size(n: u64) -> String {
    let near = [0i64, 1, -1, 5, -5].into_iter().find_map(|difference| {
        let power = n.checked_add_signed(difference).filter(|power| power.is_power_of_two() && *power >= 1024)?;
        Some((power.trailing_zeros(), -difference))
    });
    match (near, n.checked_ilog10()) {
        (Some((exponent, 0)), _) => format!("2^{exponent}"),
        (Some((exponent, addend)), _) => format!("2^{exponent}{addend:+}"),
        (None, Some(exponent)) if exponent >= 4 && n == 10u64.pow(exponent) => format!("10^{exponent}"),
        (None, _) => n.to_string(),
    }
}

/// Binary units of bytes, the largest first.
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Two digits a byte, as hashes are written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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

/// The bytes of an array of `n` elements as 4 KiB, or `n` where they are no whole KiB.
pub fn format_array_size(n: u64, element_bytes: usize) -> String {
    let bytes = n.saturating_mul(element_bytes as u64);
    format_bytes(bytes).unwrap_or_else(|| format!("n = {}", format_size(n)))
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

/// Text whose lines have at most `width` characters, broken at blanks: the rest of a line that is too long stands below,
/// two columns further in than it begins.
pub fn fitted(text: &str, width: usize) -> String {
    let fit = |line: &str| {
        if line.chars().count() <= width {
            return line.to_owned();
        }
        let start = line.len() - line.trim_start().len();
        let below = " ".repeat(start + 2);
        // The first line has room for two more, which are lost: it is indented as all are.
        let lines = wrapped(line, width.saturating_sub(start + 2).max(1));
        format!("{}{}", &line[..start], lines.join(&format!("\n{below}")))
    };
    text.split('\n').map(fit).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn elements(text: &str) -> Result<u64, SizeError> {
        parse_array_size(text, 1)
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, size) in [
            ("0", 0),
            ("1000", 1000),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("1e6-1", 999_999),
            ("2.5e6", 2_500_000),
            ("1.5_0M", 1_500_000),
            ("1_0.2_5_K", 10_250),
            ("10^4", 10_000),
            ("10^8+1", 100_000_001),
            ("10K", 10_000),
            ("10M", 10_000_000),
            ("10M-1", 9_999_999),
            ("1.5G", 1_500_000_000),
            ("8Ki", 8192),
            ("8 Ki", 8192),
            ("64Ki+1", 65_537),
            ("16Mi", 1 << 24),
            ("2^0", 1),
            ("2^20", 1 << 20),
            ("2^16-1", 65_535),
            ("2^32+5", (1 << 32) + 5),
            ("7-7", 0),
            (" 7 ", 7),
        ] {
            assert_eq!(elements(text), Ok(size), "{text}");
            assert_eq!(parse_count(text), Ok(size), "{text}");
        }
        for text in [
            "", "-1", "+1", "1.5", "1.0001K", "2^", "2^99+x", "M", "ten", "3^2", "1e", "e6", "e99", "xe99", ".",
            "1e-5", "2^-1", "KiB", "-1KiB", "1KiB1", "1KiB-+1", "1KiB-", "1._M", "8KB", "8kib", "2^10KiB", "1e3KiB",
        ] {
            assert_eq!(elements(text), Err(SizeError::Form), "{text}");
            assert_eq!(parse_count(text), Err(SizeError::CountForm), "{text}");
        }
        assert_eq!(elements("2^44"), Ok(1 << 44));
        assert_eq!(parse_count("8KiB"), Err(SizeError::CountForm));
        assert_eq!(parse_count("2^63"), Err(SizeError::CountTooLarge));
        assert_eq!(parse_count("0-1"), Err(SizeError::CountNegative));
        for text in ["2^3-9", "1KiB-2000", "0-1"] {
            assert_eq!(elements(text), Err(SizeError::Negative), "{text}");
        }
        for text in [
            "2^44+1",
            "2^45",
            "2^63",
            "2^64",
            "2^99",
            "10^14",
            "10^99",
            "2^99999999999",
            "1e14",
            "1e99",
            "99999999999999999999999",
            "17592186044417",
            "99999999G",
            "2^63+99999999999999999999",
            "1-99999999999999999999",
            "99999999999999GiB",
        ] {
            assert_eq!(elements(text), Err(SizeError::TooLarge), "{text}");
        }
        assert!(SizeError::TooLarge.to_string().contains(&format_size(LARGEST_SIZE)));
    }

    #[test]
    fn every_form_that_an_error_names_is_one() {
        let forms = |error: SizeError, reads: fn(&str) -> Result<u64, SizeError>| {
            let text = error.to_string();
            let words =
                text.split([' ', ',', ';']).filter(|word| word.starts_with(|start: char| start.is_ascii_digit()));
            words.inspect(|word| assert!(reads(word).is_ok(), "{word}")).count()
        };
        assert_eq!(forms(SizeError::Form, elements), 12);
        assert_eq!(forms(SizeError::CountForm, parse_count), 10);
    }

    proptest! {
        #[test]
        fn a_size_shown_reads_back(n in 0u64..1 << 40) {
            prop_assert_eq!(elements(&format_size(n)), Ok(n));
        }

        #[test]
        fn a_size_near_a_round_number_reads_back(exponent in 0u32..40, difference in -6i64..7) {
            for round in [1u64 << exponent, 10u64.pow(exponent / 4)] {
                let n = round.saturating_add_signed(difference);
                prop_assert_eq!(elements(&format_size(n)), Ok(n));
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9KMGiB^+e._ -]{0,12}", bytes in 1usize..17) {
            let _ = parse_array_size(&text, bytes);
        }
    }

    #[test]
    fn sizes_in_bytes_are_as_many_elements_as_fit() {
        for (text, element_bytes, elements) in [
            ("4KiB", 1, Ok(4096)),
            ("8KiB", 4, Ok(2048)),
            ("64 KiB", 2, Ok(32_768)),
            ("1MiB-1", 8, Ok((1 << 17) - 1)),
            ("1MiB+3", 4, Ok((1 << 18) + 3)),
            ("1.5KiB", 16, Ok(96)),
            ("0.0009765625KiB", 4, Ok(0)),
            ("4GiB", 4, Ok(1 << 30)),
            ("64Ki", 8, Ok(65_536)),
            ("2^16+1", 8, Ok(65_537)),
            ("10^4", 8, Ok(10_000)),
            ("1KiB-1000", 8, Err(SizeError::Negative)),
        ] {
            assert_eq!(parse_array_size(text, element_bytes), elements, "{text} of {element_bytes}");
        }
        assert_eq!([1, 10_000, 9999, 10_001, 1 << 20].map(format_size), ["1", "10^4", "9999", "10001", "2^20"]);
    }

    #[test]
    fn lines_fit_and_keep_where_they_begin() {
        let text = "short\n  one two three four\n\nunbreakablylongword end\n";
        assert_eq!(fitted(text, 12), "short\n  one two\n    three\n    four\n\nunbreakablylongword\n  end\n");
        assert_eq!(fitted(text, 80), text);
    }

    #[test]
    fn powers_of_two_are_written_as_such() {
        for (value, label) in [(1.0, "2⁰"), (128.0, "2⁷"), (1024.0, "2¹⁰"), (0.25, "2⁻²"), (1000.0, "1000")] {
            assert_eq!(format_power(value), label);
        }
    }
}
