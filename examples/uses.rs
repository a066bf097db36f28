//! What scans are for, on the words of a text: where two texts first differ, words in order, and the graph of which word follows
//! which. Over slices on the CPU device, each step compared with the loop that it stands for:
//!
//!     cargo run --release --example uses -- README.md
//!
//! On a GPU the same definitions run by `Scanner::run` over cudarc's slices: the calls have the same names.

mod check;

use check::{Outcome, checked};
use lookback::element::{Definition, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use std::error::Error;

/// As many characters of a word are compared at one time.
const CHUNK: usize = 8;

/// The place at which two texts of one length first differ: the least of all places where they do, a minimum-scan whose last state
/// is asked for. What it stores says of each place whether they are the same up to it.
fn first_difference(scanner: &mut HostScanner, left: &[u8], right: &[u8]) -> Result<Option<usize>, Box<dyn Error>> {
    let least = Definition::new::<u64>("first difference", "::lookback::u64")
        .identity("~0ull")
        .combine("return left < right ? left : right;")
        .commutative()
        .input::<u8>("a")
        .input::<u8>("b")
        .load("return a != b ? i : ~0ull;")
        .output::<u8>("same")
        .store("same = state == ~0ull;")
        .define()?;
    let (mut same, mut place) = (vec![0_u8; left.len()], [0_u64]);
    scanner.run(least).input(left).input(right).output(&mut same).final_state(&mut place).inclusive()?;
    Ok((place[0] != u64::MAX).then_some(place[0] as usize))
}

/// The order of words by their letters: a stable sort by each chunk of eight, from the last to the first. A chunk is a number whose
/// highest byte is its first letter; behind the end of a word stand zeros.
fn order_of_words(scanner: &mut HostScanner, words: &[&str]) -> Result<Vec<u32>, Box<dyn Error>> {
    let by_chunk = Definition::sort::<u64>()?.with::<u32>("word").define()?;
    let mut order: Vec<u32> = (0..words.len() as u32).collect();
    let longest = words.iter().map(|word| word.len()).max().unwrap_or(0);
    for chunk in (0..longest.div_ceil(CHUNK)).rev() {
        let key = |&word: &u32| {
            let letters = words[word as usize].as_bytes().iter().skip(chunk * CHUNK).take(CHUNK);
            letters.zip((0..CHUNK).rev()).fold(0, |key, (&letter, place)| key | u64::from(letter) << (8 * place))
        };
        let keys: Vec<u64> = order.iter().map(key).collect();
        let (mut sorted, mut next) = (vec![0_u64; keys.len()], vec![0_u32; keys.len()]);
        scanner.run(by_chunk).input(&keys).input(&order).output(&mut sorted).output(&mut next).sort()?;
        order = next;
    }
    Ok(order)
}

/// A graph in compressed sparse rows: edges in the order of their first vertex, and where those of each vertex begin. The offsets are
/// the exclusive sums of how many edges each vertex has, the last one is how many there are.
fn sparse_rows(
    scanner: &mut HostScanner,
    vertices: u32,
    edges: &[(u32, u32)],
) -> Result<(Vec<u32>, Vec<u32>), Box<dyn Error>> {
    let (from, to): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
    let by_vertex = Definition::sort::<u32>()?.with::<u32>("to").define()?;
    let (mut rows, mut columns) = (vec![0_u32; from.len()], vec![0_u32; from.len()]);
    scanner.run(by_vertex).input(&from).input(&to).output(&mut rows).output(&mut columns).sort()?;
    let degree =
        Definition::binned::<u32>("edges of a vertex", vertices, "return from;").input::<u32>("from").define()?;
    let mut degrees = vec![0_u32; vertices as usize];
    scanner.run(degree).input(&from).output(&mut degrees).histogram()?;
    let mut offsets = vec![0_u32; vertices as usize + 1];
    scanner.exclusive(Operator::Sum, &degrees, &mut offsets)?;
    Ok((offsets, columns))
}

fn main() -> Outcome {
    let path = std::env::args().nth(1).unwrap_or_else(|| String::from("README.md"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let words: Vec<&str> =
        text.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    if words.len() < 2 {
        return Err(format!("{path} has no two words: name a text").into());
    }
    let scanner = &mut HostScanner::default();

    let mut changed = text.clone().into_bytes();
    let place = changed.len() * 2 / 3;
    changed[place] ^= 1;
    let found = first_difference(scanner, text.as_bytes(), &changed)?;
    checked("where texts first differ", found == Some(place), &format!("at byte {place} of {}", text.len()))?;
    let found = first_difference(scanner, text.as_bytes(), text.as_bytes())?;
    checked("where a text differs from itself", found.is_none(), "nowhere")?;

    let order = order_of_words(scanner, &words)?;
    let mut expected: Vec<u32> = (0..words.len() as u32).collect();
    expected.sort_by_key(|&word| words[word as usize]);
    let [first, last] = [order[0], order[order.len() - 1]].map(|word| words[word as usize]);
    checked("words in order", order == expected, &format!("{} words from '{first}' to '{last}'", words.len()))?;

    // Each word has the number of its spelling.
    let mut vertex = vec![0; words.len()];
    let mut vertices = 0;
    for (place, &word) in order.iter().enumerate() {
        let is_new = place == 0 || words[order[place - 1] as usize] != words[word as usize];
        vertices += u32::from(is_new);
        vertex[word as usize] = vertices - 1;
    }
    let edges: Vec<(u32, u32)> = vertex.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let (offsets, followers) = sparse_rows(scanner, vertices, &edges)?;
    let is_right = (0..vertices).all(|from| {
        let row = &followers[offsets[from as usize] as usize..offsets[from as usize + 1] as usize];
        row.iter().copied().eq(edges.iter().filter(|edge| edge.0 == from).map(|edge| edge.1))
    });
    checked("which word follows which", is_right, &format!("{} edges between {vertices} words", edges.len()))
}
