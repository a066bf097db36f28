//! Definitions that the crate provides.

use super::definition::{CudaType, own_name};
use super::{ArrayElement, Definition, Element, ElementType, NoSuchProblem, Operator, Problem, WholeNumber};

impl Definition {
    /// The scan of one array of numbers into another one by an operator of the table, in the types of
    /// [`Problem::accumulating`]: what such a scan is in reverse or in segments.
    ///
    /// # Errors
    /// As [`Problem::accumulating`].
    pub fn of_numbers(operator: Operator, input: ElementType, output: ElementType) -> Result<Self, NoSuchProblem> {
        let problem = Problem::accumulating(operator, input, output)?;
        let (Some(instance), Some(types)) = (problem.instance(), problem.types()) else {
            return Err(NoSuchProblem::NotANumber(input));
        };
        Ok(Self::of_types(problem.to_string(), instance, types))
    }

    /// The first-order linear recurrence `h[t] = a[t] · h[t−1] + b[t]` of two arrays `a` and `b` of numbers, from 0 or, as an
    /// initial state, from the pair (0, h): in reverse `h[t] = a[t] · h[t+1] + b[t]`, by rows a sequence a row. The state is
    /// a pair of numbers, factor and addend: of `T`, of `half::f16` and `half::bf16` of `f32`, of integers below 4 bytes of
    /// those with 4.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn linear_recurrence<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::linear_recurrence_of(T::ELEMENT)
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn linear_recurrence_of(element: ElementType) -> Result<Self, NoSuchProblem> {
        if !element.is_number() {
            return Err(NoSuchProblem::NotANumber(element));
        }
        let number = element.scanned_in();
        let (bytes, number) = (2 * number.bytes(), number.cuda_type());
        Ok(Self::of_states(format!("recurrence of {element}"), String::from("map"), bytes)
            // What overflows with a sign is undefined in C++.
            .declare(&format!("using part = typename number<{number}>::wrapping;"))
            .declare("struct map { part factor; part addend; };")
            .identity("{1, 0}")
            .combine("return {left.factor * right.factor, right.factor * left.addend + right.addend};")
            .input_of("a", element)
            .input_of("b", element)
            .load("return {static_cast<part>(a), static_cast<part>(b)};")
            .output_of("h", element)
            .store(&format!("h = static_cast<{}>(state.addend);", element.cuda_type())))
    }

    /// The largest number up to each place and where it stands, of an array `x` into two, `value` and `index` (`u64`): of equal
    /// ones the lowest index, and a NaN is larger than all, as NumPy's `argmax` has it. The index is that in the whole array,
    /// by rows, too; where there is no number yet, as at the first element of an exclusive scan, the value is 0 and the
    /// index `u64::MAX`. The state is a `u64`, the index, and behind it the number, in 16 bytes.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn arg_max<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::arg_extreme::<T>("arg max", ">")
    }

    /// The smallest number up to each place and where it stands; otherwise as [`Self::arg_max`], a NaN before all.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn arg_min<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::arg_extreme::<T>("arg min", "<")
    }

    /// The elements of an array `x` for which statements of CUDA C++ return true, in their order: CUB's `DeviceSelect::If`, NumPy's
    /// `x[predicate(x)]`. The statements have the element by its name, and its place `i`. Into one output, `kept`.
    pub fn select<T: ArrayElement>(predicate: &str) -> Self {
        Self::filter(format!("selection of {}", own_name(T::CUDA_TYPE)))
            .input::<T>("x")
            .keep(predicate)
            .output::<T>("kept")
            .store("kept = x;")
    }

    /// The elements of the first array, `x`, whose flag in the second one is not 0: CUB's `DeviceSelect::Flagged`.
    pub fn select_flagged<T: ArrayElement>() -> Self {
        Self::filter(format!("flagged {}", own_name(T::CUDA_TYPE)))
            .input::<T>("x")
            .input::<u8>("flag")
            .keep("return flag != 0;")
            .output::<T>("kept")
            .store("kept = x;")
    }

    /// The same of a type that is chosen at run time, as the laboratory has it: the flags are the first array.
    #[cfg(feature = "lab")]
    pub(crate) fn flagged_of(element: ElementType) -> Self {
        Self::filter(format!("flagged {element}"))
            .input_of("flag", ElementType::U8)
            .input_of("x", element)
            .keep("return flag != 0;")
            .output_of("kept", element)
            .store("kept = x;")
    }

    /// What the laboratory selects: numbers below a parameter, the middle of their type's range. Its name is that of every selection,
    /// whose tiles are the same.
    ///
    /// # Errors
    /// When it is not a type of numbers.
    #[cfg(feature = "lab")]
    pub(crate) fn below_middle(element: ElementType) -> Result<Self, NoSuchProblem> {
        let number = number(element)?.scanned_in();
        Ok(Self::filter(format!("selection of {}", own_name(element.cuda_type())))
            .parameter_of("middle", number)
            .input_of("x", element)
            .keep(&format!("return static_cast<{}>(x) < middle;", number.cuda_type()))
            .output_of("kept", element)
            .store("kept = x;"))
    }

    /// As [`Self::select`], and the others in their order into a second output: C++'s `stable_partition`, in two arrays. With
    /// [`Self::others_behind`] instead, of a selection, both are in one.
    pub fn partition<T: ArrayElement>(predicate: &str) -> Self {
        Self::select::<T>(predicate).others_apart()
    }

    /// The places, as `u64`, of the numbers that are not 0: NumPy's `flatnonzero`.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn nonzero<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::nonzero_as::<T, u64>()
    }

    /// The same with places of type `P`; in one of 4 bytes they are modulo 2^32.
    ///
    /// # Errors
    /// Likewise.
    pub fn nonzero_as<T: Element, P: WholeNumber>() -> Result<Self, NoSuchProblem> {
        Self::nonzero_of(T::ELEMENT, P::ELEMENT)
    }

    /// The same of types that are chosen at run time.
    pub(crate) fn nonzero_of(element: ElementType, place: ElementType) -> Result<Self, NoSuchProblem> {
        let number = number(element)?.scanned_in().cuda_type();
        Ok(Self::filter(format!("places of {element} that are not 0"))
            .input_of("x", element)
            .keep(&format!("return static_cast<{number}>(x) != 0;"))
            .output_of("place", place)
            .store(&format!("place = static_cast<{}>(i);", place.cuda_type())))
    }

    /// The first one of each run of equal neighbours: CUB's `DeviceSelect::Unique`, C++'s `unique`. A NaN differs from all.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn unique<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::unique_of(T::ELEMENT)
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn unique_of(element: ElementType) -> Result<Self, NoSuchProblem> {
        Ok(Self::filter(format!("{} that differ from the one before", number(element)?))
            .first_input_in_runs_of("x", element)
            .keep("return x_begins;")
            .output_of("unique", element)
            .store("unique = x;"))
    }

    /// Each run of equal neighbours as its last one, `value`, and its length, `length` (`u64`): CUB's
    /// `DeviceRunLengthEncode::Encode`.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn run_length_encode<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::run_length_encode_as::<T, u64>()
    }

    /// The same with lengths of type `L`; in one of 4 bytes they are modulo 2^32.
    ///
    /// # Errors
    /// Likewise.
    pub fn run_length_encode_as<T: Element, L: WholeNumber>() -> Result<Self, NoSuchProblem> {
        Self::runs_with_lengths(T::ELEMENT, L::ELEMENT)
    }

    /// The same of types of numbers that are chosen at run time.
    pub(crate) fn runs_with_lengths(element: ElementType, length: ElementType) -> Result<Self, NoSuchProblem> {
        Ok(Self::filter_with_lengths(format!("runs of {}", number(element)?))
            .first_input_in_runs_of("x", element)
            .keep("return x_ends;")
            .output_of("value", element)
            .output_of("length", length)
            .store(&format!("value = x; length = static_cast<{}>(state);", length.cuda_type())))
    }

    /// The runs of more than one, each as the place of the lowest one, `place`, and its length, `length` (both `u64`): CUB's
    /// `DeviceRunLengthEncode::NonTrivialRuns`.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn non_trivial_runs<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::non_trivial_runs_of(T::ELEMENT)
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn non_trivial_runs_of(element: ElementType) -> Result<Self, NoSuchProblem> {
        Ok(Self::of_states(format!("longer runs of {}", number(element)?), String::from("u64"), 8)
            .identity("0")
            .combine("return left + right;")
            .first_input_in_runs_of("x", element)
            .load("return 1;")
            .groups("return x_begins && !x_ends;", "return x_ends && !x_begins;")
            .output::<u64>("place")
            .output::<u64>("length")
            .store("place = is_reversed ? i : i + 1 - state; length = state;"))
    }

    /// What an operator of the table makes of the numbers of each run of equal keys: of arrays `key` and `x` into two, `unique`,
    /// the run's last key, and `total`: CUB's `DeviceReduce::ReduceByKey`. In the types of [`Problem::accumulating`].
    ///
    /// # Errors
    /// When `K` is not a type of numbers, and as [`Problem::accumulating`].
    pub fn reduce_by_key<K: Element>(
        operator: Operator,
        input: ElementType,
        output: ElementType,
    ) -> Result<Self, NoSuchProblem> {
        let totals = Self::totals_by_key(K::ELEMENT, operator, input, output)?;
        Ok(totals.first_output_of("unique", K::ELEMENT, "unique = key;"))
    }

    /// The totals alone, of keys whose type is chosen at run time.
    pub(crate) fn totals_by_key(
        key: ElementType,
        operator: Operator,
        input: ElementType,
        output: ElementType,
    ) -> Result<Self, NoSuchProblem> {
        let key = number(key)?;
        Ok(Self::of_numbers(operator, input, output)?.first_input_in_runs_of("key", key).runs("key"))
    }

    /// The sort of an array of numbers, `key`, into another one, `sorted`: CUB's `DeviceRadixSort::SortKeys`, NumPy's
    /// `sort(kind="stable")`. With arrays that go with the keys ([`Self::with`]) `SortPairs`, and equal keys keep their order.
    /// Floats are in the total order of IEEE 754: negative NaNs, numbers with −0 before +0, positive NaNs; CUB and NumPy take both
    /// zeros for equal, and NumPy puts every NaN last. Put onto a stream by `sort`.
    ///
    /// # Errors
    /// When `T` is not a type of numbers.
    pub fn sort<T: Element>() -> Result<Self, NoSuchProblem> {
        Self::sort_by(T::ELEMENT)
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn sort_by(key: ElementType) -> Result<Self, NoSuchProblem> {
        Ok(Self::sort_of(number(key)?))
    }

    /// For each of many places the item that it belongs to, where offsets share them out: load-balancing search. It has no inputs and one
    /// output, `owner`. Put onto a stream by `expand`.
    pub fn owners<O: WholeNumber>() -> Self {
        let owner = O::CUDA_TYPE;
        Self::expansion(format!("owners as {}", O::ELEMENT))
            .output::<O>("owner")
            .store(&format!("owner = static_cast<{owner}>(item);"))
    }

    /// Each element as often as the offsets say: NumPy's `repeat`, PyTorch's `repeat_interleave`, the inverse of
    /// [`Self::run_length_encode`] once its lengths are summed. Of an array `x` into `repeated`. Put onto a stream by `expand`.
    pub fn repeated<T: ArrayElement>() -> Self {
        Self::repeated_of(CudaType::of::<T>())
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn repeated_of(element: impl Into<CudaType>) -> Self {
        let element = element.into();
        Self::expansion(format!("repeated {}", element.own_name()))
            .input_of("x", element.clone())
            .output_of("repeated", element)
            .store("repeated = x;")
    }

    /// What the laboratory scatters: each element to its place in an array of places.
    #[cfg(feature = "lab")]
    pub(crate) fn scattered_by(place: ElementType, element: ElementType) -> Self {
        Self::scattered(format!("scattered {element}"), "return place;")
            .input_of("place", place)
            .input_of("x", element)
            .output_of("scattered", element)
            .store("scattered = x;")
    }

    /// How often an array of bytes has each of their 256 values, from 0, or of `i8` from −128 on: CUB's `DeviceHistogram` of 256
    /// levels, NumPy's `bincount`.
    ///
    /// # Errors
    /// When `T` has more than one byte.
    pub fn byte_histogram<T: Element, C: WholeNumber>() -> Result<Self, NoSuchProblem> {
        Self::byte_histogram_of::<C>(T::ELEMENT)
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn byte_histogram_of<C: WholeNumber>(element: ElementType) -> Result<Self, NoSuchProblem> {
        if element.bytes() > 1 {
            return Err(NoSuchProblem::NoByte(element));
        }
        let turned = if element.is_signed() { " ^ 0x80" } else { "" };
        let bin = format!("return static_cast<u8>(x){turned};");
        Ok(Self::binned::<C>(format!("histogram of {element}"), 256, &bin).input_of("x", number(element)?))
    }

    /// How many numbers of an array lie in each of `bins` bins of the same width, from `lower` to below `upper`: CUB's
    /// `HistogramEven` for levels of that type, NumPy's `histogram`, but that the upper end is outside. Numbers outside and NaNs are not
    /// counted, so the largest number of a type never is. The kernel is compiled for these bins and ends. The bin of an integer is
    /// exactly (x − lower) · bins / (upper − lower), cut; that of a float is (x − lower) / (upper − lower) · bins, each step rounded
    /// in `f32` or `f64`.
    ///
    /// # Errors
    /// When `T` is not a type of numbers, `lower` is not less than `upper`, floats are further apart than the
    /// largest of them, or integers than 2^64 by the number of bins.
    pub fn even_histogram<T: Element, C: WholeNumber>(bins: u32, lower: T, upper: T) -> Result<Self, NoSuchProblem> {
        Self::even_histogram_of::<C>(T::ELEMENT, bins, bytemuck::cast_slice(&[lower, upper]))
    }

    /// The same of a type that is chosen at run time, whose two ends are bytes.
    pub(crate) fn even_histogram_of<C: WholeNumber>(
        element: ElementType,
        bins: u32,
        ends: &[u8],
    ) -> Result<Self, NoSuchProblem> {
        let levels = levels_of(element, ends)?;
        if !reach_is_finite(element, &levels) {
            return Err(NoSuchProblem::Levels {
                element,
                what: "are further apart than its largest number: give each level",
            });
        }
        let [low, high] = [levels[0], levels[1]].map(|level| literal(element, level));
        let number = element.scanned_in().cuda_type();
        let bin = if element.is_float() {
            format!(
                "const {number} number = static_cast<{number}>(x);\n\
                 if (!(number >= {low} && number < {high})) return {bins};\n\
                 const u32 bin = static_cast<u32>((number - {low}) / ({high} - {low}) * {bins});\n\
                 return bin < {bins} ? bin : {bins} - 1;"
            )
        } else {
            let reach = element.integer(levels[1]) - element.integer(levels[0]);
            // Of numbers below the upper end the kernel's product is less.
            if reach * i128::from(bins) > 1 << 64 {
                return Err(NoSuchProblem::Levels {
                    element,
                    what: "reach over more than 2^64 by the bins: give each level",
                });
            }
            format!(
                "const {number} number = static_cast<{number}>(x);\n\
                 if (number < {low} || number >= {high}) return {bins};\n\
                 return static_cast<u32>((static_cast<u64>(number) - static_cast<u64>({low})) * {bins} / {reach}ull);"
            )
        };
        Ok(Self::binned::<C>(format!("even histogram of {element}"), bins, &bin).input_of("x", element))
    }

    /// How many numbers of an array lie between neighbouring levels, from each to below the next one: CUB's `HistogramRange` for
    /// levels of that type. Numbers outside and NaNs are not counted, so the largest number of a type never is. The kernel is
    /// compiled for these levels.
    ///
    /// # Errors
    /// When `T` is not a type of numbers, or there are less than two levels, or more than 8193, or they do not rise.
    pub fn histogram_between<T: Element, C: WholeNumber>(levels: &[T]) -> Result<Self, NoSuchProblem> {
        Self::histogram_between_of::<C>(T::ELEMENT, bytemuck::cast_slice(levels))
    }

    /// The same of a type that is chosen at run time, whose levels are bytes.
    pub(crate) fn histogram_between_of<C: WholeNumber>(
        element: ElementType,
        levels: &[u8],
    ) -> Result<Self, NoSuchProblem> {
        let levels = levels_of(element, levels)?;
        let number = element.scanned_in().cuda_type();
        let bins = levels.len() - 1;
        let texts: Vec<_> = levels.into_iter().map(|level| literal(element, level)).collect();
        let bin = format!(
            "static constexpr {number} levels[] = {{{}}};\n\
             const {number} number = static_cast<{number}>(x);\n\
             if (!(number >= levels[0] && number < levels[{bins}])) return {bins};\n\
             u32 bin = 0;\n\
             u32 end = {bins};\n\
             while (end - bin > 1) {{\n  const u32 middle = (bin + end) / 2;\n  if (number < levels[middle]) end = middle; else \
             bin = middle;\n}}\nreturn bin;",
            texts.join(", ")
        );
        let bins = u32::try_from(bins).unwrap_or(u32::MAX);
        Ok(Self::binned::<C>(format!("histogram of {element} between levels"), bins, &bin).input_of("x", element))
    }

    fn arg_extreme<T: Element>(name: &str, is_before: &str) -> Result<Self, NoSuchProblem> {
        let element = number(T::ELEMENT)?;
        let number = element.scanned_in().cuda_type();
        Ok(Self::new::<[u64; 2]>(format!("{name} of {element}"), "found")
            .declare(&format!("struct alignas(16) found {{ u64 index; {number} value; }};"))
            .identity("{~0ull, 0}")
            .combine(&format!(
                "if (right.index == ~0ull) return left;\n\
                 if (left.index == ~0ull) return right;\n\
                 const bool left_is_nan = left.value != left.value;\n\
                 if (left_is_nan != (right.value != right.value)) return left_is_nan ? left : right;\n\
                 if (left.value {is_before} right.value) return left;\n\
                 if (right.value {is_before} left.value) return right;\n\
                 return left.index < right.index ? left : right;"
            ))
            .commutative()
            .input::<T>("x")
            .load(&format!("return {{i, static_cast<{number}>(x)}};"))
            .output::<T>("value")
            .output::<u64>("index")
            .store(&format!("value = static_cast<{}>(state.value);\nindex = state.index;", T::CUDA_TYPE)))
    }
}

/// A number in CUDA C++, exactly, of the type that it is compared in.
fn literal(element: ElementType, bytes: &[u8]) -> String {
    let cuda_type = element.scanned_in().cuda_type();
    match element.float() {
        // With as many digits as tell it from its neighbours.
        Some(float) => format!("static_cast<{cuda_type}>({:e})", (float.read)(bytes)),
        // Modulo 2^64, as it is cast back.
        None => format!("static_cast<{cuda_type}>({}ull)", element.integer(bytes) as u64),
    }
}

/// Whether the difference of two floats is one in the type that it is computed in.
fn reach_is_finite(element: ElementType, levels: &[&[u8]]) -> bool {
    let Some(float) = element.float() else { return true };
    let [low, high] = [levels[0], levels[1]].map(float.read);
    if element == ElementType::F64 { (high - low).is_finite() } else { (high as f32 - low as f32).is_finite() }
}

/// As many as are known to compile: they are a part of the kernel's text.
const MOST_LEVELS: usize = (1 << 13) + 1;

/// The levels, if there are bins between them.
fn levels_of(element: ElementType, bytes: &[u8]) -> Result<Vec<&[u8]>, NoSuchProblem> {
    let levels: Vec<&[u8]> = bytes.chunks_exact(number(element)?.bytes()).collect();
    let rises = |pair: &[&[u8]]| match element.float() {
        Some(float) => {
            let [low, high] = [pair[0], pair[1]].map(float.read);
            low.is_finite() && high.is_finite() && low < high
        }
        None => element.integer(pair[0]) < element.integer(pair[1]),
    };
    let what = match levels.len() {
        0 | 1 => "are less than two: give one where each bin begins, and one where the last ends",
        _ if levels.len() > MOST_LEVELS => {
            "are more than 8193, which are compiled into the kernel: give `binned` a text of your own"
        }
        _ if !levels.windows(2).all(rises) => "do not rise from one to the next, or are no finite numbers",
        _ => return Ok(levels),
    };
    Err(NoSuchProblem::Levels { element, what })
}

/// The type, if it is one of numbers.
fn number(element: ElementType) -> Result<ElementType, NoSuchProblem> {
    if element.is_number() { Ok(element) } else { Err(NoSuchProblem::NotANumber(element)) }
}
