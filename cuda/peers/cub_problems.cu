// CUB's calls for the problems of src/lab/workload.rs other than the flat scan of one type: what a program writes that has
// CUB alone. Compiled once for each version, with the definitions of cub_scan.cu but for the element.
//
// Two of them need a word. Sums of narrow numbers in a wider type are there twice, those of halves that are stored as halves
// among them: over transform iterators, as CUB's documentation widens, and ("-wide-sum") over the array itself with an operator
// of the wide type, from which CUB takes the type that it adds up in. Rows are there by DeviceSegmentedScan ("-segmented"), which
// is younger than version 3.0.1 and gives each segment a block, and ("-computed-keys") by the sum by key over keys that are
// computed and not loaded.
//
// What is stored by rank is there in inclusive mode alone, as everywhere. The calls store the number of elements that they
// keep, too, for which there is room in front of their temporary memory.
#include "peers.h"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include <cstdint>
#include <cuda/std/functional>
#include <cuda/std/type_traits>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <limits>

#if CUB_VERSION != LOOKBACK_CUB_VERSION
#error "another CUB than the peers are named after was found: run scripts/install-cuda.sh, and let LOOKBACK_CUDA_HOME name its folder"
#endif

#if CUB_VERSION >= 300500
#define LOOKBACK_HAS_SEGMENTED_SCAN 1
#include <cub/device/device_segmented_scan.cuh>
#else
#define LOOKBACK_HAS_SEGMENTED_SCAN 0
#endif

namespace {

namespace thrust = THRUST_NS_QUALIFIER;

using DeviceScan = CUB_NS_QUALIFIER::DeviceScan;

// The type of the count is that of all offsets inside. 32 bits, as the plain names of the flat scans have them.
using Count = std::uint32_t;
// Of the lab's keys and offsets.
using Key = std::uint32_t;
using Offset = std::uint32_t;

// lookback_mode in ../abi.h.
enum Mode : std::uint32_t { INCLUSIVE = 0, EXCLUSIVE = 1 };

constexpr const char *PLAIN = "cub-" LOOKBACK_CUB_VERSION_TEXT;
constexpr const char *WIDE_SUM = "cub-" LOOKBACK_CUB_VERSION_TEXT "-wide-sum";
constexpr const char *COMPUTED_KEYS = "cub-" LOOKBACK_CUB_VERSION_TEXT "-computed-keys";

// Names in src/element/table.rs.
template <typename Element>
constexpr const char *NAME_OF = nullptr;
template <>
constexpr const char *NAME_OF<std::uint8_t> = "u8";
template <>
constexpr const char *NAME_OF<std::uint16_t> = "u16";
template <>
constexpr const char *NAME_OF<std::int32_t> = "i32";
template <>
constexpr const char *NAME_OF<std::int64_t> = "i64";
template <>
constexpr const char *NAME_OF<std::uint32_t> = "u32";
template <>
constexpr const char *NAME_OF<std::uint64_t> = "u64";
template <>
constexpr const char *NAME_OF<float> = "f32";
template <>
constexpr const char *NAME_OF<__half> = "f16";
template <>
constexpr const char *NAME_OF<__nv_bfloat16> = "bf16";

// What a call is given. Without temporary memory CUB writes how many bytes it wants, and nothing else is looked at.
struct Run {
  void *temporary;
  std::size_t &bytes;
  const void *const *inputs;
  void *output;
  lookback_peer_size size;
  cudaStream_t stream;

  template <typename Element>
  const Element *input(unsigned place) const {
    return static_cast<const Element *>(inputs[place]);
  }
  template <typename Element>
  Element *stored() const {
    return static_cast<Element *>(output);
  }
  Count count() const { return static_cast<Count>(size.n); }
  // Elements of a row. Of no elements there are no rows.
  Count row_elements() const { return size.segments == 0 ? 1 : static_cast<Count>(size.n / size.segments); }
};

template <Mode mode, typename Input, typename Output>
cudaError_t sum(const Run &run, Input input, Output output) {
  if constexpr (mode == INCLUSIVE) {
    return DeviceScan::InclusiveSum(run.temporary, run.bytes, input, output, run.count(), run.stream);
  } else {
    return DeviceScan::ExclusiveSum(run.temporary, run.bytes, input, output, run.count(), run.stream);
  }
}

template <Mode mode, typename Input, typename Output, typename Operator, typename State>
cudaError_t scan(const Run &run, Input input, Output output, Operator combine, State identity) {
  if constexpr (mode == INCLUSIVE) {
    return DeviceScan::InclusiveScan(run.temporary, run.bytes, input, output, combine, run.count(), run.stream);
  } else {
    return DeviceScan::ExclusiveScan(run.temporary, run.bytes, input, output, combine, identity, run.count(),
                                     run.stream);
  }
}

template <Mode mode, typename Keys, typename Element>
cudaError_t sum_by_key(const Run &run, Keys keys, const Element *input, Element *output) {
  constexpr ::cuda::std::equal_to<> same{};
  if constexpr (mode == INCLUSIVE) {
    return DeviceScan::InclusiveSumByKey(run.temporary, run.bytes, keys, input, output, run.count(), same, run.stream);
  } else {
    return DeviceScan::ExclusiveSumByKey(run.temporary, run.bytes, keys, input, output, run.count(), same, run.stream);
  }
}

// Each problem: the peer's name, what it is, and the call.

template <typename Number>
struct Reverse {
  static constexpr const char *PEER = PLAIN, *PROBLEM = "reverse", *OPERATION = "sum";
  using Input = Number;
  using Element = Number;

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    return sum<mode>(run, thrust::make_reverse_iterator(run.input<Input>(0) + run.size.n),
                     thrust::make_reverse_iterator(run.stored<Element>() + run.size.n));
  }
};

template <typename Number>
struct ByKey {
  static constexpr const char *PEER = PLAIN, *PROBLEM = "by-key", *OPERATION = "sum";
  using Input = Number;
  using Element = Number;

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    return sum_by_key<mode>(run, run.input<Key>(0), run.input<Input>(1), run.stored<Element>());
  }
};

// Added up in State.
template <typename From, typename State, typename To = State>
struct Converted {
  static constexpr const char *PEER = PLAIN, *PROBLEM = "flat", *OPERATION = "sum";
  using Input = From;
  using Element = To;

  template <typename Before, typename After>
  struct Convert {
    __host__ __device__ After operator()(Before value) const { return static_cast<After>(value); }
  };

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    const auto input = thrust::make_transform_iterator(run.input<From>(0), Convert<From, State>{});
    if constexpr (::cuda::std::is_same_v<State, To>) {
      return sum<mode>(run, input, run.stored<To>());
    } else {
      return sum<mode>(run, input, thrust::make_transform_output_iterator(run.stored<To>(), Convert<State, To>{}));
    }
  }
};

template <typename From, typename State, typename To = State>
struct WideSum {
  static constexpr const char *PEER = WIDE_SUM, *PROBLEM = "flat", *OPERATION = "sum";
  using Input = From;
  using Element = To;

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    return scan<mode>(run, run.input<From>(0), run.stored<To>(), ::cuda::std::plus<State>{}, State{0});
  }
};

// x ↦ factor · x + addend.
template <typename Number>
struct Map {
  Number factor;
  Number addend;
};

template <typename Number, bool is_reversed>
struct Recurrence {
  static constexpr const char *PEER = PLAIN, *PROBLEM = is_reversed ? "reverse-recurrence" : "recurrence";
  static constexpr const char *OPERATION = nullptr;
  using Input = Number;
  using Element = Number;

  // What is scanned at a place, from whichever end.
  struct Load {
    const Number *factors;
    const Number *addends;
    Count n;
    __host__ __device__ Map<Number> operator()(Count index) const {
      const Count place = is_reversed ? n - 1 - index : index;
      return {factors[place], addends[place]};
    }
  };
  // The first map and then the second.
  struct Compose {
    __host__ __device__ Map<Number> operator()(Map<Number> first, Map<Number> second) const {
      return {first.factor * second.factor, second.factor * first.addend + second.addend};
    }
  };
  // Of 0, before the first element.
  struct Value {
    __host__ __device__ Number operator()(Map<Number> map) const { return map.addend; }
  };

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    const Load load{run.input<Number>(0), run.input<Number>(1), run.count()};
    const auto input = thrust::make_transform_iterator(thrust::make_counting_iterator(Count{0}), load);
    const auto into = [&](auto output) {
      const auto values = thrust::make_transform_output_iterator(output, Value{});
      return scan<mode>(run, input, values, Compose{}, Map<Number>{1, 0});
    };
    if constexpr (is_reversed) {
      return into(thrust::make_reverse_iterator(run.stored<Number>() + run.size.n));
    } else {
      return into(run.stored<Number>());
    }
  }
};

template <typename Number>
struct RowsByKey {
  static constexpr const char *PEER = COMPUTED_KEYS, *PROBLEM = "rows", *OPERATION = "sum";
  using Input = Number;
  using Element = Number;

  struct Row {
    Count row_elements;
    __host__ __device__ Key operator()(Count index) const { return index / row_elements; }
  };

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    const auto rows =
      thrust::make_transform_iterator(thrust::make_counting_iterator(Count{0}), Row{run.row_elements()});
    return sum_by_key<mode>(run, rows, run.input<Number>(0), run.stored<Number>());
  }
};

// Makes a call that is given temporary memory, its bytes, and where the number of what is kept goes: to the begin of the run's.
template <typename Call>
cudaError_t keep(const Run &run, Call call) {
  // What the allocations of CUDA are aligned to, so that what is behind it is, too.
  constexpr std::size_t COUNT_BYTES = 256;
  if (run.temporary == nullptr) {
    const cudaError_t error = call(nullptr, run.bytes, static_cast<Count *>(nullptr));
    run.bytes += COUNT_BYTES;
    return error;
  }
  std::size_t bytes = run.bytes - COUNT_BYTES;
  return call(static_cast<char *>(run.temporary) + COUNT_BYTES, bytes, static_cast<Count *>(run.temporary));
}

// What moves numbers, and combines none.
template <typename Number>
struct WithoutOperator {
  static constexpr const char *PEER = PLAIN, *OPERATION = nullptr;
  using Input = Number;
  using Element = Number;
};

// Where most are kept, calls are the same, and arrays are others.
template <typename Call>
struct Most : Call {
  static constexpr const char *PROBLEM = Call::PROBLEM_OF_MOST;
};

template <typename Number>
struct Select : WithoutOperator<Number> {
  static constexpr const char *PROBLEM = "select", *PROBLEM_OF_MOST = "select-most";

  // Below the middle of the type's range, as the lab selects.
  struct BelowMiddle {
    static constexpr Number MIDDLE =
      std::numeric_limits<Number>::is_signed ? Number{0} : static_cast<Number>(std::numeric_limits<Number>::max() / 2 + 1);
    __host__ __device__ bool operator()(Number number) const { return number < MIDDLE; }
  };

  template <Mode>
  static cudaError_t call(const Run &run) {
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DeviceSelect::If(temporary, bytes, run.input<Number>(0), run.stored<Number>(), kept,
                                                run.count(), BelowMiddle{}, run.stream);
    });
  }
};

// The others stand behind in reverse order, as in the lab.
template <typename Number>
struct Partition : WithoutOperator<Number> {
  static constexpr const char *PROBLEM = "partition", *PROBLEM_OF_MOST = "partition-most";

  template <Mode>
  static cudaError_t call(const Run &run) {
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DevicePartition::Flagged(temporary, bytes, run.input<Number>(1),
                                                        run.input<std::uint8_t>(0), run.stored<Number>(), kept,
                                                        run.count(), run.stream);
    });
  }
};

template <typename Number>
struct Unique : WithoutOperator<Number> {
  static constexpr const char *PROBLEM = "unique", *PROBLEM_OF_MOST = "unique-most";

  template <Mode>
  static cudaError_t call(const Run &run) {
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DeviceSelect::Unique(temporary, bytes, run.input<Number>(0), run.stored<Number>(), kept,
                                                    run.count(), run.stream);
    });
  }
};

// The lab stores the totals alone: the keys of the runs go nowhere.
template <typename Number>
struct ReduceByKey {
  static constexpr const char *PEER = PLAIN, *PROBLEM = "reduce-by-key", *OPERATION = "sum";
  using Input = Number;
  using Element = Number;

  template <Mode>
  static cudaError_t call(const Run &run) {
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DeviceReduce::ReduceByKey(
        temporary, bytes, run.input<Key>(0), thrust::make_discard_iterator(), run.input<Number>(1),
        run.stored<Number>(), kept, ::cuda::std::plus<Number>{}, run.count(), run.stream);
    });
  }
};

// What each run is of and, behind as many as there are elements, how long it is.
template <typename Number>
struct RunLengthEncode : WithoutOperator<Number> {
  static constexpr const char *PROBLEM = "run-length-encode";

  template <Mode>
  static cudaError_t call(const Run &run) {
    Number *const values = run.stored<Number>();
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DeviceRunLengthEncode::Encode(temporary, bytes, run.input<Number>(0), values,
                                                             values + run.size.n, kept, run.count(), run.stream);
    });
  }
};

// Where each run of more than one begins and, behind as many places as there are elements, how long it is.
template <typename Number>
struct NonTrivialRuns {
  static constexpr const char *PEER = PLAIN, *PROBLEM = "non-trivial-runs", *OPERATION = nullptr;
  using Input = Number;
  using Element = std::uint64_t;

  template <Mode>
  static cudaError_t call(const Run &run) {
    Element *const begins = run.stored<Element>();
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DeviceRunLengthEncode::NonTrivialRuns(temporary, bytes, run.input<Number>(0), begins,
                                                                     begins + run.size.n, kept, run.count(), run.stream);
    });
  }
};

// Selected are places, which are counted and not loaded, by flags, which are made of the numbers.
template <typename Number>
struct NonZero {
  static constexpr const char *PEER = PLAIN, *PROBLEM = "nonzero", *OPERATION = nullptr;
  using Input = Number;
  using Element = std::uint64_t;

  struct IsNotZero {
    __host__ __device__ bool operator()(Number number) const { return number != Number{0}; }
  };

  template <Mode>
  static cudaError_t call(const Run &run) {
    return keep(run, [&](void *temporary, std::size_t &bytes, Count *kept) {
      return CUB_NS_QUALIFIER::DeviceSelect::Flagged(
        temporary, bytes, thrust::make_counting_iterator(Element{0}),
        thrust::make_transform_iterator(run.input<Number>(0), IsNotZero{}), run.stored<Element>(), kept, run.count(),
        run.stream);
    });
  }
};

// By the upper half of the bits or by all of them; the input stays as it is.
template <typename Number, bool is_by_half>
struct Sort : WithoutOperator<Number> {
  static constexpr const char *PROBLEM = is_by_half ? "sort-by-half" : "sort";

  template <Mode>
  static cudaError_t call(const Run &run) {
    constexpr int BITS = 8 * sizeof(Number);
    return CUB_NS_QUALIFIER::DeviceRadixSort::SortKeys(run.temporary, run.bytes, run.input<Number>(0),
                                                       run.stored<Number>(), run.count(), is_by_half ? BITS / 2 : 0, BITS,
                                                       run.stream);
  }
};

// Keys and, behind them, values.
template <typename Number>
struct SortPairs : WithoutOperator<Number> {
  static constexpr const char *PROBLEM = "sort-pairs";

  template <Mode>
  static cudaError_t call(const Run &run) {
    Number *const sorted = run.stored<Number>();
    return CUB_NS_QUALIFIER::DeviceRadixSort::SortPairs(run.temporary, run.bytes, run.input<Number>(0), sorted,
                                                        run.input<Number>(1), sorted + run.size.n, run.count(), 0,
                                                        8 * static_cast<int>(sizeof(Number)), run.stream);
  }
};

// Counts of 32 bits.
template <typename Number>
struct Counted {
  static constexpr const char *PEER = PLAIN, *OPERATION = nullptr;
  using Input = Number;
  using Element = std::uint32_t;

  // Of no elements CUB stores counts all the same, for which the lab has no room.
  static bool is_of_nothing(const Run &run) { return run.temporary != nullptr && run.count() == 0; }

  template <typename Level>
  static cudaError_t even(const Run &run, int bins, Level lower, Level upper) {
    if (is_of_nothing(run)) return cudaSuccess;
    return CUB_NS_QUALIFIER::DeviceHistogram::HistogramEven(run.temporary, run.bytes, run.input<Input>(0),
                                                            run.stored<Element>(), bins + 1, lower, upper, run.count(),
                                                            run.stream);
  }
};

constexpr int BYTE_VALUES = 256;

struct Histogram : Counted<std::uint8_t> {
  static constexpr const char *PROBLEM = "histogram";

  template <Mode>
  static cudaError_t call(const Run &run) {
    return even(run, BYTE_VALUES, 0, BYTE_VALUES);
  }
};

// Two calls: the counts, and their sums in place.
struct CumulatedHistogram : Counted<std::uint8_t> {
  static constexpr const char *PROBLEM = "cumulated-histogram";

  template <Mode>
  static cudaError_t call(const Run &run) {
    if (is_of_nothing(run)) return cudaSuccess;
    // One behind the other use the same temporary memory.
    std::size_t counting = run.bytes, summing = run.bytes;
    cudaError_t error = even(Run{run.temporary, counting, run.inputs, run.output, run.size, run.stream}, BYTE_VALUES, 0,
                             BYTE_VALUES);
    if (error != cudaSuccess) return error;
    error = DeviceScan::InclusiveSum(run.temporary, summing, run.stored<Element>(), run.stored<Element>(), BYTE_VALUES,
                                     run.stream);
    if (run.temporary == nullptr) run.bytes = counting > summing ? counting : summing;
    return error;
  }
};

// A number of so many 64ths of the range of the type; of floats from -0.5 to 1.5, as the lab draws them (src/lab/bins.rs).
template <typename Number>
constexpr Number part_of_range(int part) {
  if constexpr (::cuda::std::is_floating_point_v<Number>) {
    return static_cast<Number>(part) / 32 - Number{0.5};
  } else {
    constexpr int BITS = 8 * sizeof(Number) - 6;
    return static_cast<Number>(std::numeric_limits<Number>::min() + (static_cast<std::int64_t>(part) << BITS));
  }
}

// Of unsigned integers: from one end to the other it is more than the largest signed one, and CUB subtracts them in their type;
// floats it rounds otherwise than the lab.
template <typename Number>
struct EvenHistogram : Counted<Number> {
  static constexpr const char *PROBLEM = "even-histogram";

  template <Mode>
  static cudaError_t call(const Run &run) {
    constexpr int BINS = 100;
    return Counted<Number>::even(run, BINS, part_of_range<Number>(13), part_of_range<Number>(51));
  }
};

template <typename Number>
__device__ const Number LEVELS[] = {part_of_range<Number>(3),  part_of_range<Number>(4),  part_of_range<Number>(6),
                                    part_of_range<Number>(10), part_of_range<Number>(18), part_of_range<Number>(34),
                                    part_of_range<Number>(61)};

template <typename Number>
struct HistogramBetween : Counted<Number> {
  static constexpr const char *PROBLEM = "histogram-between";

  template <Mode>
  static cudaError_t call(const Run &run) {
    if (Counted<Number>::is_of_nothing(run)) return cudaSuccess;
    // Asked once, so that no time of it counts.
    static void *levels = nullptr;
    static const cudaError_t error = cudaGetSymbolAddress(&levels, LEVELS<Number>);
    if (error != cudaSuccess) return error;
    return CUB_NS_QUALIFIER::DeviceHistogram::HistogramRange(
      run.temporary, run.bytes, run.input<Number>(0), run.stored<std::uint32_t>(),
      static_cast<int>(sizeof(LEVELS<Number>) / sizeof(Number)), static_cast<const Number *>(levels), run.count(),
      run.stream);
  }
};

#if LOOKBACK_HAS_SEGMENTED_SCAN
constexpr const char *SEGMENTED = "cub-" LOOKBACK_CUB_VERSION_TEXT "-segmented";

// Segment i is what lies between the offsets i and i + 1.
template <Mode mode, typename Element, typename Offsets>
cudaError_t segmented_sum(const Run &run, const Element *input, Offsets offsets) {
  using DeviceSegmentedScan = CUB_NS_QUALIFIER::DeviceSegmentedScan;
  Element *const output = run.stored<Element>();
  const auto segments = static_cast<std::int64_t>(run.size.segments);
  if constexpr (mode == INCLUSIVE) {
    return DeviceSegmentedScan::InclusiveSegmentedSum(run.temporary, run.bytes, input, output, offsets, offsets + 1,
                                                      segments, run.stream);
  } else {
    return DeviceSegmentedScan::ExclusiveSegmentedSum(run.temporary, run.bytes, input, output, offsets, offsets + 1,
                                                      segments, run.stream);
  }
}

template <typename Number>
struct Rows {
  static constexpr const char *PEER = SEGMENTED, *PROBLEM = "rows", *OPERATION = "sum";
  using Input = Number;
  using Element = Number;

  struct Begin {
    Offset row_elements;
    __host__ __device__ Offset operator()(Offset row) const { return row * row_elements; }
  };

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    const auto rows = thrust::make_counting_iterator(Offset{0});
    return segmented_sum<mode>(run, run.input<Number>(0),
                               thrust::make_transform_iterator(rows, Begin{run.row_elements()}));
  }
};

template <typename Number>
struct Offsets {
  static constexpr const char *PEER = SEGMENTED, *PROBLEM = "offsets", *OPERATION = "sum";
  using Input = Number;
  using Element = Number;

  template <Mode mode>
  static cudaError_t call(const Run &run) {
    return segmented_sum<mode>(run, run.input<Number>(1), run.input<Offset>(0));
  }
};
#endif

// What the call's count holds.
template <typename Scan>
constexpr std::uint64_t LARGEST_N = std::numeric_limits<Count>::max();
#if CUB_VERSION < 300500
template <typename Number>
constexpr std::uint64_t LARGEST_N<RunLengthEncode<Number>> = std::numeric_limits<int>::max();
template <typename Number>
constexpr std::uint64_t LARGEST_N<NonTrivialRuns<Number>> = std::numeric_limits<int>::max();
#endif

template <typename Scan, Mode mode>
struct Entry {
  static int temporary_bytes(const lookback_peer_size *size, std::size_t *bytes) {
    const void *const nowhere[2] = {};
    *bytes = 0;
    return Scan::template call<mode>(Run{nullptr, *bytes, nowhere, nullptr, *size, nullptr});
  }

  static int launch(void *temporary, std::size_t bytes, const void *const *inputs, void *output,
                    const lookback_peer_size *size, void *stream) {
    return Scan::template call<mode>(Run{temporary, bytes, inputs, output, *size, static_cast<cudaStream_t>(stream)});
  }

  static constexpr lookback_peer_entry ROW{Scan::PEER,
                                           CUB_VERSION,
                                           LOOKBACK_PEER_SCAN,
                                           Scan::PROBLEM,
                                           NAME_OF<typename Scan::Input>,
                                           NAME_OF<typename Scan::Element>,
                                           Scan::OPERATION,
                                           mode,
                                           1,
                                           LARGEST_N<Scan>,
                                           temporary_bytes,
                                           launch};
};

template <typename... Scans>
struct InBothModes {};
template <typename... Scans>
struct InclusiveAlone {};

template <typename Both, typename Inclusive>
struct Table;
template <typename... Both, typename... Inclusive>
struct Table<InBothModes<Both...>, InclusiveAlone<Inclusive...>> {
  static constexpr lookback_peer_entry ENTRIES[] = {Entry<Both, INCLUSIVE>::ROW..., Entry<Both, EXCLUSIVE>::ROW...,
                                                    Entry<Inclusive, INCLUSIVE>::ROW...};
};

using Peers = Table<
  InBothModes<
#if LOOKBACK_HAS_SEGMENTED_SCAN
    Rows<float>, Offsets<float>,
#endif
    RowsByKey<float>, ByKey<std::int32_t>, ByKey<float>, Reverse<std::int32_t>, Reverse<std::uint32_t>, Reverse<float>,
    Converted<std::uint8_t, std::uint32_t>, Converted<__half, float>, WideSum<std::uint8_t, std::uint32_t>,
    WideSum<__half, float>, Converted<__half, float, __half>, WideSum<__half, float, __half>,
    Converted<__nv_bfloat16, float, __nv_bfloat16>, WideSum<__nv_bfloat16, float, __nv_bfloat16>,
    Recurrence<float, false>, Recurrence<float, true>>,
  InclusiveAlone<Select<std::uint8_t>, Select<std::uint16_t>, Select<std::int32_t>, Select<std::int64_t>,
                 Partition<std::uint8_t>, Partition<std::uint16_t>, Partition<std::int32_t>, Partition<std::int64_t>,
                 Unique<std::uint8_t>, Unique<std::uint16_t>, Unique<std::int32_t>, Unique<std::int64_t>,
                 Most<Select<std::uint8_t>>, Most<Select<std::uint16_t>>, Most<Select<std::int32_t>>,
                 Most<Select<std::int64_t>>, Most<Partition<std::uint8_t>>, Most<Partition<std::uint16_t>>,
                 Most<Partition<std::int32_t>>, Most<Partition<std::int64_t>>, Most<Unique<std::uint8_t>>,
                 Most<Unique<std::uint16_t>>, Most<Unique<std::int32_t>>, Most<Unique<std::int64_t>>,
                 ReduceByKey<std::int32_t>, ReduceByKey<float>, RunLengthEncode<std::uint32_t>,
                 RunLengthEncode<std::int32_t>, RunLengthEncode<std::int64_t>, NonTrivialRuns<std::int32_t>,
                 NonZero<std::uint8_t>, NonZero<std::int32_t>, Sort<std::uint8_t, false>, Sort<std::uint16_t, false>,
                 Sort<std::uint32_t, false>, Sort<std::int64_t, false>, Sort<float, false>, Sort<std::int64_t, true>,
                 SortPairs<std::uint32_t>, Histogram, CumulatedHistogram, EvenHistogram<std::uint8_t>,
                 EvenHistogram<std::uint32_t>, HistogramBetween<std::uint8_t>, HistogramBetween<std::int32_t>,
                 HistogramBetween<float>>>;

} // namespace

extern "C" std::size_t LOOKBACK_PEER_TABLE(const lookback_peer_entry **entries) {
  *entries = Peers::ENTRIES;
  return sizeof(Peers::ENTRIES) / sizeof(Peers::ENTRIES[0]);
}
