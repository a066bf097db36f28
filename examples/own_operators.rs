//! Scans by operators of one's own, each over slices on the CPU device and compared with the loop that it stands for:
//!
//!     cargo run --release --example own_operators
//!
//! On a GPU the same definitions run by `Scanner::run` over cudarc's slices: the calls have the same names. The first run of
//! each takes the seconds of a compiler; what it makes is kept.

mod check;

use bytemuck::{Pod, Zeroable};
use check::{Outcome, checked};
use lookback::element::{Definition, ElementType, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;

const N: usize = 5000;

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs().max(1.0)
}

/// Wavy numbers between -1 and 1.
fn waves() -> Vec<f32> {
    (0..N).map(|i| (i as f32 * 0.37).sin()).collect()
}

/// `h[t] = a[t] · h[t−1] + b[t]`, a filter of one pole.
fn linear_recurrence(scanner: &mut HostScanner) -> Outcome {
    let (a, b) = (vec![0.9_f32; N], waves());
    let mut h = vec![0.0_f32; N];
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).inclusive()?;
    let mut state = 0.0;
    let is_right = (0..N).all(|t| {
        state = a[t] * state + b[t];
        is_near(h[t].into(), state.into())
    });
    checked("linear recurrence", is_right, "")
}

/// Discounted returns `g[t] = r[t] + 0.99 · g[t+1]` of episodes of 100 steps: the same from the other end, by rows.
fn discounted_returns(scanner: &mut HostScanner) -> Outcome {
    let (discount, rewards) = (vec![0.99_f32; N], waves());
    let mut returns = vec![0.0_f32; N];
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    scanner.run(recurrence).input(&discount).input(&rewards).output(&mut returns).rows(100).reversed().inclusive()?;
    let mut state = 0.0;
    let is_right = (0..N).rev().all(|t| {
        state = if t % 100 == 99 { rewards[t] } else { rewards[t] + 0.99 * state };
        is_near(returns[t].into(), state.into())
    });
    checked("discounted returns of episodes", is_right, "")
}

/// Sums of runs of equal keys.
fn sums_by_key(scanner: &mut HostScanner) -> Outcome {
    let keys: Vec<u32> = (0..N as u32).map(|i| i / 7 % 3).collect();
    let values: Vec<i32> = (0..N as i32).collect();
    let mut sums = vec![0_i32; N];
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    scanner.run(sum).by_key(&keys).input(&values).output(&mut sums).inclusive()?;
    let mut state = 0;
    let is_right = (0..N).all(|i| {
        state = if i > 0 && keys[i] == keys[i - 1] { state + values[i] } else { values[i] };
        sums[i] == state
    });
    checked("sums by key", is_right, "")
}

/// Sums of f32 in two f32, the second one what the first has lost (Knuth's two-sum).
fn double_double_sum(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::new::<[f32; 2]>("double-double sum", "pair")
        .declare("struct pair { float high; float low; };")
        .identity("{0, 0}")
        .combine(
            "const float sum = left.high + right.high;
             const float part = sum - left.high;
             const float lost = (left.high - (sum - part)) + (right.high - part);
             const float low = left.low + right.low + lost;
             const float high = sum + low;
             return {high, low - (high - sum)};",
        )
        .input::<f32>("x")
        .load("return {x, 0};")
        .output::<f32>("high")
        .output::<f32>("low")
        .store("high = state.high; low = state.low;")
        .define()?;
    let x: Vec<f32> = waves().iter().map(|wave| 1e4 + wave).collect();
    let (mut high, mut low) = (vec![0.0_f32; N], vec![0.0_f32; N]);
    scanner.run(sum).input(&x).output(&mut high).output(&mut low).inclusive()?;
    let mut state = 0.0_f64;
    let is_right = (0..N).all(|i| {
        state += f64::from(x[i]);
        (f64::from(high[i]) + f64::from(low[i]) - state).abs() <= 1e-12 * state
    });
    checked("sums of f32 with what was lost", is_right, "")
}

/// Products of complex numbers on the unit circle.
fn complex_products(scanner: &mut HostScanner) -> Outcome {
    let product = Definition::new::<[f32; 2]>("complex product", "complex")
        .declare("struct complex { float real; float imaginary; };")
        .identity("{1, 0}")
        .combine(
            "return {left.real * right.real - left.imaginary * right.imaginary,
                     left.real * right.imaginary + left.imaginary * right.real};",
        )
        .commutative()
        .input::<f32>("real")
        .input::<f32>("imaginary")
        .load("return {real, imaginary};")
        .output::<f32>("product")
        .store("product = state.imaginary;")
        .define()?;
    let (real, imaginary) = (vec![0.001_f32.cos(); N], vec![0.001_f32.sin(); N]);
    let mut sines = vec![0.0_f32; N];
    scanner.run(product).input(&real).input(&imaginary).output(&mut sines).inclusive()?;
    let is_right = (0..N).all(|i| (f64::from(sines[i]) - (0.001 * (i + 1) as f64).sin()).abs() < 1e-3);
    checked("products of complex numbers", is_right, "")
}

/// A matrix of two rows, aligned as CUDA has it.
#[repr(C, align(16))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Matrix([u32; 4]);

impl lookback::element::ArrayElement for Matrix {
    const CUDA_TYPE: &'static str = "matrix";
}

/// Products of 2 x 2 matrices, an array of them: with (1 1, 1 0) the Fibonacci numbers, modulo 2^32.
fn fibonacci(scanner: &mut HostScanner) -> Outcome {
    let product = Definition::new::<Matrix>("matrix product", "matrix")
        .declare("struct alignas(16) matrix { u32 a, b, c, d; };")
        .identity("{1, 0, 0, 1}")
        .combine(
            "return {left.a * right.a + left.b * right.c, left.a * right.b + left.b * right.d,
                     left.c * right.a + left.d * right.c, left.c * right.b + left.d * right.d};",
        )
        .input::<Matrix>("m")
        .load("return m;")
        .output::<u32>("number")
        .store("number = state.b;")
        .define()?;
    let mut numbers = vec![0_u32; N];
    scanner.run(product).input(&[Matrix([1, 1, 1, 0]); N]).output(&mut numbers).inclusive()?;
    let mut state = (0_u32, 1_u32);
    let is_right = numbers.iter().all(|&number| {
        state = (state.1, state.0.wrapping_add(state.1));
        number == state.0
    });
    checked("Fibonacci numbers by matrices", is_right, "")
}

/// A polynomial at 1/2, by all its first coefficients: of each stretch its value and the power of 1/2 that it is long.
fn polynomial(scanner: &mut HostScanner) -> Outcome {
    let evaluation = Definition::new::<[f64; 2]>("polynomial", "part")
        .declare("struct alignas(16) part { double value; double power; };")
        .identity("{0, 1}")
        .combine("return {left.value + left.power * right.value, left.power * right.power};")
        .input::<f64>("coefficient")
        .load("return {coefficient, 0.5};")
        .output::<f64>("value")
        .store("value = state.value;")
        .define()?;
    let coefficients: Vec<f64> = (0..N).map(|i| (i % 9) as f64 - 4.0).collect();
    let mut values = vec![0.0_f64; N];
    scanner.run(evaluation).input(&coefficients).output(&mut values).inclusive()?;
    let (mut state, mut power) = (0.0, 1.0);
    let is_right = (0..N).all(|i| {
        state += power * coefficients[i];
        power /= 2.0;
        is_near(values[i], state)
    });
    checked("values of a polynomial", is_right, "")
}

/// Mean and variance of all numbers so far (Chan, Golub & LeVeque's way to join two stretches).
fn running_variance(scanner: &mut HostScanner) -> Outcome {
    let moments = Definition::new::<[f32; 3]>("moments", "moments")
        .declare("struct moments { float count; float mean; float squares; };")
        .identity("{0, 0, 0}")
        .combine(
            "const float count = left.count + right.count;
             if (count == 0) return left;
             const float apart = right.mean - left.mean;
             return {count, left.mean + apart * (right.count / count),
                     left.squares + right.squares + apart * apart * (left.count * right.count / count)};",
        )
        .input::<f32>("x")
        .load("return {1, x, 0};")
        .output::<f32>("mean")
        .output::<f32>("variance")
        .store("mean = state.mean; variance = state.squares / state.count;")
        .define()?;
    let x = waves();
    let (mut mean, mut variance) = (vec![0.0_f32; N], vec![0.0_f32; N]);
    scanner.run(moments).input(&x).output(&mut mean).output(&mut variance).inclusive()?;
    let (mut sum, mut squares) = (0.0_f64, 0.0_f64);
    let is_right = (0..N).all(|i| {
        let (value, count) = (f64::from(x[i]), (i + 1) as f64);
        (sum, squares) = (sum + value, squares + value * value);
        let expected = squares / count - (sum / count).powi(2);
        (f64::from(mean[i]) - sum / count).abs() < 1e-4 && (f64::from(variance[i]) - expected).abs() < 1e-4
    });
    checked("running mean and variance", is_right, "")
}

/// The largest number so far and the sum of the exponentials below it: what a softmax needs in one pass.
fn online_softmax(scanner: &mut HostScanner) -> Outcome {
    let softmax = Definition::new::<[f32; 2]>("softmax", "scaled")
        .declare(
            "struct scaled { float largest; float sum; };
             DEVICE float below(float x, float largest) { return x == largest ? 1.0f : expf(x - largest); }",
        )
        .identity("{-1e30f, 0}")
        .combine(
            "const float largest = left.largest > right.largest ? left.largest : right.largest;
             return {largest, left.sum * below(left.largest, largest) + right.sum * below(right.largest, largest)};",
        )
        .input::<f32>("x")
        .load("return {x, 1};")
        .output::<f32>("largest")
        .output::<f32>("sum")
        .store("largest = state.largest; sum = state.sum;")
        .define()?;
    let x = waves();
    let (mut largest, mut sum) = (vec![0.0_f32; N], vec![0.0_f32; N]);
    scanner.run(softmax).input(&x).output(&mut largest).output(&mut sum).inclusive()?;
    let mut total = 0.0_f64;
    let is_right = (0..N).all(|i| {
        total += f64::from(x[i]).exp();
        is_near(f64::from(sum[i]) * f64::from(largest[i]).exp() / total, 1.0)
    });
    checked("softmax's largest number and sum", is_right, "")
}

fn main() -> Outcome {
    let mut scanner = HostScanner::default();
    let all = [
        linear_recurrence,
        discounted_returns,
        sums_by_key,
        double_double_sum,
        complex_products,
        fibonacci,
        polynomial,
        running_variance,
        online_softmax,
    ];
    all.into_iter().try_for_each(|example| example(&mut scanner))
}
