// The one contract between the kernels, the CPU device and Rust: what a launch is given, what a
// descriptor may say, and which numbers stand for which choice. Includes nothing, so that bindgen,
// NVRTC, nvcc and a host compiler read the same text. `src/abi.rs` is generated from this file.
#pragma once

typedef unsigned char lookback_u8;
typedef unsigned int lookback_u32;
typedef unsigned long long lookback_u64;

// Lanes of a warp on every NVIDIA GPU.
enum { LOOKBACK_WARP_LANES = 32 };
// Largest number of values per thread (VT) and threads per block a launch may ask for.
enum { LOOKBACK_MAXIMUM_VT = 64, LOOKBACK_MAXIMUM_BLOCK_THREADS = 1024 };
// Warps of a look-ahead block beside those that scan: one fetches tiles, so many reduce them, one keeps the prefix.
enum { LOOKBACK_REDUCING_WARPS = 2, LOOKBACK_HELPER_WARPS = LOOKBACK_REDUCING_WARPS + 2 };
// The same of what a user has defined, whose operators take longer and seldom commute.
enum { LOOKBACK_ARRAYS_REDUCING_WARPS = 8, LOOKBACK_ARRAYS_HELPER_WARPS = LOOKBACK_ARRAYS_REDUCING_WARPS + 2 };
// The same down columns: so many fetch tiles, reduce them and find prefixes, a column of a tile each lane. And the most threads
// of a block that looks back, where short columns are a tile of a warp each: larger blocks have one way to scan, so that its
// registers are those of one.
enum {
  LOOKBACK_COLUMNS_FETCHING_WARPS = 4,
  LOOKBACK_COLUMNS_REDUCING_WARPS = 4,
  LOOKBACK_COLUMNS_FINDING_WARPS = 8,
  LOOKBACK_COLUMNS_HELPER_WARPS =
      LOOKBACK_COLUMNS_FETCHING_WARPS + LOOKBACK_COLUMNS_REDUCING_WARPS + LOOKBACK_COLUMNS_FINDING_WARPS,
  LOOKBACK_SHORT_COLUMNS_THREADS = 64
};
// Largest number of tiles that such a block holds in shared memory at one time.
enum { LOOKBACK_MAXIMUM_STAGES = 12 };
// Warps of a one-wave block beside those that scan: one reads descriptors, unless a pattern spans the block.
enum { LOOKBACK_READING_WARPS = 1 };
// Copies of the descriptors of a one-wave scan, and how many descriptors lie between two of them.
enum { LOOKBACK_DESCRIPTOR_COPIES = 8, LOOKBACK_DESCRIPTOR_COPY_GAP = 16 };
// Largest number of blocks of a thread block cluster; 8 where a GPU has no room for so many. Most bins of which they exchange counts.
enum { LOOKBACK_MAXIMUM_CLUSTER_BLOCKS = 16, LOOKBACK_CLUSTER_BINS = 256 };
// Widest access of one lane, in bytes.
enum { LOOKBACK_VECTOR_BYTES = 16 };
// What the L2 cache keeps for itself of a line, and a line, in bytes.
enum { LOOKBACK_SECTOR_BYTES = 32, LOOKBACK_CACHE_LINE_BYTES = 128 };
// Bits of no element before the bits that say where segments begin: a line of 16 bytes.
enum { LOOKBACK_LEADING_BITS = 128 };
// Arrays that a problem which a user has defined loads, and those that it stores. Bytes of its state, and of all its parameters.
enum { LOOKBACK_MAXIMUM_ARRAYS = 5, LOOKBACK_MAXIMUM_STATE_BYTES = 32, LOOKBACK_PARAMETER_BYTES = 64 };
// Ranks that tiles are dealt to in turn.
enum { LOOKBACK_MAXIMUM_DEALT_RANKS = 64 };
// Bits of a digit of a radix sort, and the values that it has.
enum { LOOKBACK_DIGIT_BITS = 8, LOOKBACK_DIGITS = 256 };
// Partial tree nodes that a Blelloch sweep keeps beside the tree: one a level, 64-bit sizes.
enum { LOOKBACK_TREE_LEVELS = 64 };

// Tile descriptor statuses; X, A and P in Merrill & Garland (2016). 0 must be invalid: a zeroed
// workspace then holds no descriptor.
enum lookback_status {
  LOOKBACK_STATUS_INVALID = 0,
  LOOKBACK_STATUS_AGGREGATE = 1,
  LOOKBACK_STATUS_PREFIX = 2
};

// A descriptor's tag is (epoch << 2) | status. Epoch 0 is invalid; the largest is 2^30 - 1. Beside a tag a 128-bit word has so many
// bytes of a value.
enum { LOOKBACK_STATUS_BITS = 2, LOOKBACK_MAXIMUM_EPOCH = 0x3fffffff, LOOKBACK_PACKED_128_BYTES = 12 };

// What a launch computes from x[0], x[1], ...
enum lookback_mode {
  LOOKBACK_MODE_INCLUSIVE = 0,  // y[i] = x[0] + ... + x[i]
  LOOKBACK_MODE_EXCLUSIVE = 1,  // y[i] = x[0] + ... + x[i-1]; x[n-1] is never read
  LOOKBACK_MODE_INCLUSIVE_MINUS_INPUT = 2  // the exclusive scan as 'inclusive minus input' (integer sums only)
};

// The scan over one value a lane (or a thread).
enum lookback_pattern {
  LOOKBACK_PATTERN_SHUFFLE = 0,
  LOOKBACK_PATTERN_HILLIS_STEELE = 1,
  LOOKBACK_PATTERN_KOGGE_STONE = 2,
  LOOKBACK_PATTERN_BRENT_KUNG = 3,
  LOOKBACK_PATTERN_SKLANSKY = 4,
  LOOKBACK_PATTERN_BLELLOCH = 5
};

// How a block composes its tile scan.
enum lookback_composition {
  LOOKBACK_COMPOSITION_SCAN_THEN_PROPAGATE = 0,  // warps scan, then add the prefix of their warp
  LOOKBACK_COMPOSITION_REDUCE_THEN_SCAN = 1,     // warps reduce, then scan from their prefix
  LOOKBACK_COMPOSITION_BLOCK = 2                 // the pattern spans the whole block, row by row
};

// How a descriptor is laid out.
enum lookback_descriptor {
  LOOKBACK_DESCRIPTOR_PACKED_64 = 0,   // values up to 4 bytes: value and tag in one 64-bit word
  LOOKBACK_DESCRIPTOR_PACKED_128 = 1,  // any value: 12 bytes of it and a tag in each of as many 128-bit words as it needs
  LOOKBACK_DESCRIPTOR_SPLIT = 2        // any value: a tag, and separate aggregate and prefix slots
};

// How a block learns which tile is its own.
enum lookback_tile_order {
  LOOKBACK_TILE_ORDER_TICKET = 0,  // from an atomic ticket: the order in which blocks start
  LOOKBACK_TILE_ORDER_STATIC = 1   // the block index: progress then rests on blocks starting in order
};

// Where the arrays begin.
enum lookback_alignment {
  LOOKBACK_ALIGNMENT_ANY = 0,     // anywhere
  LOOKBACK_ALIGNMENT_VECTORS = 1  // input and output at a boundary of LOOKBACK_VECTOR_BYTES
};

// The choices that are compile-time constants on the GPU and run-time values on the CPU.
struct lookback_config {
  lookback_u32 vt;             // values per thread, 1 ... 64
  lookback_u32 block_threads;  // threads that hold values: a multiple of 32, 32 ... 1024
  lookback_u32 mode;           // lookback_mode
  lookback_u32 pattern;        // lookback_pattern
  lookback_u32 composition;    // lookback_composition
  lookback_u32 descriptor;     // lookback_descriptor
  lookback_u32 tile_order;     // lookback_tile_order
  lookback_u32 alignment;      // lookback_alignment
  lookback_u32 stages;         // tiles that a look-ahead block holds at one time, 1 ... 12; else 0
};

// The head of a workspace in device memory; zeroed once, when the workspace is made, and then kept
// by the kernels alone. All zero means: no launch yet, the first one runs at epoch 1.
struct lookback_control {
  lookback_u32 ticket;            // the next tile to hand out
  lookback_u32 finished_blocks;   // blocks of this launch that are done
  lookback_u32 completed_epochs;  // launches since the last clean-up; a launch runs at this + 1
  lookback_u32 reserved;          // 0
};

// What each of several ranks has in its own memory for the others to write into (`scan/dealt.cuh`), in front of the descriptors of
// all ranks' tiles. Zeroed once, as the control block.
struct lookback_mailbox {
  lookback_u32 completed_epochs[LOOKBACK_MAXIMUM_DEALT_RANKS];  // of each rank's control block, as that rank has told
  lookback_u32 is_given_up;                                     // whether nobody is to wait any more, because a rank is lost
  lookback_u32 reserved[LOOKBACK_MAXIMUM_DEALT_RANKS - 1];
};

// How tiles are dealt to ranks: each has so many neighbouring ones in turn.
struct lookback_deal {
  struct lookback_mailbox* const* mailboxes;  // of each rank; descriptors lie behind each. Null where nothing is dealt
  lookback_u32 ranks;
  lookback_u32 rank;
  lookback_u32 chunk_tiles;
  lookback_u32 reserved;
};

// What kernels found in numbers that the device alone knows; kept until the host asks.
struct lookback_findings {
  lookback_u64 segment;  // 1 and a segment whose offsets fall, or do not lead from 0 to n; 0 for none
  lookback_u64 count;    // a count of elements that is larger than the arrays, or no whole rows; 0 for none
};

// The axis that a scan down columns runs along (`problem/columns.cuh`, `problem/columns_ahead.cuh`). Arrays have the shape (outer, length, inner).
struct lookback_axis {
  lookback_u64 length;         // elements of a column
  lookback_u64 inner;          // from one of them to the next
  lookback_u32 strips;         // of one outer index
  lookback_u32 lines;          // strips of all outer indices
  lookback_u32 tiles_down;     // tiles of a line
  lookback_u32 strip_lanes;    // threads side by side in a strip, 1 ... 32: a power of two, unless blocks stay
  lookback_u32 strip_columns;  // of a strip; the last one of an outer index may have fewer
  lookback_u32 period;         // where blocks stay, tiles of a line from one that publishes a prefix to the next
  lookback_u32 group;          // and within them from one that publishes the total of its group; divides the period
  lookback_u32 block_tiles;    // tiles of a block: 1, or one of each warp where a warp has rows enough for a column
};

// Arrays whose rows do not lie one behind the other (`problem/segments.cuh`), and 0 for others. A row are the elements that do.
struct lookback_strides {
  lookback_u64 row_elements;
  lookback_u64 inverse;                          // 2^64 / row_elements, cut
  lookback_u64 inputs[LOOKBACK_MAXIMUM_ARRAYS];  // elements from the begin of a row to that of the next
  lookback_u64 outputs[LOOKBACK_MAXIMUM_ARRAYS];
};

// The bits of keys that are sorted by, those below the end (`problem/sorted.cuh`).
struct lookback_key_bits {
  lookback_u32 first;
  lookback_u32 end;
};

// What a warp has come to with a tile, in kernels that record it (`cuda/faults/hooks.cuh`). The first four are those of every
// warp that scans.
enum lookback_trace_step {
  LOOKBACK_TRACE_LANDED = 0,     // the warp has its elements
  LOOKBACK_TRACE_REDUCED = 1,    // the warp has the total
  LOOKBACK_TRACE_PREFIX = 2,     // what stands left of the tile is known
  LOOKBACK_TRACE_STORED = 3,     // the last store is on its way
  LOOKBACK_TRACE_TICKET = 4,     // the tile's index is known
  LOOKBACK_TRACE_REQUESTED = 5,  // its copy into the ring is asked for
  LOOKBACK_TRACE_AGGREGATE = 6,  // the aggregate is published
  LOOKBACK_TRACE_PUBLISHED = 7,  // the inclusive prefix is published
  LOOKBACK_TRACE_READ = 8,       // descriptors are about to be read, once a round
  LOOKBACK_TRACE_FOUND = 9       // all that are needed of them are there
};
// Steps that a warp comes to once, in halves, and those of a round; warps of a block, and rounds of a tile that have a place: later
// ones take the places of earlier ones.
enum {
  LOOKBACK_TRACE_STEPS = 10,
  LOOKBACK_TRACE_HALF = 4,
  LOOKBACK_TRACE_WARPS = 32,
  LOOKBACK_TRACE_ROUNDS = 32
};
// What says where a tile was: set, the multiprocessor above so many bits of the block.
enum { LOOKBACK_TRACE_BLOCK_BITS = 16, LOOKBACK_TRACE_PLACE_IS_SET = 0x80000000 };

// When descriptors were read, and by which warp.
struct lookback_trace_round {
  lookback_u32 read;
  lookback_u32 found;
  lookback_u32 missing_tile;          // for whose publication the warp waited last; all ones for none
  lookback_u32 descriptors_and_warp;  // how many, and in the lowest 5 bits who
};

// What is recorded of a tile: lower halves of the multiprocessor's clock, each at a place of its own, so that nobody counts them;
// 0 is none. Those of warps that scan fill sectors of the L2 cache, of which a part costs more than the whole.
struct lookback_trace_tile {
  lookback_u32 halves[2][LOOKBACK_TRACE_WARPS][LOOKBACK_TRACE_HALF];
  struct lookback_trace_round rounds[LOOKBACK_TRACE_ROUNDS];
  lookback_u32 place;
  lookback_u32 reserved[7];  // to the end of the sector
};

// Where that goes.
struct lookback_trace {
  struct lookback_trace_tile* tiles;  // null for nowhere
  lookback_u64 count;
};

// What one kernel launch is given, by value. Each kernel says which fields it reads.
struct lookback_launch {
  struct lookback_trace trace;  // first, because hooks find it by its place (`gpu/platform.cuh`)
  const void* input;    // n elements (n - 1 suffice for an exclusive scan)
  void* output;         // n elements; may be the input itself, and must not overlap it otherwise
  void* spine;          // one element a tile (three phases); partial nodes of the tree, to finish the tree (Blelloch);
                        // the input, to be subtracted in the last step (Hillis-Steele)
  struct lookback_control* control;
  void* descriptors;    // `capacity` descriptors
  lookback_u64 n;       // elements of the scan
  lookback_u64 tiles;   // tiles that cover them, the lead included
  lookback_u64 stride;  // distance of a Hillis-Steele step or a Blelloch level, or from a tile of whole rows to the next
  lookback_u64 capacity;  // descriptors in the workspace: what the clean-up at the wrap clears
  lookback_u32 lead;    // elements from a boundary of an access at or below `input` to `input`
  lookback_u32 host_epoch;  // read by the fault that trusts the host's epoch, and by nobody else; 0
  // Of problems that a user has defined (`problem/defined.cuh`), and 0 for others.
  const void* inputs[LOOKBACK_MAXIMUM_ARRAYS];
  void* outputs[LOOKBACK_MAXIMUM_ARRAYS];
  lookback_u64 columns;          // elements of a row
  lookback_u64 columns_inverse;  // 2^64 / columns, cut
  const void* initial_state;     // what stands left of the first element, or of each row; null for none, or for `initial`
  void* final_state;             // where the state at the last index is stored, or of each row, if the problem has one
  lookback_u32 has_initial;      // whether `initial` stands there
  lookback_u32 is_reversed;      // whether the scan begins at the last element
  const void* offsets;           // where each of `segments` begins, and where the last one ends
  lookback_u64 segments;
  const void* count;             // elements of the scan, `n` at most; null if they are `n`
  lookback_u32 offset_bytes;     // of each of `offsets`, 4 or 8
  lookback_u32 count_bytes;      // of `count`, likewise
  struct lookback_findings* findings;
  void* kept;                    // where the number of elements is stored that are stored by rank; null for nowhere
  lookback_u32 kept_bytes;       // of it, 4 or 8
  lookback_u32 kept_numbers;     // 2 if that of all others is stored behind it, else 1
  lookback_u64 initial[LOOKBACK_MAXIMUM_STATE_BYTES / 8];
  struct lookback_axis axis;     // of a scan down columns
  struct lookback_key_bits key_bits;  // of a sort
  lookback_u64 places;           // that the outputs of a scatter have
  struct lookback_deal deal;     // of a scan whose tiles several ranks share
  struct lookback_strides strides;
  lookback_u64 parameters[LOOKBACK_PARAMETER_BYTES / 8];  // that the text of a definition is given; the last (`parameter_word`)
};

// What a stress build of the kernels is told and reports, one in each of its modules.
struct lookback_stress {
  lookback_u64 seed;               // which delay points delay, and for how long
  lookback_u64 wait_nanoseconds;   // how long a tile may wait for another before it gives up
  lookback_u32 delay_rate;         // delays in 65536 passes of a delay point
  lookback_u32 delay_nanoseconds;  // the longest delay
  lookback_u32 faults;             // waits that ran out
  lookback_u32 delays;             // times that a warp was delayed
  lookback_u64 waiting_tile;       // of the first that did: the tile that waited
  lookback_u64 missing_tile;       // and the tile that it waited for
};

/// What a launch on the CPU device did, summed over its threads.
struct lookback_counters {
  /// Elements read from input, output or temporary arrays.
  lookback_u64 element_reads;
  /// Elements written to them.
  lookback_u64 element_writes;
  /// Accesses by which lanes read and wrote them, each of up to 16 bytes; bulk copies are none.
  lookback_u64 element_accesses;
  /// Elements read from a spine.
  lookback_u64 spine_reads;
  /// Elements written to one.
  lookback_u64 spine_writes;
  /// Applications of the scan operator: the work.
  lookback_u64 operator_applications;
  /// Applications on the longest chain in which each waits for the one before, through collectives,
  /// barriers and the protocol between blocks: the span.
  lookback_u64 span_steps;
  /// Block barriers, one for every time a block passes one.
  lookback_u64 block_barriers;
  /// Warp collectives, one for every time lanes meet.
  lookback_u64 warp_collectives;
  /// Relaxed, acquire and payload loads.
  lookback_u64 protocol_loads;
  /// Relaxed, release and payload stores.
  lookback_u64 protocol_stores;
  /// Fetch-and-adds.
  lookback_u64 protocol_updates;
  /// Calls of `spin_pause`.
  lookback_u64 spin_polls;
  /// Tiles that looked back.
  lookback_u64 lookbacks;
  /// Windows of descriptors that they read.
  lookback_u64 lookback_rounds;
  /// Tiles that they went back, summed.
  lookback_u64 lookback_distance_tiles;
  /// Shared memory of the block that declared most.
  lookback_u64 shared_bytes;
};
