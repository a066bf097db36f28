//! What is wrong with the arrays of a defined scan.

/// Arrays that a defined scan cannot run on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// More or fewer arrays than are defined.
    #[error("{scan} {verb} {defined} arrays and is given {given}: {names}")]
    Count {
        /// The scan.
        scan: String,
        /// Whether it loads or stores them.
        verb: &'static str,
        /// As many are defined.
        defined: usize,
        /// As many are given.
        given: usize,
        /// The defined ones, in order.
        names: String,
    },
    /// An array of another type.
    #[error("{scan}: elements of the array '{array}' have {defined} bytes, and it is given one whose have {given}")]
    ElementBytes {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Bytes of an element as defined.
        defined: u64,
        /// Bytes of an element that is given.
        given: u64,
    },
    /// Arrays of several lengths.
    #[error("{scan}: the array '{array}' has {elements} elements and the output {n}; {expected}")]
    Length {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Its elements.
        elements: u64,
        /// Elements of the first output.
        n: u64,
        /// What is possible.
        expected: &'static str,
    },
    /// An address that no element of the type has.
    #[error(
        "{scan}: the array '{array}' begins at {address:#x}, which is no multiple of the {bytes} bytes of an element"
    )]
    Misaligned {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Where it begins.
        address: u64,
        /// Bytes of an element.
        bytes: u64,
    },
    /// What is stored would be loaded or stored again.
    #[error(
        "{scan}: the arrays '{first}' and '{second}' overlap; an output may be one of the user's inputs of the same type, whole, \
         and is apart from all other arrays"
    )]
    Overlap {
        /// The scan.
        scan: String,
        /// An output.
        first: String,
        /// The other one.
        second: String,
    },
    /// Rows that do not fill the array.
    #[error("{scan}: {n} elements are no whole rows of {columns}")]
    Columns {
        /// The scan.
        scan: String,
        /// Elements.
        n: u64,
        /// Elements of a row.
        columns: u64,
    },
    /// A state of another type.
    #[error("{scan}: a state has {defined} bytes, and it is given one of {given}")]
    StateBytes {
        /// The scan.
        scan: String,
        /// As defined.
        defined: u64,
        /// As given.
        given: u64,
    },
    /// Two ways to tell segments.
    #[error("{0}: rows, keys and head flags each tell where segments begin: choose one of them")]
    SegmentsTwice(String),
}
