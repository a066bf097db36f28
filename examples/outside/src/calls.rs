//! Every call, over the arrays of whatever scans: in a GPU's memory, or in this machine's.

use crate::{Outcome, expect, operators};
use half::f16;
use lookback::element::{Definition, ElementType, Operator};
use lookback::run::AnyScanner;
use lookback::strategy::Mode;

/// Bytes into offsets that no byte could hold.
fn sum_of_u8_in_u32<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let x = scanner.array(&[200_u8, 100, 50])?;
    let mut y = scanner.zeros::<u32>(3)?;
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&scanner.read(&y)?, &[200, 300, 350])
}

fn sum_of_i32_in_i64<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let x = scanner.array(&[i32::MAX, i32::MAX, -1])?;
    let mut y = scanner.zeros::<i64>(3)?;
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&scanner.read(&y)?, &[2_147_483_647, 4_294_967_294, 4_294_967_293])
}

/// In f16 one and one and one end at 2048; in f32, which these are scanned in, they do not.
fn sum_of_halves<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let x = scanner.array(&[f16::ONE; 3000])?;
    let mut y = scanner.zeros::<f16>(3000)?;
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&scanner.read(&y)?[2999..], &[f16::from_f32(3000.0)])
}

fn sum_of_f32_in_f64<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let x = scanner.array(&[1e8_f32, 1.0, 1.0])?;
    let mut y = scanner.zeros::<f64>(3)?;
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&scanner.read(&y)?, &[100_000_000.0, 100_000_001.0, 100_000_002.0])
}

/// Counts into one offset more.
fn exclusive<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let counts = scanner.array(&[3_u32, 1, 4])?;
    let mut offsets = scanner.zeros::<u32>(4)?;
    scanner.exclusive(Operator::Sum, &counts, &mut offsets)?;
    expect(&scanner.read(&offsets)?, &[0, 3, 4, 8])
}

fn in_place<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let mut x = scanner.array(&[3_i32, 1, 4])?;
    scanner.in_place(Operator::Max, Mode::Inclusive, &mut x)?;
    expect(&scanner.read(&x)?, &[3, 3, 4])
}

/// The largest number so far, and where it stands.
fn arg_max<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let largest = Definition::arg_max::<f32>()?.define()?;
    let x = scanner.array(&[1.0_f32, 3.0, 2.0, 3.0])?;
    let (mut value, mut index) = (scanner.zeros::<f32>(4)?, scanner.zeros::<u64>(4)?);
    scanner.run(largest).input(&x).output(&mut value).output(&mut index).inclusive()?;
    expect(&scanner.read(&value)?, &[1.0, 3.0, 3.0, 3.0])?;
    expect(&scanner.read(&index)?, &[0, 1, 1, 1])
}

fn arg_min<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let smallest = Definition::arg_min::<i32>()?.define()?;
    let x = scanner.array(&[5_i32, 7, 2, 2])?;
    let (mut value, mut index) = (scanner.zeros::<i32>(4)?, scanner.zeros::<u64>(4)?);
    scanner.run(smallest).input(&x).output(&mut value).output(&mut index).inclusive()?;
    expect(&scanner.read(&value)?, &[5, 5, 2, 2])?;
    expect(&scanner.read(&index)?, &[0, 0, 2, 2])
}

fn own_operator<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let x = scanner.array(&[48_u32, 36, 20])?;
    let mut y = scanner.zeros::<u32>(3)?;
    scanner.run(operators::greatest_common_divisor()?).input(&x).output(&mut y).inclusive()?;
    expect(&scanner.read(&y)?, &[48, 12, 4])
}

fn own_operator_on_structs<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let x = scanner.array(&[2.0_f32, 4.0, 9.0])?;
    let mut y = scanner.zeros::<f32>(3)?;
    scanner.run(operators::mean()?).input(&x).output(&mut y).inclusive()?;
    expect(&scanner.read(&y)?, &[2.0, 3.0, 5.0])
}

/// Three states that stand before their elements, and the identity before the first.
fn exclusive_run<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let product = Definition::of_numbers(Operator::Product, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[2, 3, 4])?;
    let mut y = scanner.zeros::<i32>(3)?;
    scanner.run(product).input(&x).output(&mut y).exclusive()?;
    expect(&scanner.read(&y)?, &[1, 2, 6])
}

/// From the last element to the first.
fn reversed<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3])?;
    let mut y = scanner.zeros::<i32>(3)?;
    scanner.run(sum).input(&x).output(&mut y).reversed().inclusive()?;
    expect(&scanner.read(&y)?, &[6, 5, 3])
}

/// The same bits on every GPU, and on the CPU device, wherever the arrays begin.
fn reproducible<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32)?.define()?;
    let x = scanner.array(&[0.1_f32, 0.2, 0.3])?;
    let mut y = scanner.zeros::<f32>(3)?;
    scanner.run(sum).input(&x).output(&mut y).reproducible().inclusive()?;
    expect(&scanner.read(&y)?, &[0.1, 0.3, 0.6])
}

/// Two rows of three.
fn rows<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).output(&mut y).rows(3).inclusive()?;
    expect(&scanner.read(&y)?, &[1, 3, 6, 4, 9, 15])
}

/// Two rows of three, the left half of a matrix whose rows have six.
fn strided<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0, 0])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).row_stride(6).output(&mut y).rows(3).inclusive()?;
    expect(&scanner.read(&y)?, &[1, 3, 6, 4, 9, 15])
}

/// Three columns of two.
fn columns<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).output(&mut y).columns(3).inclusive()?;
    expect(&scanner.read(&y)?, &[1, 2, 3, 5, 7, 9])
}

/// The middle axis of a tensor of the shape (2, 3, 2).
fn axis<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])?;
    let mut y = scanner.zeros::<i32>(12)?;
    scanner.run(sum).input(&x).output(&mut y).axis(3, 2).inclusive()?;
    expect(&scanner.read(&y)?, &[1, 2, 4, 6, 9, 12, 7, 8, 16, 18, 27, 30])
}

/// Runs of equal neighbours: the last key is another run of the first one's.
fn by_key<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let keys = scanner.array(&[7_u32, 7, 9, 9, 9, 7])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).output(&mut y).by_key(&keys).inclusive()?;
    expect(&scanner.read(&y)?, &[1, 3, 3, 7, 12, 6])
}

/// Anew from each flag.
fn head_flags<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let flags = scanner.array(&[0_u8, 0, 1, 0, 0, 1])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).output(&mut y).head_flags(&flags).inclusive()?;
    expect(&scanner.read(&y)?, &[1, 3, 3, 7, 12, 6])
}

/// Segments of two elements, of none and of four. What is wrong with offsets a GPU finds out, and `check` says it.
fn offsets<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let offsets = scanner.array(&[0_u32, 2, 2, 6])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).output(&mut y).offsets(&offsets).inclusive()?;
    scanner.check()?;
    expect(&scanner.read(&y)?, &[1, 3, 3, 7, 12, 18])
}

/// As many elements as a number in the device's memory says.
fn count_from<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let count = scanner.array(&[4_u32])?;
    let mut y = scanner.array(&[-1; 6])?;
    scanner.run(sum).input(&x).output(&mut y).count_from(&count).inclusive()?;
    scanner.check()?;
    expect(&scanner.read(&y)?, &[1, 3, 6, 10, -1, -1])
}

/// Three columns, as long as a number in the device's memory says.
fn count_of_columns<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6, 7, 8, 9])?;
    let count = scanner.array(&[6_u32])?;
    let mut y = scanner.array(&[-1; 9])?;
    scanner.run(sum).input(&x).output(&mut y).columns(3).count_from(&count).inclusive()?;
    scanner.check()?;
    expect(&scanner.read(&y)?, &[1, 2, 3, 5, 7, 9, -1, -1, -1])
}

fn initial<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3])?;
    let mut y = scanner.zeros::<i32>(3)?;
    scanner.run(sum).input(&x).output(&mut y).initial(&100).inclusive()?;
    expect(&scanner.read(&y)?, &[101, 103, 106])
}

/// A state before each row.
fn initial_from<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = scanner.array(&[1, 2, 3, 4, 5, 6])?;
    let states = scanner.array(&[100, 200])?;
    let mut y = scanner.zeros::<i32>(6)?;
    scanner.run(sum).input(&x).output(&mut y).rows(3).initial_from(&states).inclusive()?;
    expect(&scanner.read(&y)?, &[101, 103, 106, 204, 209, 215])
}

/// Three chunks, each of which goes on where the one before it ended.
fn final_state<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let (mut before, mut after) = (scanner.zeros::<i32>(1)?, scanner.zeros::<i32>(1)?);
    for (chunk, expected) in [([1, 2], [1, 3]), ([3, 4], [6, 10]), ([5, 6], [15, 21])] {
        let (x, mut y) = (scanner.array(&chunk)?, scanner.zeros::<i32>(2)?);
        scanner.run(sum).input(&x).output(&mut y).initial_from(&before).final_state(&mut after).inclusive()?;
        expect(&scanner.read(&y)?, &expected)?;
        (before, after) = (after, before);
    }
    Ok(())
}

/// An array that is loaded and stored, beside another one.
fn in_place_of_an_input<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = scanner.array(&[2.0_f32, 2.0, 2.0])?;
    let mut h = scanner.array(&[1.0_f32, 2.0, 3.0])?;
    scanner.run(recurrence).input(&a).in_place(&mut h).inclusive()?;
    expect(&scanner.read(&h)?, &[1.0, 4.0, 11.0])
}

/// `h[t] = a[t] · h[t−1] + b[t]` from an h that stands before: the state is a factor and h.
fn recurrence<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = scanner.array(&[2.0_f32, 2.0, 2.0])?;
    let b = scanner.array(&[1.0_f32, 2.0, 3.0])?;
    let mut h = scanner.zeros::<f32>(3)?;
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).initial(&[0.0_f32, 10.0]).inclusive()?;
    expect(&scanner.read(&h)?, &[21.0, 44.0, 91.0])
}

/// Of the shape (batch, channel, time) = (2, 2, 3): a sequence a row.
fn recurrence_of_batch_channel_time<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = scanner.array(&[2.0_f32; 12])?;
    let b = scanner.array(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = scanner.zeros::<f32>(12)?;
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).rows(3).inclusive()?;
    expect(&scanner.read(&h)?, &[1.0, 4.0, 11.0, 4.0, 13.0, 32.0, 7.0, 22.0, 53.0, 10.0, 31.0, 74.0])
}

/// `h[t] = a[t] · h[t+1] + b[t]`.
fn reverse_recurrence_of_batch_channel_time<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = scanner.array(&[2.0_f32; 12])?;
    let b = scanner.array(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = scanner.zeros::<f32>(12)?;
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).rows(3).reversed().inclusive()?;
    expect(&scanner.read(&h)?, &[17.0, 8.0, 3.0, 38.0, 17.0, 6.0, 59.0, 26.0, 9.0, 80.0, 35.0, 12.0])
}

/// Of the shape (batch, time, channel) = (2, 3, 2): the steps of a sequence lie as far apart as there are channels.
fn recurrence_of_batch_time_channel<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = scanner.array(&[2.0_f32; 12])?;
    let b = scanner.array(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = scanner.zeros::<f32>(12)?;
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).axis(3, 2).inclusive()?;
    expect(&scanner.read(&h)?, &[1.0, 2.0, 5.0, 8.0, 15.0, 22.0, 7.0, 8.0, 23.0, 26.0, 57.0, 64.0])
}

fn reverse_recurrence_of_batch_time_channel<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = scanner.array(&[2.0_f32; 12])?;
    let b = scanner.array(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = scanner.zeros::<f32>(12)?;
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).axis(3, 2).reversed().inclusive()?;
    expect(&scanner.read(&h)?, &[27.0, 34.0, 13.0, 16.0, 5.0, 6.0, 69.0, 76.0, 31.0, 34.0, 11.0, 12.0])
}

/// Those that a text of CUDA C++ says yes to, side by side, and how many they are.
fn select<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let even = Definition::select::<u32>("return x % 2 == 0;").define()?;
    let x = scanner.array(&[3_u32, 4, 1, 6, 8, 5])?;
    let (mut kept, mut count) = (scanner.zeros::<u32>(6)?, scanner.zeros::<u32>(1)?);
    scanner.run(even).input(&x).output(&mut kept).count_into(&mut count).compact()?;
    expect(&scanner.read(&count)?, &[3])?;
    expect(&scanner.read(&kept)?, &[4, 6, 8, 0, 0, 0])
}

/// By one kernel, whatever the limit.
fn select_below<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let below = Definition::select::<f32>("return x < limit;").parameter::<f32>("limit").define()?;
    let x = scanner.array(&[3.0_f32, 1.0, 4.0, 1.5])?;
    let (mut kept, mut number) = (scanner.zeros::<f32>(4)?, scanner.zeros::<u64>(1)?);
    scanner.run(below).parameter(2.0_f32).input(&x).output(&mut kept).count_into(&mut number).compact()?;
    expect(&scanner.read(&kept)?[..2], &[1.0, 1.5])?;
    expect(&scanner.read(&number)?, &[2])
}

fn select_flagged<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let flagged = Definition::select_flagged::<u32>().define()?;
    let (x, flags) = (scanner.array(&[3_u32, 4, 1, 6])?, scanner.array(&[1_u8, 0, 0, 1])?);
    let (mut kept, mut count) = (scanner.zeros::<u32>(4)?, scanner.zeros::<u32>(1)?);
    scanner.run(flagged).input(&x).input(&flags).output(&mut kept).count_into(&mut count).compact()?;
    expect(&scanner.read(&count)?, &[2])?;
    expect(&scanner.read(&kept)?, &[3, 6, 0, 0])
}

/// The others in their order, too, in an array of their own, and how many of each there are.
fn partition<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let even = Definition::partition::<u32>("return x % 2 == 0;").define()?;
    let x = scanner.array(&[3_u32, 4, 1, 6, 8, 5])?;
    let (mut kept, mut others) = (scanner.zeros::<u32>(6)?, scanner.zeros::<u32>(6)?);
    let mut counts = scanner.zeros::<u32>(2)?;
    scanner.run(even).input(&x).output(&mut kept).output(&mut others).count_into(&mut counts).compact()?;
    expect(&scanner.read(&counts)?, &[3, 3])?;
    expect(&scanner.read(&kept)?, &[4, 6, 8, 0, 0, 0])?;
    expect(&scanner.read(&others)?, &[3, 1, 5, 0, 0, 0])
}

fn nonzero<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let places = Definition::nonzero::<f32>()?.define()?;
    let x = scanner.array(&[0.0_f32, 2.0, 0.0, 3.0])?;
    let (mut place, mut count) = (scanner.zeros::<u64>(4)?, scanner.zeros::<u32>(1)?);
    scanner.run(places).input(&x).output(&mut place).count_into(&mut count).compact()?;
    expect(&scanner.read(&count)?, &[2])?;
    expect(&scanner.read(&place)?, &[1, 3, 0, 0])
}

fn unique<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let unique = Definition::unique::<u32>()?.define()?;
    let x = scanner.array(&[7_u32, 7, 9, 9, 9, 7])?;
    let (mut first, mut count) = (scanner.zeros::<u32>(6)?, scanner.zeros::<u32>(1)?);
    scanner.run(unique).input(&x).output(&mut first).count_into(&mut count).compact()?;
    expect(&scanner.read(&count)?, &[3])?;
    expect(&scanner.read(&first)?, &[7, 9, 7, 0, 0, 0])
}

fn run_length_encode<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let runs = Definition::run_length_encode::<u8>()?.define()?;
    let x = scanner.array(&[7_u8, 7, 9, 9, 9, 7])?;
    let (mut value, mut length) = (scanner.zeros::<u8>(6)?, scanner.zeros::<u64>(6)?);
    scanner.run(runs).input(&x).output(&mut value).output(&mut length).compact()?;
    expect(&scanner.read(&value)?, &[7, 9, 7, 0, 0, 0])?;
    expect(&scanner.read(&length)?, &[2, 3, 1, 0, 0, 0])
}

fn reduce_by_key<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sums = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::I32, ElementType::I64)?.define()?;
    let (keys, x) = (scanner.array(&[7_u32, 7, 9, 9, 9, 7])?, scanner.array(&[1, 2, 3, 4, 5, 6])?);
    let (mut unique, mut total) = (scanner.zeros::<u32>(6)?, scanner.zeros::<i64>(6)?);
    scanner.run(sums).input(&keys).input(&x).output(&mut unique).output(&mut total).compact()?;
    expect(&scanner.read(&unique)?, &[7, 9, 7, 0, 0, 0])?;
    expect(&scanner.read(&total)?, &[3, 12, 6, 0, 0, 0])
}

/// By their weights, the heaviest first.
fn sort<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let by_weight = Definition::sort::<f32>()?.with::<u32>("owner").descending().define()?;
    let (weights, owners) = (scanner.array(&[0.5_f32, -1.0, 7.0, 0.5])?, scanner.array(&[0_u32, 1, 2, 3])?);
    let (mut sorted, mut of) = (scanner.zeros::<f32>(4)?, scanner.zeros::<u32>(4)?);
    scanner.run(by_weight).input(&weights).input(&owners).output(&mut sorted).output(&mut of).sort()?;
    expect(&scanner.read(&sorted)?, &[7.0, 0.5, 0.5, -1.0])?;
    expect(&scanner.read(&of)?, &[2, 0, 3, 1])
}

/// How many bytes have at most each value.
fn cumulated_histogram<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let histogram = Definition::byte_histogram::<u8, u32>()?.cumulated().define()?;
    let pixels = scanner.array(&[3_u8, 1, 255, 3])?;
    let mut counts = scanner.zeros::<u32>(256)?;
    scanner.run(histogram).input(&pixels).output(&mut counts).histogram()?;
    let counts = scanner.read(&counts)?;
    expect(&[counts[0], counts[1], counts[2], counts[3], counts[254], counts[255]], &[0, 1, 1, 3, 3, 4])
}

/// Which item each of six units of work belongs to, of which the second item has none.
fn owners<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let owners = Definition::owners::<u32>().define()?;
    let offsets = scanner.array(&[0_u32, 2, 2, 6])?;
    let mut owner = scanner.zeros::<u32>(6)?;
    scanner.run(owners).offsets(&offsets).output(&mut owner).expand()?;
    expect(&scanner.read(&owner)?, &[0, 0, 2, 2, 2, 2])
}

fn repeated<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let repeated = Definition::repeated::<f32>().define()?;
    let (offsets, x) = (scanner.array(&[0_u64, 3, 4, 5])?, scanner.array(&[0.5_f32, 1.5, 2.5])?);
    let mut y = scanner.zeros::<f32>(5)?;
    scanner.run(repeated).offsets(&offsets).input(&x).output(&mut y).expand()?;
    expect(&scanner.read(&y)?, &[0.5, 0.5, 0.5, 1.5, 2.5])
}

/// Those with a flag go to the places that an exclusive sum of the flags gave them.
fn scatter<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let scatter = Definition::scattered("flagged", "return flag != 0 ? place : ~0ull;");
    let scatter = scatter.input::<u32>("x").input::<u8>("flag").input::<u32>("place");
    let scatter = scatter.output::<u32>("y").store("y = x;").define()?;
    let (x, flags) = (scanner.array(&[3_u32, 4, 1, 6])?, scanner.array(&[0_u8, 1, 0, 1])?);
    let (places, mut y) = (scanner.array(&[0_u32, 0, 1, 1])?, scanner.zeros::<u32>(2)?);
    scanner.run(scatter).input(&x).input(&flags).input(&places).output(&mut y).scatter()?;
    expect(&scanner.read(&y)?, &[4, 6])
}

/// All of it combined, and nothing stored beside that.
fn total<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let (x, mut total) = (scanner.array(&[3_u32, 1, 4])?, scanner.zeros::<u32>(1)?);
    scanner.run(sum).input(&x).total(&mut total)?;
    expect(&scanner.read(&total)?, &[8])
}

/// What one run keeps is what the next one scans: the host need not know how much it is.
fn count_of_one_run_is_the_next_ones<S: AnyScanner>(scanner: &mut S) -> Outcome {
    let even = Definition::select::<u32>("return x % 2 == 0;").define()?;
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let x = scanner.array(&[3_u32, 4, 1, 6, 8, 5])?;
    let (mut kept, mut count) = (scanner.zeros::<u32>(6)?, scanner.zeros::<u32>(1)?);
    let mut y = scanner.zeros::<u32>(6)?;
    scanner.run(even).input(&x).output(&mut kept).count_into(&mut count).compact()?;
    scanner.run(sum).input(&kept).output(&mut y).count_from(&count).inclusive()?;
    expect(&scanner.read(&y)?, &[4, 10, 18, 0, 0, 0])
}

macro_rules! calls {
    ($($call:ident,)*) => {
        /// All of them, with their names.
        pub fn all<S: AnyScanner>() -> Vec<(&'static str, fn(&mut S) -> Outcome)> {
            vec![$((stringify!($call), $call)),*]
        }
    };
}
calls![
    sum_of_u8_in_u32,
    sum_of_i32_in_i64,
    sum_of_halves,
    sum_of_f32_in_f64,
    exclusive,
    in_place,
    arg_max,
    arg_min,
    own_operator,
    own_operator_on_structs,
    exclusive_run,
    reversed,
    reproducible,
    rows,
    strided,
    columns,
    axis,
    by_key,
    head_flags,
    offsets,
    count_from,
    count_of_columns,
    initial,
    initial_from,
    final_state,
    in_place_of_an_input,
    recurrence,
    recurrence_of_batch_channel_time,
    reverse_recurrence_of_batch_channel_time,
    recurrence_of_batch_time_channel,
    reverse_recurrence_of_batch_time_channel,
    select,
    select_below,
    select_flagged,
    partition,
    nonzero,
    unique,
    run_length_encode,
    reduce_by_key,
    sort,
    cumulated_histogram,
    owners,
    repeated,
    scatter,
    total,
    count_of_one_run_is_the_next_ones,
];
