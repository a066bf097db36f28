//! Quicksort by scans, after Blelloch ("Prefix sums and their applications", 1990). First one array is parted by one pivot in
//! three, what is less, equal and greater: a scan whose state is three counts says where each number goes. Then the whole sort:
//! in each round every segment takes a pivot of its own, and all are split at once by the same scan, anew from each head flag.
//! No split exchanges numbers of one class, so that the sort is stable. Over slices on the CPU device, each step compared with
//! the loop or the sort of the standard library that it stands for; the picture goes into the folder, if one is named:
//!
//!     cargo run --release --example quicksort -- FOLDER
//!
//! On a GPU the same definitions run by `Scanner::run` over cudarc's slices: the calls have the same names. Of what are loops
//! here the choice of pivots would be a kernel there, and the moving a `Definition::scattered`. This is to learn from; `Definition::sort` has as many
//! passes as keys have bytes, whatever their order.

mod check;
mod picture;

use check::{Outcome, checked};
use lookback::element::{Defined, Definition, DefinitionError, ElementType, Operator};
use lookback::lab::host_scanner::{HostRun, HostScanner};
use lookback::run::AnyScanner;
use picture::{Drawing, folder, keep};
use std::error::Error;

/// How many numbers are sorted.
const N: usize = 4096;
/// One number in so many is drawn.
const STRIDE: usize = 16;

/// Of each class, what is less than the pivot, equal and greater, how many there are: one number each for every element.
type Counts = [Vec<u32>; 3];

fn class(x: u32, pivot: u32) -> usize {
    usize::from(x >= pivot) + usize::from(x > pivot)
}

/// How many elements of each class there are from where the scan begins, the element itself included.
fn counting() -> Result<Defined, DefinitionError> {
    Definition::new::<[u32; 3]>("less, equal, greater", "counts")
        .declare("struct counts { u32 less; u32 equal; u32 greater; };")
        .identity("{0, 0, 0}")
        .combine("return {left.less + right.less, left.equal + right.equal, left.greater + right.greater};")
        .commutative()
        .input::<u32>("x")
        .input::<u32>("pivot")
        .load("return {x < pivot, x == pivot, x > pivot};")
        .output::<u32>("less")
        .output::<u32>("equal")
        .output::<u32>("greater")
        .store("less = state.less; equal = state.equal; greater = state.greater;")
        .define()
}

/// A run of it: in one piece or in segments, from either end.
fn count<'a>(
    scanner: &'a mut HostScanner,
    numbers: &'a [u32],
    pivots: &'a [u32],
    counts: &'a mut Counts,
) -> Result<HostRun<'a>, DefinitionError> {
    let [less, equal, greater] = counts;
    Ok(scanner.run(counting()?).input(numbers).input(pivots).output(less).output(equal).output(greater))
}

fn counts_of(n: usize) -> Counts {
    [vec![0; n], vec![0; n], vec![0; n]]
}

/// What is less than the pivot, behind it what is equal, and behind that what is greater, each in its order; and how many they are,
/// which is the final state of the scan that ranks them.
fn three_way_partition(
    scanner: &mut HostScanner,
    numbers: &[u32],
    pivot: u32,
) -> Result<(Vec<u32>, [u32; 3]), Box<dyn Error>> {
    let (mut counts, mut totals) = (counts_of(numbers.len()), [[0_u32; 3]]);
    let pivots = vec![pivot; numbers.len()];
    count(scanner, numbers, &pivots, &mut counts)?.final_state(&mut totals).inclusive()?;
    let [less, equal, _] = totals[0];
    let begins = [0, less, less + equal];
    let mut parted = vec![0; numbers.len()];
    // A scan stores at the place that it loaded from: it says where each number goes, and a loop moves them, so that it is seen.
    for (i, &x) in numbers.iter().enumerate() {
        let class = class(x, pivot);
        parted[(begins[class] + counts[class][i]) as usize - 1] = x;
    }
    Ok((parted, totals[0]))
}

/// The same by two calls of the library's partition, each of which keeps one class and has the others apart.
fn two_partitions(scanner: &mut HostScanner, numbers: &[u32], pivot: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let mut parted = Vec::new();
    let mut rest = numbers.to_vec();
    for comparison in ["<", "=="] {
        let of_class = Definition::partition::<u32>(&format!("return x {comparison} {pivot}u;")).define()?;
        let (mut kept, mut others, mut count) = (vec![0; rest.len()], vec![0; rest.len()], 0_u32);
        scanner.run(of_class).input(&rest).output(&mut kept).output(&mut others).count_into(&mut count).compact()?;
        parted.extend(&kept[..count as usize]);
        others.truncate(rest.len() - count as usize);
        rest = others;
    }
    parted.extend(rest);
    Ok(parted)
}

/// Numbers in segments, of which each has no number that is less than one of the segment before it.
struct Segments {
    numbers: Vec<u32>,
    /// Where each of them stood at first.
    origins: Vec<u32>,
    /// Whether a segment begins here.
    heads: Vec<u8>,
}

impl Segments {
    /// All in one.
    fn new(numbers: &[u32]) -> Self {
        let n = numbers.len();
        let heads = (0..n).map(|i| u8::from(i == 0)).collect();
        Self { numbers: numbers.to_vec(), origins: (0..n as u32).collect(), heads }
    }

    /// For each element the pivot of its segment, the median of the first number, the middle one and the last.
    fn pivots(&self, scanner: &mut HostScanner) -> Result<Vec<u32>, Box<dyn Error>> {
        let n = self.numbers.len();
        let begins: Vec<usize> = (0..n).filter(|&i| self.heads[i] != 0).chain([n]).collect();
        let mut chosen = vec![0; n];
        for segment in begins.windows(2) {
            let (begin, end) = (segment[0], segment[1]);
            let mut three = [begin, begin.midpoint(end), end - 1].map(|i| self.numbers[i]);
            three.sort_unstable();
            chosen[begin] = three[1];
        }
        // Behind each pivot stand zeros, to the end of its segment: their maximum so far is the pivot.
        let maximum = Definition::of_numbers(Operator::Max, ElementType::U32, ElementType::U32)?.define()?;
        let mut pivots = vec![0; n];
        scanner.run(maximum).head_flags(&self.heads).input(&chosen).output(&mut pivots).inclusive()?;
        Ok(pivots)
    }

    /// Splits each segment in up to three, and says how many elements have moved.
    fn split(&mut self, scanner: &mut HostScanner) -> Result<usize, Box<dyn Error>> {
        let n = self.numbers.len();
        let pivots = self.pivots(scanner)?;
        let (mut before, mut behind) = (counts_of(n), counts_of(n));
        count(scanner, &self.numbers, &pivots, &mut before)?.head_flags(&self.heads).inclusive()?;
        // From the other end a segment begins where another one is next.
        let lasts: Vec<u8> = self.heads.iter().copied().skip(1).chain([1]).collect();
        count(scanner, &self.numbers, &pivots, &mut behind)?.head_flags(&lasts).reversed().inclusive()?;

        let old = std::mem::replace(self, Self { numbers: vec![0; n], origins: vec![0; n], heads: vec![0; n] });
        let mut moved = 0;
        for i in 0..n {
            // Each class below its own that stands behind it passes it towards the front, each one above that stands before it
            // towards the end. Whoever has both counts needs no totals of the segment.
            let class = class(old.numbers[i], pivots[i]);
            let lower: u32 = behind[..class].iter().map(|counts| counts[i]).sum();
            let higher: u32 = before[class + 1..].iter().map(|counts| counts[i]).sum();
            let place = i + lower as usize - higher as usize;
            self.numbers[place] = old.numbers[i];
            self.origins[place] = old.origins[i];
            // The first of each class heads a segment of the next round. One of equal elements is done: no pivot of it moves any.
            self.heads[place] = u8::from(before[class][i] == 1);
            moved += usize::from(place != i);
        }
        Ok(moved)
    }
}

/// A sort, from its beginning to its end.
struct Sort {
    /// The numbers before the first round and after each.
    after: Vec<Vec<u32>>,
    /// Where each of the sorted numbers stood at first.
    origins: Vec<u32>,
    /// How many elements were moved, in all rounds.
    moved: usize,
}

impl Sort {
    fn of(scanner: &mut HostScanner, numbers: &[u32]) -> Result<Self, Box<dyn Error>> {
        let mut segments = Segments::new(numbers);
        let mut sort = Self { after: vec![numbers.to_vec()], origins: Vec::new(), moved: 0 };
        // Numbers in order need no round. An array that is made against these pivots takes rounds in proportion to its length.
        while !segments.numbers.is_sorted() {
            sort.moved += segments.split(scanner)?;
            sort.after.push(segments.numbers.clone());
        }
        sort.origins = segments.origins;
        Ok(sort)
    }

    fn rounds(&self) -> usize {
        self.after.len() - 1
    }

    fn sorted(&self) -> &[u32] {
        &self.after[self.rounds()]
    }

    /// Whether it is what the standard library's stable sort makes of the numbers.
    fn is_right(&self, numbers: &[u32]) -> bool {
        let mut expected: Vec<u32> = (0..numbers.len() as u32).collect();
        expected.sort_by_key(|&origin| numbers[origin as usize]);
        self.origins == expected && self.sorted().iter().copied().eq(expected.iter().map(|&i| numbers[i as usize]))
    }
}

/// The array after each round, and how much of it is not in its place yet.
fn chart(sort: &Sort) -> Vec<u8> {
    const SHADES: u64 = 8;
    let (rounds, sorted) = (sort.rounds(), sort.sorted());
    let title = format!(
        "After {rounds} rounds of splitting all segments at once {},{:03} numbers are in order",
        N / 1000,
        N % 1000
    );
    // The array is drawn in whole pixels, so that no seams are seen between neighbours.
    let (left, top, row, column, columns) = (70, 88, 20, 2, N / STRIDE);
    let (width, bottom) = (column * columns as u32, top + row * (rounds as u32 + 1));
    let mut drawing = Drawing::new(760, bottom + 40, &title);
    let place = |x: u32, y: u32| (f64::from(x), f64::from(y));
    let what = "a row is the array after a round, one number in sixteen: the fuller the colour, the greater";
    drawing.text(place(left, top - 36), "start", "", what);
    drawing.text(place(left, top - 16), "start", "line-text", "not in its place yet");
    drawing.text(place(left + 150, top - 16), "start", "area", "in its place");
    drawing.text(place(left - 8, top - 16), "end", "", "round");
    for (class, is_in_place) in [("area", true), ("line-text", false)] {
        for shade in 0..SHADES {
            let is_so = |numbers: &[u32], at: usize| {
                let x = numbers[at * STRIDE];
                (u64::from(x) * SHADES) >> 32 == shade && (x == sorted[at * STRIDE]) == is_in_place
            };
            let mut rectangles = Vec::new();
            for (numbers, round) in sort.after.iter().zip(0..) {
                let mut next = 0;
                while let Some(begin) = (next..columns).find(|&at| is_so(numbers, at)) {
                    next = (begin..columns).find(|&at| !is_so(numbers, at)).unwrap_or(columns);
                    let corner = [left + column * begin as u32, top + row * round];
                    rectangles.push([corner[0], corner[1], column * (next - begin) as u32, row - 2]);
                }
            }
            drawing.shaded(class, (shade + 2) as f64 / (SHADES + 1) as f64, rectangles.into_iter());
        }
    }

    let (line_left, line_width) = (f64::from(left + width + 36), 110.0);
    let (top, bottom) = (f64::from(top), f64::from(bottom));
    let middle = |round: usize| top + f64::from(row) * (round as f64 + 0.5) - 1.0;
    for (part, name) in [(0.0, "0"), (0.5, "50"), (1.0, "100 %")] {
        let x = line_left + line_width * part;
        drawing.grid((x, top), (x, bottom));
        drawing.text((x, bottom + 18.0), "middle", "", name);
    }
    let astray = |numbers: &[u32]| numbers.iter().zip(sorted).filter(|(x, y)| x != y).count() as f64 / N as f64;
    let parts = sort.after.iter().enumerate();
    drawing.line(parts.map(|(round, numbers)| (line_left + line_width * astray(numbers), middle(round))));
    drawing.text((line_left, top - 16.0), "start", "line-text", "part that is not yet");
    for round in 0..=rounds {
        let name = if round == 0 { String::from("at first") } else { round.to_string() };
        drawing.text((f64::from(left) - 8.0, middle(round) + 4.0), "end", "", &name);
    }
    drawing.finish()
}

/// Numbers that differ from each other, as if drawn (Marsaglia's xorshift).
fn drawn() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(2_463_534_242_u32), |&x| {
        let x = x ^ x << 13;
        let x = x ^ x >> 17;
        Some(x ^ x << 5)
    })
}

/// A sort that is checked.
fn sorted(scanner: &mut HostScanner, name: &str, numbers: &[u32]) -> Result<Sort, Box<dyn Error>> {
    let sort = Sort::of(scanner, numbers)?;
    let found = format!("{} in {} rounds, {} moved", numbers.len(), sort.rounds(), sort.moved);
    checked(&format!("quicksort: {name}"), sort.is_right(numbers), &found)?;
    Ok(sort)
}

fn main() -> Outcome {
    let folder = folder()?;
    let scanner = &mut HostScanner::default();

    let numbers: Vec<u32> = drawn().take(N).map(|x| x % 1000).collect();
    let pivot = numbers[0];
    let (parted, [less, equal, greater]) = three_way_partition(scanner, &numbers, pivot)?;
    let classes = (0..3).map(|of| numbers.iter().copied().filter(move |&x| class(x, pivot) == of));
    let changed = parted.iter().zip(&numbers).filter(|(x, y)| x != y).count();
    let found = format!("{less} less than {pivot}, {equal} equal, {greater} greater; {changed} places changed");
    checked("three-way partition by one scan", parted.iter().copied().eq(classes.flatten()), &found)?;
    let by_two = two_partitions(scanner, &numbers, pivot)?;
    checked("the same by two partitions", by_two == parted, "in two passes over the array")?;

    let random: Vec<u32> = drawn().take(N).collect();
    let upwards: Vec<u32> = (0..N as u32).collect();
    let downwards: Vec<u32> = upwards.iter().rev().copied().collect();
    let few: Vec<u32> = random.iter().map(|x| x % 16).collect();
    let sort = sorted(scanner, "random numbers", &random)?;
    let others: [(&str, &[u32]); 6] = [
        ("sixteen values", &few),
        ("in order", &upwards),
        ("in reverse order", &downwards),
        ("all equal", &[7; N]),
        ("one number", &[7]),
        ("none", &[]),
    ];
    for (name, numbers) in others {
        sorted(scanner, name, numbers)?;
    }
    keep(folder.as_deref(), "quicksort-rounds.svg", &chart(&sort))
}
