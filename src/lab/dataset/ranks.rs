//! Where the elements stand that are stored elsewhere than they stood.

use crate::element::ElementType;
use crate::lab::order::Order;
use crate::lab::workload::{Bits, Kept, Telling, Workload};
use rayon::prelude::*;

/// Instead of a place: nothing is stored there, so that the filling stays.
pub(super) const NOWHERE: u64 = u64::MAX;

/// The place of the element that stands at each index of the output: kept ones in front, and the others, unless they are
/// dropped, from the last index on. Of two arrays, the second of which is behind the first here and there, those of the first with
/// [`NOWHERE`] where nothing is stored.
pub(super) fn ranked(workload: Workload, kept: Kept, order: Order<'_>, [input, telling]: [&[u8]; 2]) -> Vec<u64> {
    let n = order.elements();
    let (element, bytes) = (workload.input(), workload.input().bytes());
    let of = |place: usize| &input[place * bytes..(place + 1) * bytes];
    let is_kept = |&place: &u64| {
        let place = place as usize;
        match kept {
            Kept::Flagged => telling[place] != 0,
            Kept::BelowMiddle => is_below_middle(element, of(place)),
            // Drawn elements are equal where their bytes are.
            Kept::RunBegins => place == 0 || of(place) != of(place - 1),
            Kept::RunEnds => place + 1 == n || order.begins(place + 1),
            Kept::LongerRunEnds => {
                let is_last = place + 1 == n || of(place + 1) != of(place);
                is_last && place > 0 && of(place - 1) == of(place)
            }
            Kept::NonZero => !is_zero(element, of(place)),
        }
    };
    if workload.drops_others() {
        let mut places: Vec<u64> = (0..n as u64).into_par_iter().filter(is_kept).collect();
        if workload.has_run_lengths() {
            let kept = places.len();
            places.resize(n, NOWHERE);
            places.extend_from_within(..kept);
            places[n..].iter_mut().for_each(|place| *place += n as u64);
        }
        return places;
    }
    let mut places: Vec<u64> = (0..n as u64).into_par_iter().filter(is_kept).collect();
    let from_the_last = (0..n).into_par_iter().rev().map(|place| place as u64);
    places.par_extend(from_the_last.filter(|place| !is_kept(place)));
    places
}

/// The place of the element that stands at each index once they are in order. Where there are several arrays, they and their
/// indices are one behind the other.
pub(super) fn sorted(workload: Workload, bits: Bits, input: &[u8]) -> Vec<u64> {
    let element = workload.input();
    let width = 8 * element.bytes() as u32;
    let shift = match bits {
        Bits::All => 0,
        Bits::UpperHalf => width / 2,
    };
    let sign = 1 << (width - 1);
    let key = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let number = u64::from_le_bytes(word);
        let turned = match (element.is_float(), element.has_sign()) {
            (true, _) if number & sign != 0 => u64::MAX >> (64 - width),
            (true, _) | (false, true) => sign,
            (false, false) => 0,
        };
        (number ^ turned) >> shift
    };
    let elements = input.par_chunks_exact(element.bytes()).enumerate();
    let mut places: Vec<_> = elements.map(|(place, bytes)| (key(bytes), place as u64)).collect();
    // Equal keys stand in the order of their places.
    places.par_sort_unstable();
    let n = places.len() as u64;
    let arrays = workload.outputs(n).count() as u64;
    (0..arrays).flat_map(|array| places.iter().map(move |(_, place)| array * n + place)).collect()
}

/// The place of the element that is stored at each place: that of the segment which has it, or of the one that goes there.
pub(super) fn sources(told: Telling, element: ElementType, telling: &[u8]) -> Vec<u64> {
    let numbers: Vec<u64> =
        telling.chunks_exact(element.bytes()).map(|number| element.integer(number) as u64).collect();
    if told == Telling::Places {
        let mut sources = vec![0; numbers.len()];
        numbers.iter().zip(0..).for_each(|(&place, source)| sources[place as usize] = source);
        return sources;
    }
    numbers.windows(2).zip(0..).flat_map(|(ends, segment)| (ends[0]..ends[1]).map(move |_| segment)).collect()
}

/// Whether a drawn number is below the middle of its type's range: by its highest bit, as no NaN and no negative zero is drawn.
fn is_below_middle(element: ElementType, bytes: &[u8]) -> bool {
    let is_high = bytes.last().is_some_and(|&byte| byte >= 0x80);
    is_high == element.has_sign()
}

pub(super) fn is_zero(element: ElementType, number: &[u8]) -> bool {
    element.float().map_or_else(|| number.iter().all(|&byte| byte == 0), |float| (float.read)(number) == 0.0)
}
