// The element types and the operators, one row each: the only place that lists them. The crate makes its enums, traits
// and dispatch of these rows, and build.rs, which includes this file too, the list of kernels to compile. Whoever reads
// a table names a macro and what to hand on to it.

/// Variant = name, type in Rust, type in CUDA (`cuda/operators.cuh`, `cuda/halves.cuh`). Arrays hold `halves`, and no scan is
/// in them: operators are defined on f32. Those in `own` serve one operator each.
macro_rules! element_types {
    ($reader:ident $with:tt) => {
        $reader! { $with
            integers {
                /// 8-bit unsigned integer.
                U8 = "u8", u8, "::lookback::u8";
                /// 8-bit signed integer.
                I8 = "i8", i8, "signed char";
                /// 16-bit unsigned integer.
                U16 = "u16", u16, "::lookback::u16";
                /// 16-bit signed integer.
                I16 = "i16", i16, "short";
                /// 32-bit unsigned integer.
                U32 = "u32", u32, "::lookback::u32";
                /// 32-bit signed integer.
                I32 = "i32", i32, "int";
                /// 64-bit unsigned integer.
                U64 = "u64", u64, "::lookback::u64";
                /// 64-bit signed integer.
                I64 = "i64", i64, "long long";
            }
            floats {
                /// IEEE 754 binary32.
                F32 = "f32", f32, "float";
                /// IEEE 754 binary64.
                F64 = "f64", f64, "double";
            }
            halves {
                /// IEEE 754 binary16, scanned in f32.
                F16 = "f16", f16, "::lookback::f16";
                /// The upper half of an f32, scanned in f32.
                BF16 = "bf16", bf16, "::lookback::bf16";
            }
            own {
                /// x ↦ a·x + b modulo 2^64: two `u64`, `a` then `b`; 16 bytes.
                AffineMap = "affine-map", AffineMap, "::lookback::affine_map";
                /// An element of the bicyclic monoid: two `u32`, 8 bytes.
                BicyclicPair = "bicyclic-pair", BicyclicPair, "::lookback::bicyclic_pair";
                /// A run of consecutive indices modulo 2^32: two `u32`, first and last; 8 bytes.
                IndexInterval = "index-interval", IndexInterval, "::lookback::index_interval";
            }
        }
    };
}

/// Variant = name, monoid in Rust, struct in CUDA (`cuda/operators.cuh`). Arithmetic is modulo 2^bits on integers, so that
/// signed and unsigned ones share their kernels, and rounded on floats; a comparison is neither. `input` is the
/// `Distribution` of the numbers whose scan shows a fault. Operators in `own` have one element type and are not commutative.
macro_rules! operators {
    ($reader:ident $with:tt) => {
        $reader! { $with
            numbers {
                /// Addition; integers wrap.
                Sum = "sum", Sum, "sum", arithmetic: true, input: Uniform;
                /// Multiplication; integers wrap.
                Product = "product", Product, "product", arithmetic: true, input: Factors;
                /// The smaller; of floats NaN if either is NaN, and −0 below +0.
                Min = "min", Minimum, "minimum", arithmetic: false, input: Falling;
                /// The larger; of floats NaN if either is NaN, and −0 below +0.
                Max = "max", Maximum, "maximum", arithmetic: false, input: Rising;
            }
            integers {
                /// Bitwise and; integers only.
                And = "and", And, "bit_and", input: SparseZeros;
                /// Bitwise or; integers only.
                Or = "or", Or, "bit_or", input: SparseOnes;
                /// Bitwise exclusive or; integers only.
                Xor = "xor", Xor, "bit_xor", input: Uniform;
            }
            own {
                /// Composition of affine maps, the left one applied first; not commutative.
                Affine = "affine", Affine, "affine", on: AffineMap;
                /// The bicyclic monoid ⟨p, q | pq = 1⟩; not commutative.
                Bicyclic = "bicyclic", Bicyclic, "bicyclic", on: BicyclicPair;
                /// Joining adjacent index intervals; anything else gives an absorbing error. Not commutative, and
                /// one run over intervals proves order and coverage for every operator (Chong, Donaldson &
                /// Ketema, POPL 2014).
                Intervals = "intervals", Intervals, "intervals", on: IndexInterval;
            }
        }
    };
}

/// Element types and operators whose kernels the build leaves out where no other type shares them (signed sums are unsigned
/// ones): they would take a quarter more of its time. The CPU device compiles one when it is asked for.
macro_rules! compiled_on_demand {
    ($reader:ident) => {
        $reader! { types { I8 I16 } operators { Product } }
    };
}

/// The instances whose kernels the CPU device also has with mutants to choose from at run time (`cuda/faults`):
/// values of 1, 2, 4, 8 and 16 bytes, and the operators that are not commutative.
macro_rules! with_mutants {
    ($reader:ident) => {
        $reader! {
            U8 Sum, U16 Sum, U32 Sum, U64 Sum, AffineMap Affine, BicyclicPair Bicyclic, IndexInterval Intervals
        }
    };
}
