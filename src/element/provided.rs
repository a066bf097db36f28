//! Definitions that the crate provides.

use super::{ArrayElement as _, Definition, Element, ElementType, NoSuchProblem, Operator, Problem};

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

    fn arg_extreme<T: Element>(name: &str, is_before: &str) -> Result<Self, NoSuchProblem> {
        let element = T::ELEMENT;
        if !element.is_number() {
            return Err(NoSuchProblem::NotANumber(element));
        }
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
