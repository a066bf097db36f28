//! The calls of `gpu.rs` over slices, on the CPU device: for tests where there is no GPU.

use crate::{Outcome, expect, operators};
use half::f16;
use lookback::element::{Definition, ElementType, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::strategy::Mode;

/// Bytes into offsets that no byte could hold.
fn sum_of_u8_in_u32(scanner: &mut HostScanner) -> Outcome {
    let x = [200_u8, 100, 50];
    let mut y = [0_u32; 3];
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&y, &[200, 300, 350])
}

fn sum_of_i32_in_i64(scanner: &mut HostScanner) -> Outcome {
    let x = [i32::MAX, i32::MAX, -1];
    let mut y = [0_i64; 3];
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&y, &[2_147_483_647, 4_294_967_294, 4_294_967_293])
}

/// In f16 one and one and one end at 2048; in f32, which these are scanned in, they do not.
fn sum_of_halves(scanner: &mut HostScanner) -> Outcome {
    let x = [f16::ONE; 3000];
    let mut y = [f16::ZERO; 3000];
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&y[2999..], &[f16::from_f32(3000.0)])
}

fn sum_of_f32_in_f64(scanner: &mut HostScanner) -> Outcome {
    let x = [1e8_f32, 1.0, 1.0];
    let mut y = [0.0_f64; 3];
    scanner.inclusive(Operator::Sum, &x, &mut y)?;
    expect(&y, &[100_000_000.0, 100_000_001.0, 100_000_002.0])
}

/// Counts into one offset more.
fn exclusive(scanner: &mut HostScanner) -> Outcome {
    let counts = [3_u32, 1, 4];
    let mut offsets = [0_u32; 4];
    scanner.exclusive(Operator::Sum, &counts, &mut offsets)?;
    expect(&offsets, &[0, 3, 4, 8])
}

fn in_place(scanner: &mut HostScanner) -> Outcome {
    let mut x = [3_i32, 1, 4];
    scanner.in_place(Operator::Max, Mode::Inclusive, &mut x)?;
    expect(&x, &[3, 3, 4])
}

/// The largest number so far, and where it stands.
fn arg_max(scanner: &mut HostScanner) -> Outcome {
    let largest = Definition::arg_max::<f32>()?.define()?;
    let x = [1.0_f32, 3.0, 2.0, 3.0];
    let (mut value, mut index) = ([0.0_f32; 4], [0_u64; 4]);
    scanner.run(largest).input(&x).output(&mut value).output(&mut index).inclusive()?;
    expect(&value, &[1.0, 3.0, 3.0, 3.0])?;
    expect(&index, &[0, 1, 1, 1])
}

fn arg_min(scanner: &mut HostScanner) -> Outcome {
    let smallest = Definition::arg_min::<i32>()?.define()?;
    let x = [5_i32, 7, 2, 2];
    let (mut value, mut index) = ([0_i32; 4], [0_u64; 4]);
    scanner.run(smallest).input(&x).output(&mut value).output(&mut index).inclusive()?;
    expect(&value, &[5, 5, 2, 2])?;
    expect(&index, &[0, 0, 2, 2])
}

fn own_operator(scanner: &mut HostScanner) -> Outcome {
    let x = [48_u32, 36, 20];
    let mut y = [0_u32; 3];
    scanner.run(operators::greatest_common_divisor()?).input(&x).output(&mut y).inclusive()?;
    expect(&y, &[48, 12, 4])
}

fn own_operator_on_structs(scanner: &mut HostScanner) -> Outcome {
    let x = [2.0_f32, 4.0, 9.0];
    let mut y = [0.0_f32; 3];
    scanner.run(operators::mean()?).input(&x).output(&mut y).inclusive()?;
    expect(&y, &[2.0, 3.0, 5.0])
}

/// From the last element to the first.
fn reversed(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3];
    let mut y = [0_i32; 3];
    scanner.run(sum).input(&x).output(&mut y).reversed().inclusive()?;
    expect(&y, &[6, 5, 3])
}

/// The same bits on every GPU, and on the CPU device, wherever the arrays begin.
fn reproducible(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32)?.define()?;
    let x = [0.1_f32, 0.2, 0.3];
    let mut y = [0.0_f32; 3];
    scanner.run(sum).input(&x).output(&mut y).reproducible().inclusive()?;
    expect(&y, &[0.1, 0.3, 0.6])
}

/// Two rows of three.
fn rows(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).output(&mut y).rows(3).inclusive()?;
    expect(&y, &[1, 3, 6, 4, 9, 15])
}

/// Two rows of three, the left half of a matrix whose rows have six.
fn strided(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0, 0];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).row_stride(6).output(&mut y).rows(3).inclusive()?;
    expect(&y, &[1, 3, 6, 4, 9, 15])
}

/// Three columns of two.
fn columns(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).output(&mut y).columns(3).inclusive()?;
    expect(&y, &[1, 2, 3, 5, 7, 9])
}

/// The middle axis of a tensor of the shape (2, 3, 2).
fn axis(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let mut y = [0_i32; 12];
    scanner.run(sum).input(&x).output(&mut y).axis(3, 2).inclusive()?;
    expect(&y, &[1, 2, 4, 6, 9, 12, 7, 8, 16, 18, 27, 30])
}

/// Runs of equal neighbours: the last key is another run of the first one's.
fn by_key(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let keys = [7_u32, 7, 9, 9, 9, 7];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).output(&mut y).by_key(&keys).inclusive()?;
    expect(&y, &[1, 3, 3, 7, 12, 6])
}

/// Anew from each flag.
fn head_flags(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let flags = [0_u8, 0, 1, 0, 0, 1];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).output(&mut y).head_flags(&flags).inclusive()?;
    expect(&y, &[1, 3, 3, 7, 12, 6])
}

/// Segments of two elements, of none and of four.
fn offsets(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let offsets = [0_u32, 2, 2, 6];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).output(&mut y).offsets(&offsets).inclusive()?;
    expect(&y, &[1, 3, 3, 7, 12, 18])
}

/// As many elements as a number says that is read when the scan begins.
fn count_from(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let count = 4_u32;
    let mut y = [-1; 6];
    scanner.run(sum).input(&x).output(&mut y).count_from(&count).inclusive()?;
    expect(&y, &[1, 3, 6, 10, -1, -1])
}

fn initial(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3];
    let mut y = [0_i32; 3];
    scanner.run(sum).input(&x).output(&mut y).initial(&100).inclusive()?;
    expect(&y, &[101, 103, 106])
}

/// A state before each row.
fn initial_from(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let x = [1, 2, 3, 4, 5, 6];
    let states = [100, 200];
    let mut y = [0_i32; 6];
    scanner.run(sum).input(&x).output(&mut y).rows(3).initial_from(&states).inclusive()?;
    expect(&y, &[101, 103, 106, 204, 209, 215])
}

/// Three chunks, each of which goes on where the one before it ended.
fn final_state(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::I32, ElementType::I32)?.define()?;
    let (x, mut y) = ([1, 2, 3, 4, 5, 6], [0_i32; 6]);
    let (mut before, mut after) = ([0_i32; 1], [0_i32; 1]);
    for chunk in [0..2, 2..4, 4..6] {
        let (x, y) = (&x[chunk.clone()], &mut y[chunk]);
        scanner.run(sum).input(x).output(y).initial_from(&before).final_state(&mut after).inclusive()?;
        (before, after) = (after, before);
    }
    expect(&y, &[1, 3, 6, 10, 15, 21])
}

/// An array that is loaded and stored, beside another one.
fn in_place_of_an_input(scanner: &mut HostScanner) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = [2.0_f32, 2.0, 2.0];
    let mut h = [1.0_f32, 2.0, 3.0];
    scanner.run(recurrence).input(&a).in_place(&mut h).inclusive()?;
    expect(&h, &[1.0, 4.0, 11.0])
}

/// `h[t] = a[t] · h[t−1] + b[t]` from an h that stands before: the state is a factor and h.
fn recurrence(scanner: &mut HostScanner) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = [2.0_f32, 2.0, 2.0];
    let b = [1.0_f32, 2.0, 3.0];
    let mut h = [0.0_f32; 3];
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).initial(&[0.0_f32, 10.0]).inclusive()?;
    expect(&h, &[21.0, 44.0, 91.0])
}

/// Of the shape (batch, channel, time) = (2, 2, 3): a sequence a row.
fn recurrence_of_batch_channel_time(scanner: &mut HostScanner) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = [2.0_f32; 12];
    let b = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let mut h = [0.0_f32; 12];
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).rows(3).inclusive()?;
    expect(&h, &[1.0, 4.0, 11.0, 4.0, 13.0, 32.0, 7.0, 22.0, 53.0, 10.0, 31.0, 74.0])
}

/// `h[t] = a[t] · h[t+1] + b[t]`.
fn reverse_recurrence_of_batch_channel_time(scanner: &mut HostScanner) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = [2.0_f32; 12];
    let b = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let mut h = [0.0_f32; 12];
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).rows(3).reversed().inclusive()?;
    expect(&h, &[17.0, 8.0, 3.0, 38.0, 17.0, 6.0, 59.0, 26.0, 9.0, 80.0, 35.0, 12.0])
}

/// Of the shape (batch, time, channel) = (2, 3, 2): the steps of a sequence lie as far apart as there are channels.
fn recurrence_of_batch_time_channel(scanner: &mut HostScanner) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = [2.0_f32; 12];
    let b = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let mut h = [0.0_f32; 12];
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).axis(3, 2).inclusive()?;
    expect(&h, &[1.0, 2.0, 5.0, 8.0, 15.0, 22.0, 7.0, 8.0, 23.0, 26.0, 57.0, 64.0])
}

fn reverse_recurrence_of_batch_time_channel(scanner: &mut HostScanner) -> Outcome {
    let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
    let a = [2.0_f32; 12];
    let b = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    let mut h = [0.0_f32; 12];
    scanner.run(recurrence).input(&a).input(&b).output(&mut h).axis(3, 2).reversed().inclusive()?;
    expect(&h, &[27.0, 34.0, 13.0, 16.0, 5.0, 6.0, 69.0, 76.0, 31.0, 34.0, 11.0, 12.0])
}

/// Those that a text of CUDA C++ says yes to, side by side, and how many they are.
fn select(scanner: &mut HostScanner) -> Outcome {
    let even = Definition::select::<u32>("return x % 2 == 0;").define()?;
    let x = [3_u32, 4, 1, 6, 8, 5];
    let (mut kept, mut count) = ([0_u32; 6], 0_u32);
    scanner.run(even).input(&x).output(&mut kept).count_into(&mut count).compact()?;
    expect(&kept[..count as usize], &[4, 6, 8])
}

fn select_flagged(scanner: &mut HostScanner) -> Outcome {
    let flagged = Definition::select_flagged::<u32>().define()?;
    let (x, flags) = ([3_u32, 4, 1, 6], [1_u8, 0, 0, 1]);
    let (mut kept, mut count) = ([0_u32; 4], 0_u32);
    scanner.run(flagged).input(&x).input(&flags).output(&mut kept).count_into(&mut count).compact()?;
    expect(&kept[..count as usize], &[3, 6])
}

/// The others in their order, too, in an array of their own.
fn partition(scanner: &mut HostScanner) -> Outcome {
    let even = Definition::partition::<u32>("return x % 2 == 0;").define()?;
    let x = [3_u32, 4, 1, 6, 8, 5];
    let (mut kept, mut others) = ([0_u32; 6], [0_u32; 6]);
    scanner.run(even).input(&x).output(&mut kept).output(&mut others).compact()?;
    expect(&kept, &[4, 6, 8, 0, 0, 0])?;
    expect(&others, &[3, 1, 5, 0, 0, 0])
}

fn nonzero(scanner: &mut HostScanner) -> Outcome {
    let places = Definition::nonzero::<f32>()?.define()?;
    let x = [0.0_f32, 2.0, 0.0, 3.0];
    let (mut place, mut count) = ([0_u64; 4], 0_u32);
    scanner.run(places).input(&x).output(&mut place).count_into(&mut count).compact()?;
    expect(&place[..count as usize], &[1, 3])
}

fn unique(scanner: &mut HostScanner) -> Outcome {
    let unique = Definition::unique::<u32>()?.define()?;
    let x = [7_u32, 7, 9, 9, 9, 7];
    let (mut first, mut count) = ([0_u32; 6], 0_u32);
    scanner.run(unique).input(&x).output(&mut first).count_into(&mut count).compact()?;
    expect(&first[..count as usize], &[7, 9, 7])
}

fn run_length_encode(scanner: &mut HostScanner) -> Outcome {
    let runs = Definition::run_length_encode::<u8>()?.define()?;
    let x = [7_u8, 7, 9, 9, 9, 7];
    let (mut value, mut length) = ([0_u8; 6], [0_u64; 6]);
    scanner.run(runs).input(&x).output(&mut value).output(&mut length).compact()?;
    expect(&value, &[7, 9, 7, 0, 0, 0])?;
    expect(&length, &[2, 3, 1, 0, 0, 0])
}

fn reduce_by_key(scanner: &mut HostScanner) -> Outcome {
    let sums = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::I32, ElementType::I64)?.define()?;
    let (keys, x) = ([7_u32, 7, 9, 9, 9, 7], [1, 2, 3, 4, 5, 6]);
    let (mut unique, mut total) = ([0_u32; 6], [0_i64; 6]);
    scanner.run(sums).input(&keys).input(&x).output(&mut unique).output(&mut total).compact()?;
    expect(&unique, &[7, 9, 7, 0, 0, 0])?;
    expect(&total, &[3, 12, 6, 0, 0, 0])
}

/// By their weights, the heaviest first.
fn sort(scanner: &mut HostScanner) -> Outcome {
    let by_weight = Definition::sort::<f32>()?.with::<u32>("owner").descending().define()?;
    let (weights, owners) = ([0.5_f32, -1.0, 7.0, 0.5], [0_u32, 1, 2, 3]);
    let (mut sorted, mut of) = ([0.0_f32; 4], [0_u32; 4]);
    scanner.run(by_weight).input(&weights).input(&owners).output(&mut sorted).output(&mut of).sort()?;
    expect(&sorted, &[7.0, 0.5, 0.5, -1.0])?;
    expect(&of, &[2, 0, 3, 1])
}

/// How many bytes have at most each value.
fn cumulated_histogram(scanner: &mut HostScanner) -> Outcome {
    let histogram = Definition::byte_histogram::<u8, u32>()?.cumulated().define()?;
    let mut counts = [0_u32; 256];
    scanner.run(histogram).input(&[3_u8, 1, 255, 3]).output(&mut counts).histogram()?;
    expect(&[counts[0], counts[1], counts[2], counts[3], counts[254], counts[255]], &[0, 1, 1, 3, 3, 4])
}

/// Which item each of six units of work belongs to, of which the second item has none.
fn owners(scanner: &mut HostScanner) -> Outcome {
    let owners = Definition::owners::<u32>().define()?;
    let mut owner = [0_u32; 6];
    scanner.run(owners).offsets(&[0_u32, 2, 2, 6]).output(&mut owner).expand()?;
    expect(&owner, &[0, 0, 2, 2, 2, 2])
}

fn repeated(scanner: &mut HostScanner) -> Outcome {
    let repeated = Definition::repeated::<f32>().define()?;
    let mut y = [0.0_f32; 5];
    scanner.run(repeated).offsets(&[0_u64, 3, 4, 5]).input(&[0.5_f32, 1.5, 2.5]).output(&mut y).expand()?;
    expect(&y, &[0.5, 0.5, 0.5, 1.5, 2.5])
}

/// Those with a flag go to the places that an exclusive sum of the flags gave them.
fn scatter(scanner: &mut HostScanner) -> Outcome {
    let scatter = Definition::scattered("flagged", "return flag != 0 ? place : ~0ull;");
    let scatter = scatter.input::<u32>("x").input::<u8>("flag").input::<u32>("place");
    let scatter = scatter.output::<u32>("y").store("y = x;").define()?;
    let (x, flags, places, mut y) = ([3_u32, 4, 1, 6], [0_u8, 1, 0, 1], [0_u32, 0, 1, 1], [0_u32; 2]);
    scanner.run(scatter).input(&x).input(&flags).input(&places).output(&mut y).scatter()?;
    expect(&y, &[4, 6])
}

/// All of it combined, and nothing stored beside that.
fn total(scanner: &mut HostScanner) -> Outcome {
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let (x, mut total) = ([3_u32, 1, 4], 0_u32);
    scanner.run(sum).input(&x).total(&mut total)?;
    expect(&[total], &[8])
}

/// What one run keeps is what the next one scans: the host need not know how much it is.
fn count_of_one_run_is_the_next_ones(scanner: &mut HostScanner) -> Outcome {
    let even = Definition::select::<u32>("return x % 2 == 0;").define()?;
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let x = [3_u32, 4, 1, 6, 8, 5];
    let (mut kept, mut count, mut y) = ([0_u32; 6], 0_u32, [0_u32; 6]);
    scanner.run(even).input(&x).output(&mut kept).count_into(&mut count).compact()?;
    scanner.run(sum).input(&kept).output(&mut y).count_from(&count).inclusive()?;
    expect(&y, &[4, 10, 18, 0, 0, 0])
}

type Call = fn(&mut HostScanner) -> Outcome;

pub const CALLS: &[(&str, Call)] = calls![];
