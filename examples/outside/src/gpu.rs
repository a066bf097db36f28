//! Every call over arrays in a GPU's memory. `host.rs` has the same ones over slices.

use crate::{Outcome, expect, operators};
use cudarc::driver::{CudaContext, CudaStream};
use half::f16;
use lookback::cuda::Scanner;
use lookback::element::{Definition, ElementType, Operator};
use lookback::strategy::Mode;
use std::error::Error;
use std::sync::Arc;

/// The first GPU.
pub fn open() -> Result<(Scanner, Arc<CudaStream>), Box<dyn Error>> {
    lookback::cuda::toolkit::probe_driver()?; // cudarc panics where there is no driver
    let context = CudaContext::new(0)?;
    Ok((Scanner::new(&context)?, context.new_stream()?))
}

/// Bytes into offsets that no byte could hold.
fn sum_of_u8_in_u32(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let x = stream.clone_htod(&[200_u8, 100, 50])?;
    let mut y = stream.alloc_zeros::<u32>(3)?;
    scanner.inclusive(stream, Operator::Sum, &x, &mut y)?;
    expect(&stream.clone_dtoh(&y)?, &[200, 300, 350])
}

fn sum_of_i32_in_i64(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let x = stream.clone_htod(&[i32::MAX, i32::MAX, -1])?;
    let mut y = stream.alloc_zeros::<i64>(3)?;
    scanner.inclusive(stream, Operator::Sum, &x, &mut y)?;
    expect(&stream.clone_dtoh(&y)?, &[2_147_483_647, 4_294_967_294, 4_294_967_293])
}

/// In f16 one and one and one end at 2048; in f32, which these are scanned in, they do not.
fn sum_of_halves(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let x = stream.clone_htod(&[f16::ONE; 3000])?;
    let mut y = stream.alloc_zeros::<f16>(3000)?;
    scanner.inclusive(stream, Operator::Sum, &x, &mut y)?;
    expect(&stream.clone_dtoh(&y)?[2999..], &[f16::from_f32(3000.0)])
}

fn sum_of_f32_in_f64(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let x = stream.clone_htod(&[1e8_f32, 1.0, 1.0])?;
    let mut y = stream.alloc_zeros::<f64>(3)?;
    scanner.inclusive(stream, Operator::Sum, &x, &mut y)?;
    expect(&stream.clone_dtoh(&y)?, &[100_000_000.0, 100_000_001.0, 100_000_002.0])
}

/// Counts into one offset more.
fn exclusive(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let counts = stream.clone_htod(&[3_u32, 1, 4])?;
    let mut offsets = stream.alloc_zeros::<u32>(4)?;
    scanner.exclusive(stream, Operator::Sum, &counts, &mut offsets)?;
    expect(&stream.clone_dtoh(&offsets)?, &[0, 3, 4, 8])
}

fn in_place(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let mut x = stream.clone_htod(&[3_i32, 1, 4])?;
    scanner.in_place(stream, Operator::Max, Mode::Inclusive, &mut x)?;
    expect(&stream.clone_dtoh(&x)?, &[3, 3, 4])
}

/// The largest number so far, and where it stands.
fn arg_max(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let largest = Definition::arg_max::<f32>()?.define()?;
    let x = stream.clone_htod(&[1.0_f32, 3.0, 2.0, 3.0])?;
    let (mut value, mut index) = (stream.alloc_zeros::<f32>(4)?, stream.alloc_zeros::<u64>(4)?);
    scanner.run(stream, largest).input(&x).output(&mut value).output(&mut index).inclusive()?;
    expect(&stream.clone_dtoh(&value)?, &[1.0, 3.0, 3.0, 3.0])?;
    expect(&stream.clone_dtoh(&index)?, &[0, 1, 1, 1])
}

fn arg_min(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let smallest = Definition::arg_min::<i32>()?.define()?;
    let x = stream.clone_htod(&[5_i32, 7, 2, 2])?;
    let (mut value, mut index) = (stream.alloc_zeros::<i32>(4)?, stream.alloc_zeros::<u64>(4)?);
    scanner.run(stream, smallest).input(&x).output(&mut value).output(&mut index).inclusive()?;
    expect(&stream.clone_dtoh(&value)?, &[5, 5, 2, 2])?;
    expect(&stream.clone_dtoh(&index)?, &[0, 0, 2, 2])
}

fn own_operator(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let x = stream.clone_htod(&[48_u32, 36, 20])?;
    let mut y = stream.alloc_zeros::<u32>(3)?;
    scanner.run(stream, operators::greatest_common_divisor()?).input(&x).output(&mut y).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[48, 12, 4])
}

fn own_operator_on_structs(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let x = stream.clone_htod(&[2.0_f32, 4.0, 9.0])?;
    let mut y = stream.alloc_zeros::<f32>(3)?;
    scanner.run(stream, operators::mean()?).input(&x).output(&mut y).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[2.0, 3.0, 5.0])
}

/// From the last element to the first.
fn reversed(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3])?;
    let mut y = stream.alloc_zeros::<i32>(3)?;
    scanner.run(stream, sum).input(&x).output(&mut y).reversed().inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[6, 5, 3])
}

/// The same bits on every GPU, and on the CPU device, wherever the arrays begin.
fn reproducible(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32)?.define()?;
    let x = stream.clone_htod(&[0.1_f32, 0.2, 0.3])?;
    let mut y = stream.alloc_zeros::<f32>(3)?;
    scanner.run(stream, sum).input(&x).output(&mut y).reproducible().inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[0.1, 0.3, 0.6])
}

/// Two rows of three.
fn rows(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).output(&mut y).rows(3).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 6, 4, 9, 15])
}

/// Two rows of three, the left half of a matrix whose rows have six.
fn strided(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0, 0])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).row_stride(6).output(&mut y).rows(3).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 6, 4, 9, 15])
}

/// Three columns of two.
fn columns(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).output(&mut y).columns(3).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 2, 3, 5, 7, 9])
}

/// The middle axis of a tensor of the shape (2, 3, 2).
fn axis(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])?;
    let mut y = stream.alloc_zeros::<i32>(12)?;
    scanner.run(stream, sum).input(&x).output(&mut y).axis(3, 2).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 2, 4, 6, 9, 12, 7, 8, 16, 18, 27, 30])
}

/// Runs of equal neighbours: the last key is another run of the first one's.
fn by_key(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let keys = stream.clone_htod(&[7_u32, 7, 9, 9, 9, 7])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).output(&mut y).by_key(&keys).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 3, 7, 12, 6])
}

/// Anew from each flag.
fn head_flags(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let flags = stream.clone_htod(&[0_u8, 0, 1, 0, 0, 1])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).output(&mut y).head_flags(&flags).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 3, 7, 12, 6])
}

/// Segments of two elements, of none and of four. What is wrong with offsets the GPU finds out.
fn offsets(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let offsets = stream.clone_htod(&[0_u32, 2, 2, 6])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).output(&mut y).offsets(&offsets).inclusive()?;
    scanner.check(stream)?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 3, 7, 12, 18])
}

/// As many elements as a number in the GPU's memory says.
fn count_from(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let count = stream.clone_htod(&[4_u32])?;
    let mut y = stream.clone_htod(&[-1; 6])?;
    scanner.run(stream, sum).input(&x).output(&mut y).count_from(&count).inclusive()?;
    scanner.check(stream)?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 6, 10, -1, -1])
}

fn initial(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3])?;
    let mut y = stream.alloc_zeros::<i32>(3)?;
    scanner.run(stream, sum).input(&x).output(&mut y).initial(&100).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[101, 103, 106])
}

/// A state before each row.
fn initial_from(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3, 4, 5, 6])?;
    let states = stream.clone_htod(&[100, 200])?;
    let mut y = stream.alloc_zeros::<i32>(6)?;
    scanner.run(stream, sum).input(&x).output(&mut y).rows(3).initial_from(&states).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[101, 103, 106, 204, 209, 215])
}

/// Three chunks, each of which goes on where the one before it ended; the host waits for none.
fn final_state(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let (x, mut y) = (stream.clone_htod(&[1, 2, 3, 4, 5, 6])?, stream.alloc_zeros::<i32>(6)?);
    let (mut before, mut after) = (stream.alloc_zeros::<i32>(1)?, stream.alloc_zeros::<i32>(1)?);
    for chunk in [0..2, 2..4, 4..6] {
        let (x, mut y) = (x.slice(chunk.clone()), y.slice_mut(chunk));
        scanner.run(stream, sum).input(&x).output(&mut y).initial_from(&before).final_state(&mut after).inclusive()?;
        (before, after) = (after, before);
    }
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 6, 10, 15, 21])
}

/// An array that is loaded and stored, beside another one.
fn in_place_of_an_input(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = stream.clone_htod(&[2.0_f32, 2.0, 2.0])?;
    let mut h = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
    scanner.run(stream, recurrence).input(&a).in_place(&mut h).inclusive()?;
    expect(&stream.clone_dtoh(&h)?, &[1.0, 4.0, 11.0])
}

/// `h[t] = a[t] · h[t−1] + b[t]` from an h that stands before: the state is a factor and h.
fn recurrence(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = stream.clone_htod(&[2.0_f32, 2.0, 2.0])?;
    let b = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
    let mut h = stream.alloc_zeros::<f32>(3)?;
    scanner.run(stream, recurrence).input(&a).input(&b).output(&mut h).initial(&[0.0_f32, 10.0]).inclusive()?;
    expect(&stream.clone_dtoh(&h)?, &[21.0, 44.0, 91.0])
}

/// Of the shape (batch, channel, time) = (2, 2, 3): a sequence a row.
fn recurrence_of_batch_channel_time(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = stream.clone_htod(&[2.0_f32; 12])?;
    let b = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = stream.alloc_zeros::<f32>(12)?;
    scanner.run(stream, recurrence).input(&a).input(&b).output(&mut h).rows(3).inclusive()?;
    expect(&stream.clone_dtoh(&h)?, &[1.0, 4.0, 11.0, 4.0, 13.0, 32.0, 7.0, 22.0, 53.0, 10.0, 31.0, 74.0])
}

/// `h[t] = a[t] · h[t+1] + b[t]`.
fn reverse_recurrence_of_batch_channel_time(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = stream.clone_htod(&[2.0_f32; 12])?;
    let b = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = stream.alloc_zeros::<f32>(12)?;
    scanner.run(stream, recurrence).input(&a).input(&b).output(&mut h).rows(3).reversed().inclusive()?;
    expect(&stream.clone_dtoh(&h)?, &[17.0, 8.0, 3.0, 38.0, 17.0, 6.0, 59.0, 26.0, 9.0, 80.0, 35.0, 12.0])
}

/// Of the shape (batch, time, channel) = (2, 3, 2): the steps of a sequence lie as far apart as there are channels.
fn recurrence_of_batch_time_channel(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = stream.clone_htod(&[2.0_f32; 12])?;
    let b = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = stream.alloc_zeros::<f32>(12)?;
    scanner.run(stream, recurrence).input(&a).input(&b).output(&mut h).axis(3, 2).inclusive()?;
    expect(&stream.clone_dtoh(&h)?, &[1.0, 2.0, 5.0, 8.0, 15.0, 22.0, 7.0, 8.0, 23.0, 26.0, 57.0, 64.0])
}

fn reverse_recurrence_of_batch_time_channel(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = stream.clone_htod(&[2.0_f32; 12])?;
    let b = stream.clone_htod(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0])?;
    let mut h = stream.alloc_zeros::<f32>(12)?;
    scanner.run(stream, recurrence).input(&a).input(&b).output(&mut h).axis(3, 2).reversed().inclusive()?;
    expect(&stream.clone_dtoh(&h)?, &[27.0, 34.0, 13.0, 16.0, 5.0, 6.0, 69.0, 76.0, 31.0, 34.0, 11.0, 12.0])
}

/// Those that a text of CUDA C++ says yes to, side by side, and how many they are.
fn select(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let even = Definition::select::<u32>("return x % 2 == 0;").define()?;
    let x = stream.clone_htod(&[3_u32, 4, 1, 6, 8, 5])?;
    let (mut kept, mut count) = (stream.alloc_zeros::<u32>(6)?, stream.alloc_zeros::<u32>(1)?);
    scanner.run(stream, even).input(&x).output(&mut kept).count_into(&mut count).compact()?;
    expect(&stream.clone_dtoh(&count)?, &[3])?;
    expect(&stream.clone_dtoh(&kept)?, &[4, 6, 8, 0, 0, 0])
}

fn select_flagged(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let flagged = Definition::select_flagged::<u32>().define()?;
    let (x, flags) = (stream.clone_htod(&[3_u32, 4, 1, 6])?, stream.clone_htod(&[1_u8, 0, 0, 1])?);
    let (mut kept, mut count) = (stream.alloc_zeros::<u32>(4)?, stream.alloc_zeros::<u32>(1)?);
    scanner.run(stream, flagged).input(&x).input(&flags).output(&mut kept).count_into(&mut count).compact()?;
    expect(&stream.clone_dtoh(&count)?, &[2])?;
    expect(&stream.clone_dtoh(&kept)?, &[3, 6, 0, 0])
}

/// The others in their order, too, in an array of their own.
fn partition(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let even = Definition::partition::<u32>("return x % 2 == 0;").define()?;
    let x = stream.clone_htod(&[3_u32, 4, 1, 6, 8, 5])?;
    let (mut kept, mut others) = (stream.alloc_zeros::<u32>(6)?, stream.alloc_zeros::<u32>(6)?);
    scanner.run(stream, even).input(&x).output(&mut kept).output(&mut others).compact()?;
    expect(&stream.clone_dtoh(&kept)?, &[4, 6, 8, 0, 0, 0])?;
    expect(&stream.clone_dtoh(&others)?, &[3, 1, 5, 0, 0, 0])
}

fn nonzero(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let places = Definition::nonzero::<f32>()?.define()?;
    let x = stream.clone_htod(&[0.0_f32, 2.0, 0.0, 3.0])?;
    let (mut place, mut count) = (stream.alloc_zeros::<u64>(4)?, stream.alloc_zeros::<u32>(1)?);
    scanner.run(stream, places).input(&x).output(&mut place).count_into(&mut count).compact()?;
    expect(&stream.clone_dtoh(&count)?, &[2])?;
    expect(&stream.clone_dtoh(&place)?, &[1, 3, 0, 0])
}

fn unique(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let unique = Definition::unique::<u32>()?.define()?;
    let x = stream.clone_htod(&[7_u32, 7, 9, 9, 9, 7])?;
    let (mut first, mut count) = (stream.alloc_zeros::<u32>(6)?, stream.alloc_zeros::<u32>(1)?);
    scanner.run(stream, unique).input(&x).output(&mut first).count_into(&mut count).compact()?;
    expect(&stream.clone_dtoh(&count)?, &[3])?;
    expect(&stream.clone_dtoh(&first)?, &[7, 9, 7, 0, 0, 0])
}

fn run_length_encode(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let runs = Definition::run_length_encode::<u8>()?.define()?;
    let x = stream.clone_htod(&[7_u8, 7, 9, 9, 9, 7])?;
    let (mut value, mut length) = (stream.alloc_zeros::<u8>(6)?, stream.alloc_zeros::<u64>(6)?);
    scanner.run(stream, runs).input(&x).output(&mut value).output(&mut length).compact()?;
    expect(&stream.clone_dtoh(&value)?, &[7, 9, 7, 0, 0, 0])?;
    expect(&stream.clone_dtoh(&length)?, &[2, 3, 1, 0, 0, 0])
}

fn reduce_by_key(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sums = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::I32, ElementType::I64)?.define()?;
    let (keys, x) = (stream.clone_htod(&[7_u32, 7, 9, 9, 9, 7])?, stream.clone_htod(&[1, 2, 3, 4, 5, 6])?);
    let (mut unique, mut total) = (stream.alloc_zeros::<u32>(6)?, stream.alloc_zeros::<i64>(6)?);
    scanner.run(stream, sums).input(&keys).input(&x).output(&mut unique).output(&mut total).compact()?;
    expect(&stream.clone_dtoh(&unique)?, &[7, 9, 7, 0, 0, 0])?;
    expect(&stream.clone_dtoh(&total)?, &[3, 12, 6, 0, 0, 0])
}

/// By their weights, the heaviest first.
fn sort(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let by_weight = Definition::sort::<f32>()?.with::<u32>("owner").descending().define()?;
    let (weights, owners) = (stream.clone_htod(&[0.5_f32, -1.0, 7.0, 0.5])?, stream.clone_htod(&[0_u32, 1, 2, 3])?);
    let (mut sorted, mut of) = (stream.alloc_zeros::<f32>(4)?, stream.alloc_zeros::<u32>(4)?);
    scanner.run(stream, by_weight).input(&weights).input(&owners).output(&mut sorted).output(&mut of).sort()?;
    expect(&stream.clone_dtoh(&sorted)?, &[7.0, 0.5, 0.5, -1.0])?;
    expect(&stream.clone_dtoh(&of)?, &[2, 0, 3, 1])
}

/// How many bytes have at most each value.
fn cumulated_histogram(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let histogram = Definition::byte_histogram::<u8, u32>()?.cumulated().define()?;
    let pixels = stream.clone_htod(&[3_u8, 1, 255, 3])?;
    let mut counts = stream.alloc_zeros::<u32>(256)?;
    scanner.run(stream, histogram).input(&pixels).output(&mut counts).histogram()?;
    let counts = stream.clone_dtoh(&counts)?;
    expect(&[counts[0], counts[1], counts[2], counts[3], counts[254], counts[255]], &[0, 1, 1, 3, 3, 4])
}

/// Which item each of six units of work belongs to, of which the second item has none.
fn owners(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let owners = Definition::owners::<u32>().define()?;
    let offsets = stream.clone_htod(&[0_u32, 2, 2, 6])?;
    let mut owner = stream.alloc_zeros::<u32>(6)?;
    scanner.run(stream, owners).offsets(&offsets).output(&mut owner).expand()?;
    expect(&stream.clone_dtoh(&owner)?, &[0, 0, 2, 2, 2, 2])
}

fn repeated(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let repeated = Definition::repeated::<f32>().define()?;
    let (offsets, x) = (stream.clone_htod(&[0_u64, 3, 4, 5])?, stream.clone_htod(&[0.5_f32, 1.5, 2.5])?);
    let mut y = stream.alloc_zeros::<f32>(5)?;
    scanner.run(stream, repeated).offsets(&offsets).input(&x).output(&mut y).expand()?;
    expect(&stream.clone_dtoh(&y)?, &[0.5, 0.5, 0.5, 1.5, 2.5])
}

/// Those with a flag go to the places that an exclusive sum of the flags gave them.
fn scatter(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let scatter = Definition::scattered("flagged", "return flag != 0 ? place : ~0ull;");
    let scatter = scatter.input::<u32>("x").input::<u8>("flag").input::<u32>("place");
    let scatter = scatter.output::<u32>("y").store("y = x;").define()?;
    let (x, flags) = (stream.clone_htod(&[3_u32, 4, 1, 6])?, stream.clone_htod(&[0_u8, 1, 0, 1])?);
    let (places, mut y) = (stream.clone_htod(&[0_u32, 0, 1, 1])?, stream.alloc_zeros::<u32>(2)?);
    scanner.run(stream, scatter).input(&x).input(&flags).input(&places).output(&mut y).scatter()?;
    expect(&stream.clone_dtoh(&y)?, &[4, 6])
}

/// All of it combined, and nothing stored beside that.
fn total(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let (x, mut total) = (stream.clone_htod(&[3_u32, 1, 4])?, stream.alloc_zeros::<u32>(1)?);
    scanner.run(stream, sum).input(&x).total(&mut total)?;
    expect(&stream.clone_dtoh(&total)?, &[8])
}

/// What one run keeps is what the next one scans: the host need not know how much it is.
fn count_of_one_run_is_the_next_ones(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let even = Definition::select::<u32>("return x % 2 == 0;").define()?;
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let x = stream.clone_htod(&[3_u32, 4, 1, 6, 8, 5])?;
    let (mut kept, mut count) = (stream.alloc_zeros::<u32>(6)?, stream.alloc_zeros::<u32>(1)?);
    let mut y = stream.alloc_zeros::<u32>(6)?;
    scanner.run(stream, even).input(&x).output(&mut kept).count_into(&mut count).compact()?;
    scanner.run(stream, sum).input(&kept).output(&mut y).count_from(&count).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[4, 10, 18, 0, 0, 0])
}

/// Compiles, loads and allocates beforehand what the call needs, which then does none of it. On a GPU alone.
fn warm_up(scanner: &Scanner, stream: &Arc<CudaStream>) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = stream.clone_htod(&[1, 2, 3])?;
    let mut y = stream.alloc_zeros::<i32>(3)?;
    scanner.run(stream, sum).input(&x).output(&mut y).warm_up(Mode::Inclusive)?;
    scanner.run(stream, sum).input(&x).output(&mut y).inclusive()?;
    expect(&stream.clone_dtoh(&y)?, &[1, 3, 6])
}

type Call = fn(&Scanner, &Arc<CudaStream>) -> Outcome;

pub const CALLS: &[(&str, Call)] = calls![warm_up];
