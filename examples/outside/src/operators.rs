//! Operators of one's own: the same definition for `Scanner` and for `HostScanner`. The text is CUDA C++.

use lookback::element::{Defined, Definition, DefinitionError};

/// The greatest common divisor of all numbers so far. The state is a number, for which CUDA has a name.
pub fn greatest_common_divisor() -> Result<Defined, DefinitionError> {
    Definition::new::<u32>("greatest common divisor", "u32")
        .identity("0")
        .combine("while (right != 0) { const u32 rest = left % right; left = right; right = rest; } return left;")
        .commutative()
        .input::<u32>("x")
        .load("return x;")
        .output::<u32>("divisor")
        .store("divisor = state;")
        .define()
}

/// The mean of all numbers so far. The state is two numbers: an array in Rust, a struct in CUDA C++.
pub fn mean() -> Result<Defined, DefinitionError> {
    Definition::new::<[f32; 2]>("mean", "part")
        .declare("struct part { float count; float sum; };")
        .identity("{0, 0}")
        .combine("return {left.count + right.count, left.sum + right.sum};")
        .input::<f32>("x")
        .load("return {1, x};")
        .output::<f32>("mean")
        .store("mean = state.sum / state.count;")
        .define()
}
