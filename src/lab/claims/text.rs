//! A document, and the figures that its sentences and tables state.
//!
//! What counts as a figure is a matter of form, so that a test can ask for all: a number before a unit of time, rate or ratio, and
//! any number with a decimal point, as tables and lists have them without a unit. Code, and tables that `lookback report --splice`
//! keeps, are left out; versions of software are known by the name before them.

use crate::lab::report::{BEGIN, END};
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::ops::Range;

/// Units of what is measured.
const UNITS: [&str; 18] = [
    "×", "%", "times", "per cent", "percent", "ps", "ns", "µs", "us", "ms", "s", "second", "seconds", "MB/s", "GB/s",
    "GiB/s", "TB/s", "TiB/s",
];
/// What stands before the number of a version.
const VERSIONED: [&str; 7] = ["CUDA", "NVRTC", "PyTorch", "Rust", "Triton", "capability", "ptxas"];
/// Stands for everything that is no text, so that nothing is read across it.
const NO_TEXT: u8 = 0x1f;

/// Day and commit of a record.
pub(super) fn made(date: &str, commit: Option<&str>) -> String {
    let commit = commit.unwrap_or("unknown");
    format!("{}, commit {}", date.get(..10).unwrap_or_default(), commit.get(..7).unwrap_or(commit))
}

/// A text as it reads, wherever its lines end.
pub(super) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A document in Markdown.
#[derive(Debug)]
pub(super) struct Document {
    source: String,
    /// The source as it reads, and where each of its bytes stands in the source.
    words: String,
    places: Vec<usize>,
    /// Paragraphs, headings, items of lists and tables.
    blocks: Vec<Range<usize>>,
    /// Numbers that state something.
    pub figures: Vec<Range<usize>>,
}

impl Document {
    pub fn new(source: String) -> Self {
        let (mut words, mut places) = (String::new(), Vec::new());
        for word in source.split_whitespace() {
            let start = word.as_ptr() as usize - source.as_ptr() as usize;
            if !words.is_empty() {
                words.push(' ');
                places.push(start);
            }
            words.push_str(word);
            places.extend(start..start + word.len());
        }
        let (prose, blocks) = prose(&source);
        let mut figures: Vec<_> = blocks.iter().flat_map(|block| figures(&prose, block)).collect();
        figures.sort_by_key(|figure| figure.start);
        figures.dedup();
        Self { source, words, places, blocks, figures }
    }

    /// Where a text stands, however it is broken into lines.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let text = words(text);
        if text.is_empty() {
            return Vec::new();
        }
        let found = self.words.match_indices(&text);
        found.map(|(at, text)| self.places[at]..self.places[at + text.len() - 1] + 1).collect()
    }

    /// The paragraph, item or table that has a place, or the place itself.
    pub fn block(&self, place: &Range<usize>) -> Range<usize> {
        let blocks = self.blocks.iter().filter(|block| block.start <= place.start && place.end <= block.end);
        blocks.min_by_key(|block| block.len()).unwrap_or(place).clone()
    }

    /// What stands at a place.
    pub fn number(&self, place: &Range<usize>) -> &str {
        &self.source[place.clone()]
    }

    /// The line that a place is in, from 1 on.
    pub fn line(&self, place: &Range<usize>) -> usize {
        self.source[..place.start].matches('\n').count() + 1
    }

    /// The sentence that a place is in, or of a table the row.
    pub fn sentence(&self, place: &Range<usize>) -> String {
        let block = self.block(place);
        let (before, behind) = (&self.source[block.start..place.start], &self.source[place.end..block.end]);
        let is_row = self.source[block.clone()].starts_with('|');
        let is_end = |text: &str, at: usize| {
            let rest = &text[at..];
            if is_row { rest.starts_with('\n') } else { rest.starts_with(". ") || rest.starts_with(".\n") }
        };
        let ends = |text: &str| {
            (0..text.len()).filter(|&at| text.is_char_boundary(at) && is_end(text, at)).collect::<Vec<_>>()
        };
        let start = ends(before).last().map_or(block.start, |at| block.start + at + 1);
        let end = ends(behind).first().map_or(block.end, |at| place.end + at + 1);
        words(&self.source[start..end])
    }
}

/// The source with everything blotted out that is not text to read, and its blocks.
fn prose(source: &str) -> (String, Vec<Range<usize>>) {
    let blot = |byte: u8| if byte.is_ascii_whitespace() { byte } else { NO_TEXT };
    let mut prose: Vec<u8> = source.bytes().map(blot).collect();
    let mut blocks = Vec::new();
    let (mut is_code, mut is_spliced) = (false, false);
    for (event, range) in Parser::new_ext(source, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => is_code = false,
            Event::Html(text) if text.starts_with(BEGIN) => is_spliced = true,
            Event::Html(text) if text.starts_with(END) => is_spliced = false,
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::Table(_)) if !is_spliced => {
                blocks.push(range);
            }
            Event::Text(_) if !is_code && !is_spliced => {
                prose[range.clone()].copy_from_slice(&source.as_bytes()[range])
            }
            _ => {}
        }
    }
    // What is kept of it is whole pieces of the source.
    (String::from_utf8(prose).unwrap_or_default(), blocks)
}

/// The numbers of a block that state something; those of a block within it among them.
fn figures(prose: &str, block: &Range<usize>) -> Vec<Range<usize>> {
    let text = &prose[block.clone()];
    let is_around = |c: char| c == NO_TEXT as char || matches!(c, '(' | '[' | '+' | '−' | '±' | '-' | '~' | '→');
    let all: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for (index, word) in all.iter().enumerate() {
        let number = word.trim_start_matches(is_around);
        let digits = number.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).unwrap_or(number.len());
        let (digits, rest) = (number[..digits].trim_end_matches(['.', ',']), &number[digits..]);
        let next = || format!("{} {}", all.get(index + 1).unwrap_or(&""), all.get(index + 2).unwrap_or(&""));
        let unit = if rest.is_empty() { next() } else { rest.to_owned() };
        let is_version =
            index > 0 && VERSIONED.iter().any(|name| all[index - 1].trim_start_matches(is_around) == *name);
        let ends_here = rest.chars().all(|c| !c.is_alphanumeric());
        let is_decimal = ends_here && digits.matches('.').count() == 1 && !is_version;
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.matches('.').count() < 2;
        if is_number && (is_decimal || is_unit(&unit)) {
            let start = number.as_ptr() as usize - prose.as_ptr() as usize;
            found.push(start..start + digits.len());
        }
    }
    found
}

/// Whether a text begins with a unit that ends there. `16 × 512` is a tile.
fn is_unit(text: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '^'));
    let is_product =
        |unit: &str, rest: &str| unit == "×" && rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    UNITS.iter().any(|unit| text.strip_prefix(unit).is_some_and(|rest| ends(rest) && !is_product(unit, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(text: &str) -> Vec<String> {
        let document = Document::new(text.to_owned());
        document.figures.iter().map(|figure| text[figure.clone()].to_owned()).collect()
    }

    #[test]
    fn figures_are_numbers_with_units_and_decimals_in_text_to_read() {
        for (text, all) in [
            ("It takes 5 µs, or (1.37 times\nas long), +3.2 to 12 % more.", &["5", "1.37", "3.2", "12"][..]),
            ("| a | b |\n|---|---|\n| 2^24 | 1.02, 0.9 |\n| 16 × 512 | 3 |\n", &["1.02", "0.9"]),
            ("- One 7.\n- 2.6 GB/s and 714\n  ns, 3 ms.", &["2.6", "714", "3"]),
            ("(2.7 × one, 3× two) **0.964** of [1.5 times](a-2.5 'x').", &["2.7", "3", "0.964", "1.5"]),
            ("CUB 3.5.0, CUDA 13.0, compute capability 9.0, 2^28, 132 SMs, `1.5 ms`, 8-byte, 5s2", &[]),
            ("```sh\n1.5 ms\n```\n\n    2.5 ms\n", &[]),
            (
                "<!-- lookback:begin x -->\n\n| 1.5 |\n|---|\n| 2.5 |\n\n<!-- lookback:end x -->\n\nThen 3.5 %.",
                &["3.5"],
            ),
        ] {
            assert_eq!(stated(text), all, "{text}");
        }
    }

    #[test]
    fn a_text_stands_wherever_its_lines_end_and_a_block_around_it() {
        let text =
            "# A\n\nOne is\n  1.5 here. Two is 2.5.\nEnd.\n\n- three\n- four\n\n| a |\n|---|\n| b 3.5 |\n| c |\n";
        let document = Document::new(text.to_owned());
        let [place] = &document.find("is 1.5\nhere")[..] else { panic!("it stands there once") };
        assert_eq!(&text[place.clone()], "is\n  1.5 here");
        assert_eq!(document.line(place), 3);
        assert!(text[document.block(place)].starts_with("One is"));
        assert_eq!(document.sentence(&document.figures[1]), "Two is 2.5.");
        assert_eq!(document.sentence(&document.figures[2]), "| b 3.5 |");
        assert!(text[document.block(&document.figures[2])].ends_with("| c |\n"));
        assert!(document.find("none").is_empty() && document.find(" ").is_empty());
        assert_eq!(words("one\n  two\tthree "), "one two three");
    }
}
