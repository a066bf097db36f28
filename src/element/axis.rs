//! The axis of a tensor that a scan runs along.

use crate::abi;

/// Arrays are contiguous tensors of the shape (outer, `length`, `inner`), and are scanned along the middle axis: element
/// (o, t, j) lies at (o · `length` + t) · `inner` + j.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    /// Elements of a column: of what is scanned, each by itself.
    pub length: u64,
    /// From one of them to the next; as many columns lie side by side.
    pub inner: u64,
    /// Whether what every array has of the columns in a row lies at a multiple of its bytes.
    pub are_rows_aligned: bool,
}

impl Axis {
    /// Of arrays whose rows are aligned.
    pub(crate) const fn new(length: u64, inner: u64) -> Self {
        Self { length, inner, are_rows_aligned: true }
    }

    /// Neighbouring columns that a thread takes at most: more than a narrow tensor has would be idle.
    pub(crate) fn columns_of_thread(self) -> usize {
        const MOST: u64 = abi::LOOKBACK_COLUMNS_FINDING_WARPS as u64;
        self.inner.next_power_of_two().min(MOST) as usize
    }

    /// An axis that the same kernel scans along: compiled is how narrow a tensor is and nothing else.
    pub(crate) fn compiled(self) -> Self {
        Self::new(1, self.columns_of_thread() as u64)
    }
}
