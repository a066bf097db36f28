//! What is wrong with the arrays of a defined scan.

use crate::element::ElementType;

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
    #[error("{scan}: the array '{array}' holds {defined}, and it is given one of {given}")]
    ElementType {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Its elements as defined, by their name in CUDA C++ and their bytes.
        defined: String,
        /// Likewise as given.
        given: String,
    },
    /// More or fewer parameters than are defined.
    #[error("{scan} has {defined} parameters and is given {given}: call `parameter` once for each of these: {names}")]
    Parameters {
        /// The scan.
        scan: String,
        /// As many are defined.
        defined: usize,
        /// As many are given.
        given: usize,
        /// The defined ones, in order.
        names: String,
    },
    /// A parameter of another type.
    #[error("{scan}: the parameter '{parameter}' is {defined}, and it is given {given}")]
    ParameterType {
        /// The scan.
        scan: String,
        /// The parameter.
        parameter: String,
        /// As defined, by its name in CUDA C++ and its bytes.
        defined: String,
        /// Likewise as given.
        given: String,
    },
    /// Arrays of several lengths.
    #[error("{scan}: the array '{array}' has {elements} elements, for {n}; {expected}")]
    Length {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Its elements.
        elements: u64,
        /// As many are expected.
        n: u64,
        /// What is possible.
        expected: &'static str,
    },
    /// An address that no element of the type has.
    #[error(
        "{scan}: the array '{array}' begins at {address:#x}, which is no multiple of {bytes} bytes, as its elements are \
         aligned: begin it where an element begins"
    )]
    Misaligned {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Where it begins.
        address: u64,
        /// Bytes by which elements are aligned.
        bytes: u64,
    },
    /// What is stored would be loaded or stored again.
    #[error(
        "{scan}: the arrays '{first}' and '{second}' overlap; of a scan an output may be one of the user's inputs of the same \
         type, whole, and is apart from all other arrays; of anything else it is apart from all"
    )]
    Overlap {
        /// The scan.
        scan: String,
        /// An output.
        first: String,
        /// The other one.
        second: String,
    },
    /// A row stride of no array, or where there are no rows.
    #[error(
        "{0}: `row_stride` is of the input or output that was named last before it, and of scans by `rows`, `columns` or `axis` alone"
    )]
    StrideOfNothing(String),
    /// An array that does not consist of rows that begin so far apart.
    #[error(
        "{scan}: the array '{array}' of {elements} elements is no whole rows of {row} that begin {stride} elements apart; \
         behind its last row there is as much as between two, or nothing"
    )]
    Stride {
        /// The scan.
        scan: String,
        /// The array.
        array: String,
        /// Its elements.
        elements: u64,
        /// Elements of a row.
        row: u64,
        /// Elements from the begin of a row to that of the next.
        stride: u64,
    },
    /// Rows that do not fill the array.
    #[error("{scan}: {n} elements are no whole rows of {columns}: give a length that divides the number of elements")]
    Columns {
        /// The scan.
        scan: String,
        /// Elements.
        n: u64,
        /// Elements of a row.
        columns: u64,
    },
    /// Columns that do not fill the array.
    #[error(
        "{scan}: {n} elements are no whole tensors of {length} along the axis by {inner} side by side: give both at least 1, \
         and arrays that they fill"
    )]
    Axis {
        /// The scan.
        scan: String,
        /// Elements.
        n: u64,
        /// Elements of a column.
        length: u64,
        /// Columns side by side.
        inner: u64,
    },
    /// A state of another size.
    #[error(
        "{scan}: a state has {defined} bytes, and the {array} that it is given {given}: give it one of the definition's state type"
    )]
    StateBytes {
        /// The scan.
        scan: String,
        /// Which state.
        array: String,
        /// As defined.
        defined: u64,
        /// As given.
        given: u64,
    },
    /// Counts of a compaction that are neither one nor two.
    #[error(
        "{scan}: the {array} is one number, or two, of which the second one is of what is not kept, and it is given {elements}"
    )]
    Counts {
        /// The scan.
        scan: String,
        /// Which.
        array: String,
        /// Numbers that are given.
        elements: u64,
    },
    /// More or fewer states than there are ends.
    #[error(
        "{scan}: the {array} is {expected} elements long, one of each row or column or one alone, and it is given {elements}"
    )]
    States {
        /// The scan.
        scan: String,
        /// Which.
        array: String,
        /// States that are given.
        elements: u64,
        /// As many there are.
        expected: u64,
    },
    /// What stands left of a run of keys, of which nobody knows whether it began before.
    #[error(
        "{0}: each run of keys, and each segment between offsets, begins anew, so that no initial state is used: leave it out, \
         or tell segments by head flags"
    )]
    InitialByKey(String),
    /// Two initial states.
    #[error("{0}: there is an initial state by value and one from memory: choose one of them")]
    InitialTwice(String),
    /// The state behind no elements.
    #[error("{0}: there are no elements, so that no final state is left: go on with the one before")]
    NoFinalState(String),
    /// Keys that are not compared.
    #[error("{scan}: keys are numbers, not {key}; tell the runs by head flags instead")]
    Key {
        /// The scan.
        scan: String,
        /// What they are.
        key: ElementType,
    },
    /// Fewer than two offsets.
    #[error(
        "{0}: offsets say where each segment begins and where the last one ends: give one more than there are segments, of an \
         expansion items"
    )]
    NoOffsets(String),
    /// A count where it is not known whether it is one of rows or of matrices.
    #[error("{0}: `axis` gives columns a fixed length: leave `count_from` out, or scan one matrix by `columns`")]
    CountedElsewhere(String),
    /// Offsets that the device has found wrong.
    #[error(
        "offsets of segment {segment} fall, or do not lead from 0 to the number of elements, of an expansion at most; nothing was \
         written beside the arrays, and what was written is wrong"
    )]
    Offsets {
        /// One of the segments between whose offsets it is.
        segment: u64,
    },
    /// A count that the device has found to be too large, or not of whole rows.
    #[error(
        "the device was to scan {count} elements, which is more than the arrays have, or no whole rows, or to expand as many items, \
         which is more than there are offsets for: as many were taken as there are of whole ones"
    )]
    Counted {
        /// What its memory said.
        count: u64,
    },
    /// A scan that is to be compacted, a compaction that is to be scanned, and the like.
    #[error("{scan}: this is put onto a stream by {call}")]
    Verb {
        /// What is defined.
        scan: String,
        /// What puts it onto a stream.
        call: &'static str,
    },
    /// What keeps every element.
    #[error("{0}: this has no number of elements that are kept: leave `count_into` out")]
    NothingKept(String),
    /// What has no meaning where elements are stored side by side.
    #[error(
        "{0}: this is no scan, and takes whole arrays: leave out rows, columns, keys, flags, but for an expansion offsets, and \
         states before and behind"
    )]
    OfScansAlone(String),
    /// What is no scan, from the other end.
    #[error(
        "{0}: this has one result: leave out `reversed` and `reproducible`; the definition of a sort may say `descending`"
    )]
    OneResult(String),
    /// A number that may be too large for its type.
    #[error("{scan}: of {n} elements more may be counted than an `i32` holds: give it counts of 8 bytes")]
    NarrowCount {
        /// What is defined.
        scan: String,
        /// Elements.
        n: u64,
    },
    /// Ranks that have no shards of one sequence.
    #[error(
        "{0}: ranks share one sequence, from its first element to its last: leave out rows, columns, keys, head flags, offsets, \
         `reversed`, `reproducible`, `count_from`, and states before and behind"
    )]
    OfRanks(String),
    /// Something else than a scan that is dealt to ranks tile by tile.
    #[error("{0}: scans alone are dealt to ranks; gather the arrays on one device for this")]
    DealtScansAlone(String),
    /// Another part of an array than the deal gives the rank.
    #[error(
        "{scan}: the rank is dealt {expected} elements, and an array has {elements}: `Hand::elements` says how many to give"
    )]
    Hand {
        /// What is defined.
        scan: String,
        /// As many an array has.
        elements: u64,
        /// As many the deal gives the rank.
        expected: u64,
    },
    /// A shard without its last input.
    #[error(
        "{0}: an input of a shard has as many elements as its outputs, in exclusive scans, too, for the ranks behind it"
    )]
    ShortShard(String),
    /// Two ways to tell segments.
    #[error("{0}: rows, columns, keys, head flags and offsets each tell where segments begin: choose one of them")]
    SegmentsTwice(String),
}
