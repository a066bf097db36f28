//! The axis of a tensor that a scan runs along.

/// Arrays are contiguous tensors of the shape (outer, `length`, `inner`), and are scanned along the middle axis: element
/// (o, t, j) lies at (o · `length` + t) · `inner` + j.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    /// Elements of a column: of what is scanned, each by itself.
    pub length: u64,
    /// From one of them to the next; as many columns lie side by side.
    pub inner: u64,
}
