//! In which order the elements of an array are scanned, and at which of them the scan begins anew.

use crate::lab::workload::{Telling, Workload};
use std::ops::Range;

/// The order of one array.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    n: usize,
    /// Scans that lie side by side, element beside element.
    side_by_side: usize,
    /// As many of them again, one behind the other.
    matrices: usize,
    is_reversed: bool,
    anew: Anew<'a>,
}

/// Where the scan begins anew, beside the first element of all.
#[derive(Debug, Clone, Copy)]
enum Anew<'a> {
    Never,
    /// With each row, or at the first elements of all columns of each matrix.
    Every(usize),
    /// Where a key differs from the one that was scanned before it.
    Keys(&'a [u8]),
    /// Where a flag is not 0.
    Flags(&'a [u8]),
    /// Between an element that is marked other than 0 and the one below it, from whichever side.
    Borders(&'a [u8]),
}

const KEY_BYTES: usize = 4;

impl<'a> Order<'a> {
    /// The order of `n` elements; `telling` are the keys or flags or, by offsets, the borders, where the problem has some.
    pub(crate) fn new(workload: Workload, n: u64, telling: &'a [u8]) -> Self {
        let (side_by_side, matrices) = (workload.side_by_side(n) as usize, workload.matrices() as usize);
        let anew = match (workload.telling(), workload.line_elements()) {
            (Some(Telling::Keys), _) => Anew::Keys(telling),
            (Some(Telling::Flags | Telling::Gaps), _) => Anew::Flags(telling),
            (Some(Telling::Offsets), _) => Anew::Borders(telling),
            (Some(Telling::Places), _) => Anew::Never,
            (None, Some(elements)) if side_by_side == 1 => Anew::Every(usize::try_from(elements).unwrap_or(usize::MAX)),
            // Columns end where the array does.
            (None, _) if matrices == 1 => Anew::Never,
            (None, _) => Anew::Every(n as usize / matrices),
        };
        Self { n: n as usize, side_by_side, matrices, is_reversed: workload.is_reversed(), anew }
    }

    /// How many there are.
    pub const fn elements(&self) -> usize {
        self.n
    }

    /// How many scans lie side by side: the one of an element is the remainder of its place, in each matrix anew.
    pub const fn side_by_side(&self) -> usize {
        self.side_by_side
    }

    /// Whether every element follows the one before it in memory.
    pub const fn is_flat(&self) -> bool {
        !self.is_reversed && self.side_by_side == 1 && matches!(self.anew, Anew::Never)
    }

    /// The places of the elements as they are scanned: of scans side by side, the first of each, then the second of each.
    pub fn places(&self) -> impl Iterator<Item = usize> + use<> {
        self.places_in(0..self.n)
    }

    /// The place of the element that is scanned before the one at `place`, unless the scan begins there.
    pub fn before(&self, place: usize) -> Option<usize> {
        let before = match self.is_reversed {
            true => Some(place + self.side_by_side).filter(|&place| place < self.n),
            false => place.checked_sub(self.side_by_side),
        };
        before.filter(|&before| match self.anew {
            Anew::Never => true,
            // Both are of one row, or of one matrix.
            Anew::Every(elements) => place.max(before) % elements >= self.side_by_side,
            Anew::Keys(keys) => key(keys, place) == key(keys, before),
            Anew::Flags(flags) => flags[place] == 0,
            Anew::Borders(marks) => marks[place.max(before)] == 0,
        })
    }

    /// The order of the same scans one behind the other, where they lie side by side: of the columns as rows.
    pub(crate) fn one_behind_the_other(self) -> Self {
        match self.side_by_side {
            0 | 1 => self,
            columns => Self { side_by_side: 1, anew: Anew::Every(self.n / columns / self.matrices), ..self },
        }
    }

    /// How many matrices lie one behind the other, each with as many scans side by side.
    pub(crate) const fn matrices(&self) -> usize {
        self.matrices
    }

    /// Ranges of places that are scanned without a look at the others, of about `elements` or as many as there are before the
    /// scan begins anew. Scans side by side, which end where their matrix does, are one range.
    pub(crate) fn parts(&self, elements: usize) -> Vec<Range<usize>> {
        // In reverse the one below a border is the one that begins.
        let is_border = |place: &usize| self.begins(if self.is_reversed { place - 1 } else { *place });
        let mut parts = Vec::new();
        let mut start = 0;
        while start < self.n {
            let least = start.saturating_add(elements.max(1));
            let end = match self.anew {
                Anew::Never => None,
                Anew::Every(elements) => least.checked_next_multiple_of(elements),
                Anew::Keys(_) | Anew::Flags(_) | Anew::Borders(_) => (least..self.n).find(is_border),
            };
            let end = end.map_or(self.n, |end| end.min(self.n));
            parts.push(start..end);
            start = end;
        }
        parts
    }

    /// The places in a range in the order in which they are scanned.
    pub(crate) fn places_in(&self, Range { start, end }: Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let is_reversed = self.is_reversed;
        (start..end).map(move |place| if is_reversed { start + end - 1 - place } else { place })
    }

    /// Whether the scan begins at `place`.
    pub fn begins(&self, place: usize) -> bool {
        self.before(place).is_none()
    }

    /// The place whose inclusive result is the result at `place` of a scan that lags by 0 or 1 elements; none where that is
    /// the identity.
    pub fn source(&self, lag: u64, place: usize) -> Option<usize> {
        if lag == 0 { Some(place) } else { self.before(place) }
    }
}

fn key(keys: &[u8], place: usize) -> &[u8] {
    &keys[place * KEY_BYTES..(place + 1) * KEY_BYTES]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Operator};
    use crate::lab::workload::ProblemKind;

    fn begins(kind: ProblemKind, segment: Option<u64>, telling: &[u8]) -> Vec<usize> {
        let u32s = ElementType::U32;
        let workload = Workload::new(kind, Operator::Sum, u32s, u32s, segment).unwrap();
        let order = Order::new(workload, 6, telling);
        let begins: Vec<usize> = order.places().filter(|&place| order.begins(place)).collect();
        for place in order.places() {
            assert_eq!((order.source(0, place), order.source(1, place)), (Some(place), order.before(place)));
        }
        begins
    }

    #[test]
    fn segments_begin_where_rows_keys_and_flags_say() {
        assert_eq!(begins(ProblemKind::Flat, None, &[]), [0]);
        assert_eq!(begins(ProblemKind::Reverse, None, &[]), [5]);
        assert_eq!(begins(ProblemKind::Rows, Some(3), &[]), [0, 3]);
        assert_eq!(begins(ProblemKind::ReverseRows, Some(2), &[]), [5, 3, 1]);
        assert_eq!(begins(ProblemKind::HeadFlags, Some(2), &[0, 0, 7, 1, 0, 0]), [0, 2, 3]);
        let keys: Vec<u8> = [4_u32, 4, 9, 9, 4, 4].into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(begins(ProblemKind::ByKey, Some(2), &keys), [0, 2, 4]);
        assert_eq!(begins(ProblemKind::Offsets, Some(2), &[1, 0, 0, 1, 1, 0]), [0, 3, 4]);
        assert_eq!(begins(ProblemKind::Recurrence, Some(6), &[]), [0]);
    }

    #[test]
    fn no_element_of_a_part_is_scanned_behind_one_of_another() {
        let u32s = ElementType::U32;
        let keys: Vec<u8> = [4_u32, 4, 9, 9, 9, 4, 7].into_iter().flat_map(u32::to_le_bytes).collect();
        let marks = [1, 0, 0, 1, 0, 1, 0];
        for (kind, segment, telling, ends) in [
            (ProblemKind::Flat, None, &[][..], &[7][..]),
            (ProblemKind::Reverse, None, &[], &[7][..]),
            (ProblemKind::Rows, Some(1), &[], &[2, 4, 6, 7][..]),
            (ProblemKind::ReverseRows, Some(7), &[], &[7][..]),
            (ProblemKind::ByKey, Some(2), &keys, &[2, 5, 7][..]),
            (ProblemKind::Offsets, Some(2), &marks, &[3, 5, 7][..]),
            (ProblemKind::ReverseColumns, Some(1), &[], &[7][..]),
        ] {
            let workload = Workload::new(kind, Operator::Sum, u32s, u32s, segment).unwrap();
            let order = Order::new(workload, 7, telling);
            assert_eq!(order.parts(2).iter().map(|part| part.end).collect::<Vec<_>>(), ends, "{kind}");
            for part in order.parts(2) {
                let mut places: Vec<usize> = order.places_in(part.clone()).collect();
                assert!(places.iter().filter_map(|&place| order.before(place)).all(|at| part.contains(&at)), "{kind}");
                places.sort_unstable();
                assert_eq!(places, part.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn columns_one_behind_the_other_are_rows() {
        let u32s = ElementType::U32;
        let of = |kind| Order::new(Workload::new(kind, Operator::Sum, u32s, u32s, Some(3)).unwrap(), 6, &[]);
        for (columns, rows) in
            [(ProblemKind::Columns, ProblemKind::Rows), (ProblemKind::ReverseColumns, ProblemKind::ReverseRows)]
        {
            let (columns, rows) = (of(columns).one_behind_the_other(), of(rows));
            assert_eq!([0, 1, 2, 3, 4, 5].map(|at| columns.before(at)), [0, 1, 2, 3, 4, 5].map(|at| rows.before(at)));
        }
    }

    #[test]
    fn columns_begin_side_by_side_and_go_on_a_row_further() {
        assert_eq!(begins(ProblemKind::Columns, Some(2), &[]), [0, 1, 2]);
        assert_eq!(begins(ProblemKind::ReverseColumns, Some(3), &[]), [5, 4]);
        assert_eq!(begins(ProblemKind::Columns, Some(6), &[]), [0]);
        let u32s = ElementType::U32;
        let order = |kind| Order::new(Workload::new(kind, Operator::Sum, u32s, u32s, Some(3)).unwrap(), 6, &[]);
        let before = |order: Order<'_>| [0, 1, 2, 3, 4, 5].map(|place| order.before(place));
        assert_eq!(before(order(ProblemKind::Columns)), [None, None, Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(before(order(ProblemKind::ReverseColumns)), [Some(2), Some(3), Some(4), Some(5), None, None]);
        assert!(!order(ProblemKind::Columns).is_flat());
        // Eight matrices of two rows of three.
        let workload = |kind| Workload::new(kind, Operator::Sum, u32s, u32s, Some(2)).unwrap();
        let order = |kind| Order::new(workload(kind), 48, &[]);
        let before = |order: Order<'_>| [6, 7, 8, 9, 10, 11].map(|place| order.before(place));
        let (forwards, backwards) = (ProblemKind::BatchedRecurrence, ProblemKind::ReverseBatchedRecurrence);
        assert_eq!(before(order(forwards)), [None, None, None, Some(6), Some(7), Some(8)]);
        assert_eq!(before(order(backwards)), [Some(9), Some(10), Some(11), None, None, None]);
        assert_eq!(order(forwards).parts(7).iter().map(|part| part.end).collect::<Vec<_>>(), [12, 24, 36, 48]);
    }
}
