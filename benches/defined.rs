//! Scans that are more than the sum of one array: each checked against the loop that it stands for, and timed beside
//! `cudaMemcpy` of as many bytes as it must read and write once. Needs a GPU.
//!
//!     cargo bench --bench defined -- [ELEMENTS] [PART OF A NAME] [STRATEGY VT THREADS]
//!
//! A line says how many times as long as the copy a scan took, by medians of 11 rounds, three times over:
//!
//! - *stream*: five launches, one behind the other on a stream, between two events;
//! - *graph*: the same five in a graph that is replayed, so that the host's calls are not among the time;
//! - *cold*: one launch between two events, behind a memset of 256 MiB that leaves nothing of the arrays in the L2 cache. What
//!   the events themselves take, some microseconds, is in this time and in that of its copy.
//!
//! The copy is measured likewise, in the same process; *stream* and *graph* go by the faster one of its stream and graph. In
//! those two the caches keep what the launch before has left, which is little of an array of 1 GiB.

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits, result, sys,
};
use half::{bf16, f16};
use lookback::cuda::{Run, Scanner, toolkit};
use lookback::element::{ArrayElement, Defined, Definition, ElementType, Operator};
use lookback::strategy::{ScanConfig, Strategy};
use std::error::Error;
use std::sync::Arc;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 11;
const LAUNCHES: usize = 5;
/// More than any L2 cache holds.
const OVERWRITTEN_BYTES: usize = 256 << 20;

/// An element of so many words, by its name in CUDA C++.
macro_rules! element {
    ($(#[$doc:meta])* $name:ident([$word:ty; $count:literal]) = $cuda:literal) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Default)]
        struct $name([$word; $count]);

        // SAFETY: `Pod` says that there is no padding and that any bits are one.
        unsafe impl DeviceRepr for $name {}
        // SAFETY: as above.
        unsafe impl ValidAsZeroBits for $name {}

        impl ArrayElement for $name {
            const CUDA_TYPE: &'static str = $cuda;
        }
    };
}
element! {
    /// Two by two, row by row.
    Matrix([u32; 4]) = "matrix"
}
element! {
    /// Of the plane, or a step in it.
    Point([f32; 2]) = "float2"
}
element! {
    /// A linear map of the plane, row by row.
    Linear([f32; 4]) = "float4"
}

impl Matrix {
    fn times(self, right: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, right.0);
        let sum = |x: u32, y: u32, z: u32, w: u32| x.wrapping_mul(y).wrapping_add(z.wrapping_mul(w));
        Self([sum(a, e, b, g), sum(a, f, b, h), sum(c, e, d, g), sum(c, f, d, h)])
    }
}

fn matrices() -> Outcome<Defined> {
    let product = "return {left.a * right.a + left.b * right.c, left.a * right.b + left.b * right.d,\n        \
                   left.c * right.a + left.d * right.c, left.c * right.b + left.d * right.d};";
    Ok(Definition::new::<Matrix>("matrices", "matrix")
        .declare("struct alignas(16) matrix { u32 a; u32 b; u32 c; u32 d; };")
        .identity("{1, 0, 0, 1}")
        .combine(product)
        .input::<Matrix>("m")
        .load("return m;")
        .output::<Matrix>("p")
        .store("p = state;")
        .define()?)
}

/// h[t] = A[t] · h[t−1] + b[t] in the plane: a filter of the second order whose coefficients change. A state of 24 bytes.
fn planar_recurrence() -> Outcome<Defined> {
    let product = "return {{right.linear.x * left.linear.x + right.linear.y * left.linear.z,
         right.linear.x * left.linear.y + right.linear.y * left.linear.w,
         right.linear.z * left.linear.x + right.linear.w * left.linear.z,
         right.linear.z * left.linear.y + right.linear.w * left.linear.w},
        {right.linear.x * left.step.x + right.linear.y * left.step.y + right.step.x,
         right.linear.z * left.step.x + right.linear.w * left.step.y + right.step.y}};";
    Ok(Definition::new::<[f32; 6]>("planar", "planar")
        .declare("struct four { float x, y, z, w; };\nstruct two { float x, y; };\nstruct planar { four linear; two step; };")
        .identity("{{1, 0, 0, 1}, {0, 0}}")
        .combine(product)
        .input::<Point>("b")
        .input::<Linear>("a")
        .load("return {{a.x, a.y, a.z, a.w}, {b.x, b.y}};")
        .output::<Point>("h")
        .store("h.x = state.step.x; h.y = state.step.y;")
        .define()?)
}

fn sums(from: ElementType, to: ElementType) -> Outcome<Defined> {
    Ok(Definition::of_numbers(Operator::Sum, from, to)?.define()?)
}

/// Whether results have the same bits however the scan is run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bits {
    AsTheyCome,
    Reproducible,
}

/// Microseconds of one launch.
#[derive(Debug, Clone, Copy)]
struct Times {
    stream: f64,
    graph: f64,
    cold: f64,
}

struct Bench {
    stream: Arc<CudaStream>,
    overwritten: CudaSlice<u8>,
    scanner: Scanner,
    has_failed: bool,
}

impl Bench {
    fn time(&self, mut launch: impl FnMut() -> Outcome<()>) -> Outcome<Times> {
        launch()?;
        let mut launches = || (0..LAUNCHES).try_for_each(|_| launch());
        let stream = self.median(LAUNCHES, || Ok(()), &mut launches)?;
        self.stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        launches()?;
        let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let replayed = self.stream.end_capture(flags)?.ok_or("nothing was captured")?;
        replayed.launch()?;
        let graph = self.median(LAUNCHES, || Ok(()), || Ok(replayed.launch()?))?;
        let cold = self.median(1, || self.overwrite_caches(), &mut launch)?;
        Ok(Times { stream, graph, cold })
    }

    /// Microseconds of one of `count` launches between two events, behind something that is not timed.
    fn median(
        &self,
        count: usize,
        before: impl Fn() -> Outcome<()>,
        mut launches: impl FnMut() -> Outcome<()>,
    ) -> Outcome<f64> {
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            before()?;
            let start = self.stream.record_event(flags)?;
            launches()?;
            let end = self.stream.record_event(flags)?;
            times.push(f64::from(start.elapsed_ms(&end)?) * 1e3 / count as f64);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[ROUNDS / 2])
    }

    fn overwrite_caches(&self) -> Outcome<()> {
        let (address, _read) = self.overwritten.device_ptr(&self.stream);
        // SAFETY: the array has so many bytes and lives as long as the bench, and nobody reads it.
        Ok(unsafe { result::memset_d8_async(address, 1, OVERWRITTEN_BYTES, self.stream.cu_stream()) }?)
    }

    /// The copy of as many bytes as are read and written.
    fn copy_time(&self, bytes: usize) -> Outcome<Times> {
        let half = bytes.div_ceil(32) * 16;
        let from = self.stream.alloc_zeros::<u8>(half)?;
        let mut to = self.stream.alloc_zeros::<u8>(half)?;
        let (from, _read) = from.device_ptr(&self.stream);
        let (to, _written) = to.device_ptr_mut(&self.stream);
        self.time(|| {
            // SAFETY: both arrays have so many bytes, and live until the stream was waited for by the events.
            Ok(unsafe { result::memcpy_dtod_async(to, from, half, self.stream.cu_stream()) }?)
        })
    }

    fn report(&mut self, name: &str, n: usize, bytes: usize, times: Times, is_right: bool) -> Outcome<()> {
        let copy = self.copy_time(bytes)?;
        let warm = copy.stream.min(copy.graph);
        let verdict = if is_right { "right" } else { "WRONG" };
        self.has_failed |= !is_right;
        let Times { stream, graph, cold } = times;
        println!(
            "{name:34} {n:>11} {:>8.3} GB {stream:>9.1} us {:>7.3} {:>7.3} {:>7.3}  {verdict}",
            bytes as f64 / 1e9,
            stream / warm,
            graph / warm,
            cold / copy.cold,
        );
        Ok(())
    }

    fn recurrence(&mut self, name: &str, n: usize, columns: usize, is_reversed: bool, order: Bits) -> Outcome<()> {
        let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
        // Halves and small whole numbers, so that nearly every step is exact.
        let a: Vec<f32> = (0..n).map(|i| [0.5, -0.5, 0.25, 1.0][(i ^ i >> 7) % 4]).collect();
        let b: Vec<f32> = (0..n).map(|i| (i % 5) as f32 - 2.0).collect();
        let (from_a, from_b) = (self.stream.clone_htod(&a)?, self.stream.clone_htod(&b)?);
        let mut to = self.stream.alloc_zeros::<f32>(n)?;
        let time = self.time(|| {
            let run = self.scanner.run(&self.stream, recurrence).input(&from_a).input(&from_b).output(&mut to);
            let run = if order == Bits::Reproducible { run.reproducible() } else { run };
            Ok(shaped(run, columns, n, is_reversed).inclusive()?)
        })?;
        let h = self.stream.clone_dtoh(&to)?;
        let mut state = 0.0_f32;
        let is_right = places(n, is_reversed).enumerate().all(|(index, place)| {
            state = if index % columns == 0 { b[place] } else { a[place] * state + b[place] };
            (h[place] - state).abs() <= 1e-4 * state.abs().max(1.0)
        });
        self.report(name, n, 12 * n, time, is_right)
    }

    fn sums_of_words(&mut self, name: &str, n: usize, columns: usize, is_reversed: bool) -> Outcome<()> {
        let sums = sums(ElementType::I32, ElementType::I32)?;
        let x: Vec<i32> = (0..n).map(|i| (i * 7919 % 1009) as i32 - 300).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<i32>(n)?;
        let time = self.time(|| {
            let run = self.scanner.run(&self.stream, sums).input(&from).output(&mut to);
            Ok(shaped(run, columns, n, is_reversed).inclusive()?)
        })?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut sum = 0_i32;
        let is_right = places(n, is_reversed).enumerate().all(|(index, place)| {
            sum = if index % columns == 0 { x[place] } else { sum.wrapping_add(x[place]) };
            y[place] == sum
        });
        self.report(name, n, 8 * n, time, is_right)
    }

    /// Whole numbers of a walk, exact in f32, each rounded once.
    fn sums_of_floats<T: Number>(&mut self, name: &str, n: usize, columns: usize, order: Bits) -> Outcome<()> {
        let sums = sums(T::ELEMENT, T::ELEMENT)?;
        let x: Vec<T> = (0..n).map(|i| T::of([1.0, -2.0, 3.0, -2.0][(i ^ i >> 9) % 4])).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<T>(n)?;
        let time = self.time(|| {
            let run = self.scanner.run(&self.stream, sums).input(&from).output(&mut to);
            let run = if order == Bits::Reproducible { run.reproducible() } else { run };
            Ok(shaped(run, columns, n, false).inclusive()?)
        })?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut sum = 0.0_f32;
        let is_right = (0..n).all(|place| {
            let value = x[place].value();
            sum = if place % columns == 0 { value } else { sum + value };
            y[place].value() == T::of(sum).value()
        });
        self.report(name, n, 2 * size_of::<T>() * n, time, is_right)
    }

    /// Segments whose lengths are drawn from a Pareto distribution of shape 1.5.
    fn by_offsets(&mut self, name: &str, n: usize, mean_length: f64) -> Outcome<()> {
        let sums = sums(ElementType::F32, ElementType::F32)?;
        let x: Vec<f32> = (0..n).map(|i| [1.0, -2.0, 3.0, -2.0][(i ^ i >> 9) % 4]).collect();
        let mut offsets = vec![0_u32];
        let mut draw = 0x9e37_79b9_7f4a_7c15_u64;
        while (offsets[offsets.len() - 1] as usize) < n {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((draw >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            let length = (mean_length / 3.0 * uniform.powf(-1.0 / 1.5)).round().min(n as f64) as usize;
            offsets.push((offsets[offsets.len() - 1] as usize + length).min(n) as u32);
        }
        let (from, from_offsets) = (self.stream.clone_htod(&x)?, self.stream.clone_htod(&offsets)?);
        let mut to = self.stream.alloc_zeros::<f32>(n)?;
        let time = self.time(|| {
            let run = self.scanner.run(&self.stream, sums).input(&from).output(&mut to).offsets(&from_offsets);
            Ok(run.inclusive()?)
        })?;
        self.scanner.check(&self.stream)?;
        let y = self.stream.clone_dtoh(&to)?;
        let is_right = offsets.windows(2).all(|ends| {
            let mut sum = 0.0_f32;
            (ends[0] as usize..ends[1] as usize).all(|place| {
                sum += x[place];
                y[place] == sum
            })
        });
        self.report(name, n, 8 * n + 4 * offsets.len(), time, is_right)
    }

    fn by_key(&mut self, name: &str, n: usize, run_length: usize) -> Outcome<()> {
        let sums = sums(ElementType::I32, ElementType::I32)?;
        let x: Vec<i32> = (0..n).map(|i| (i * 7919 % 1009) as i32 - 300).collect();
        let keys: Vec<i32> = (0..n).map(|i| (i / run_length) as i32).collect();
        let (from, from_keys) = (self.stream.clone_htod(&x)?, self.stream.clone_htod(&keys)?);
        let mut to = self.stream.alloc_zeros::<i32>(n)?;
        let time = self.time(|| {
            let run = self.scanner.run(&self.stream, sums).input(&from).output(&mut to).by_key(&from_keys);
            Ok(run.inclusive()?)
        })?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut sum = 0_i32;
        let is_right = (0..n).all(|place| {
            sum = if place % run_length == 0 { x[place] } else { sum.wrapping_add(x[place]) };
            y[place] == sum
        });
        self.report(name, n, 12 * n, time, is_right)
    }

    fn products(&mut self, name: &str, n: usize) -> Outcome<()> {
        let matrices = matrices()?;
        let x: Vec<Matrix> = (0..n).map(|i| Matrix([1, i as u32 % 7, 0, 1])).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<Matrix>(n)?;
        let time =
            self.time(|| Ok(self.scanner.run(&self.stream, matrices).input(&from).output(&mut to).inclusive()?))?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut product = Matrix([1, 0, 0, 1]);
        let is_right = (0..n).all(|place| {
            product = product.times(x[place]);
            y[place] == product
        });
        self.report(name, n, 32 * n, time, is_right)
    }

    /// Quarter turns and steps of whole numbers, so that all is exact.
    fn planar(&mut self, name: &str, n: usize) -> Outcome<()> {
        let planar = planar_recurrence()?;
        let turns = [[1.0, 0.0, 0.0, 1.0], [0.0, -1.0, 1.0, 0.0], [0.0, 1.0, -1.0, 0.0], [-1.0, 0.0, 0.0, -1.0]];
        let linear: Vec<Linear> = (0..n).map(|i| Linear(turns[(i ^ i >> 7) % 4])).collect();
        let steps: Vec<Point> = (0..n).map(|i| Point([(i % 5) as f32 - 2.0, (i % 3) as f32 - 1.0])).collect();
        let (a, b) = (self.stream.clone_htod(&linear)?, self.stream.clone_htod(&steps)?);
        let mut h = self.stream.alloc_zeros::<Point>(n)?;
        let time =
            self.time(|| Ok(self.scanner.run(&self.stream, planar).input(&b).input(&a).output(&mut h).inclusive()?))?;
        let reached = self.stream.clone_dtoh(&h)?;
        let mut point = Point::default();
        let is_right = (0..n).all(|place| {
            let (Linear([p, q, r, s]), Point([x, y]), Point([dx, dy])) = (linear[place], point, steps[place]);
            point = Point([p * x + q * y + dx, r * x + s * y + dy]);
            reached[place] == point
        });
        self.report(name, n, 32 * n, time, is_right)
    }

    fn widening(&mut self, name: &str, n: usize) -> Outcome<()> {
        let x: Vec<u8> = (0..n).map(|i| (i * 7919 % 251) as u8).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<u32>(n)?;
        let time = self.time(|| Ok(self.scanner.inclusive(&self.stream, Operator::Sum, &from, &mut to)?))?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut sum = 0_u32;
        let is_right = (0..n).all(|place| {
            sum = sum.wrapping_add(x[place].into());
            y[place] == sum
        });
        self.report(name, n, 5 * n, time, is_right)
    }

    /// Whole numbers of a walk, exact in f32, each rounded to f16 once.
    fn halves(&mut self, name: &str, n: usize) -> Outcome<()> {
        let x: Vec<f16> = (0..n).map(|i| f16::from_f32([1.0, -2.0, 3.0, -2.0][(i ^ i >> 9) % 4])).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<f16>(n)?;
        let time = self.time(|| Ok(self.scanner.inclusive(&self.stream, Operator::Sum, &from, &mut to)?))?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut sum = 0.0_f32;
        let is_right = (0..n).all(|place| {
            sum += x[place].to_f32();
            y[place] == f16::from_f32(sum)
        });
        self.report(name, n, 4 * n, time, is_right)
    }

    fn plain(&mut self, name: &str, n: usize) -> Outcome<()> {
        let x: Vec<i32> = (0..n).map(|i| (i * 7919 % 1009) as i32 - 300).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<i32>(n)?;
        let time = self.time(|| Ok(self.scanner.inclusive(&self.stream, Operator::Sum, &from, &mut to)?))?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut sum = 0_i32;
        let is_right = (0..n).all(|place| {
            sum = sum.wrapping_add(x[place]);
            y[place] == sum
        });
        self.report(name, n, 8 * n, time, is_right)
    }
}

impl Bench {
    /// Whole numbers of walks, exact in f32; those of bf16 are rounded once.
    fn down_columns<T: Number>(&mut self, name: &str, n: usize, columns: usize) -> Outcome<()> {
        let sums = sums(T::ELEMENT, T::ELEMENT)?;
        let x: Vec<T> = (0..n).map(|i| T::of([1.0, -2.0, 3.0, -2.0][(i / columns + i % columns) % 4])).collect();
        let from = self.stream.clone_htod(&x)?;
        let mut to = self.stream.alloc_zeros::<T>(n)?;
        let time = self.time(|| {
            let run = self.scanner.run(&self.stream, sums).input(&from).output(&mut to);
            Ok(run.columns(columns).inclusive()?)
        })?;
        let y = self.stream.clone_dtoh(&to)?;
        let mut states = vec![0.0_f32; columns];
        let is_right = x.chunks(columns).zip(y.chunks(columns)).all(|(x, y)| {
            states.iter_mut().zip(x.iter().zip(y)).all(|(sum, (x, y))| {
                *sum += x.value();
                y.value() == T::of(*sum).value()
            })
        });
        self.report(name, n, 2 * size_of::<T>() * n, time, is_right)
    }

    /// The linear recurrence of (batch, time, channel) along the time.
    fn along_time(&mut self, name: &str, [batch, time, channels]: [usize; 3]) -> Outcome<()> {
        let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
        let n = batch * time * channels;
        let a: Vec<f32> = (0..n).map(|i| [0.5, -0.5, 0.25, 1.0][(i ^ i >> 7) % 4]).collect();
        let b: Vec<f32> = (0..n).map(|i| (i % 5) as f32 - 2.0).collect();
        let (from_a, from_b) = (self.stream.clone_htod(&a)?, self.stream.clone_htod(&b)?);
        let mut to = self.stream.alloc_zeros::<f32>(n)?;
        let microseconds = self.time(|| {
            let run = self.scanner.run(&self.stream, recurrence).input(&from_a).input(&from_b).output(&mut to);
            Ok(run.axis(time, channels).inclusive()?)
        })?;
        let h = self.stream.clone_dtoh(&to)?;
        let mut states = vec![0.0_f32; channels];
        let is_right = (0..n).all(|place| {
            if place % (time * channels) < channels {
                states[place % channels] = 0.0;
            }
            let state = &mut states[place % channels];
            *state = a[place] * *state + b[place];
            (h[place] - *state).abs() <= 1e-4 * state.abs().max(1.0)
        });
        self.report(name, n, 12 * n, microseconds, is_right)
    }
}

/// A float that is summed in f32.
trait Number: ArrayElement + DeviceRepr + ValidAsZeroBits {
    const ELEMENT: ElementType;
    fn of(value: f32) -> Self;
    fn value(self) -> f32;
}

impl Number for f32 {
    const ELEMENT: ElementType = ElementType::F32;
    fn of(value: f32) -> Self {
        value
    }
    fn value(self) -> f32 {
        self
    }
}

impl Number for bf16 {
    const ELEMENT: ElementType = ElementType::BF16;
    fn of(value: f32) -> Self {
        Self::from_f32(value)
    }
    fn value(self) -> f32 {
        self.to_f32()
    }
}

fn places(n: usize, is_reversed: bool) -> impl Iterator<Item = usize> {
    (0..n).map(move |index| if is_reversed { n - 1 - index } else { index })
}

/// One row is no segment.
fn shaped(run: Run<'_>, columns: usize, n: usize, is_reversed: bool) -> Run<'_> {
    let run = if columns < n { run.rows(columns) } else { run };
    if is_reversed { run.reversed() } else { run }
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let Err(error) = toolkit::probe_driver() {
        println!("not measured: {error}");
        return Ok(());
    }
    let n: usize = words.first().map_or(Ok(1 << 28), |word| word.parse())?;
    let wanted = words.get(1).cloned().unwrap_or_default();
    let context = CudaContext::new(0)?;
    // SAFETY: one stream alone is used, and arrays are dropped behind a download, which waits for it.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream()?;
    let mut scanner = Scanner::new(&context)?;
    if let [_, _, strategy, vt, block_threads, ..] = &words[..] {
        let config = ScanConfig { vt: vt.parse()?, block_threads: block_threads.parse()?, ..ScanConfig::default() };
        scanner = scanner.with_strategy(strategy.parse::<Strategy>()?).with_config(config);
    }
    println!("{}, n = {n}", context.name()?);
    println!(
        "{:34} {:>11} {:>11} {:>12} {:>7} {:>7} {:>7}",
        "", "elements", "moved", "on a stream", "stream", "graph", "cold"
    );
    let overwritten = stream.alloc_zeros(OVERWRITTEN_BYTES)?;
    let mut bench = Bench { stream, overwritten, scanner, has_failed: false };
    for (name, case) in cases() {
        if name.contains(&wanted) {
            case(&mut bench, &name, n)?;
        }
    }
    if bench.has_failed { Err("a result is wrong".into()) } else { Ok(()) }
}

type Case = Box<dyn Fn(&mut Bench, &str, usize) -> Outcome<()>>;

fn by_rows<T: Number>(columns: usize) -> (String, Case) {
    let case = move |bench: &mut Bench, name: &str, n: usize| {
        bench.sums_of_floats::<T>(name, n / columns * columns, columns, Bits::AsTheyCome)
    };
    (format!("sum of {} by rows of {columns}", T::ELEMENT), Box::new(case))
}

fn by_columns<T: Number>(columns: usize) -> (String, Case) {
    let case =
        move |bench: &mut Bench, name: &str, n: usize| bench.down_columns::<T>(name, n / columns * columns, columns);
    (format!("sum of {} by columns of {columns}", T::ELEMENT), Box::new(case))
}

/// Each by the name under which it is reported.
fn cases() -> Vec<(String, Case)> {
    let mut cases: Vec<(String, Case)> = Vec::new();
    let mut add = |name: &str, case: Case| cases.push((name.to_owned(), case));
    use Bits::{AsTheyCome, Reproducible};
    add("sum of i32", Box::new(|bench, name, n| bench.plain(name, n)));
    add("sum of i32 (as defined)", Box::new(|bench, name, n| bench.sums_of_words(name, n, n, false)));
    add("reverse sum of i32", Box::new(|bench, name, n| bench.sums_of_words(name, n, n, true)));
    add("sum of u8 in u32", Box::new(|bench, name, n| bench.widening(name, n)));
    add("sum of f16 in f32", Box::new(|bench, name, n| bench.halves(name, n)));
    add("recurrence, f32", Box::new(|bench, name, n| bench.recurrence(name, n, n, false, AsTheyCome)));
    add("recurrence, f32, reverse", Box::new(|bench, name, n| bench.recurrence(name, n, n, true, AsTheyCome)));
    add("sum of f32", Box::new(|bench, name, n| bench.sums_of_floats::<f32>(name, n, n, AsTheyCome)));
    add("sum of f32, reproducible", Box::new(|bench, name, n| bench.sums_of_floats::<f32>(name, n, n, Reproducible)));
    add("recurrence, f32, reproducible", Box::new(|bench, name, n| bench.recurrence(name, n, n, false, Reproducible)));
    for columns in [300, 1000, 4100, 8192, 20_000, 65536] {
        let name = format!("recurrence by rows of {columns}");
        add(
            &name,
            Box::new(move |bench, name, n| bench.recurrence(name, n / columns * columns, columns, false, AsTheyCome)),
        );
    }
    for run_length in [1, 61, 100_000] {
        let name = format!("sum of i32 by key, runs of {run_length}");
        add(&name, Box::new(move |bench, name, n| bench.by_key(name, n, run_length)));
    }
    for mean_length in [8, 100, 10_000] {
        let name = format!("sum of f32 by offsets, mean {mean_length}");
        add(&name, Box::new(move |bench, name, n| bench.by_offsets(name, n, f64::from(mean_length))));
    }
    for columns in [1, 3, 32, 128, 512, 1000, 4096, 65536, 1 << 20, 1 << 26] {
        let (name, case) = by_rows::<f32>(columns);
        add(&name, case);
    }
    for columns in [1, 32, 512, 4096, 1 << 20, 1 << 26] {
        let (name, case) = by_rows::<bf16>(columns);
        add(&name, case);
    }
    // In rows, where there is one column.
    for columns in [1, 2, 3, 4, 7, 8, 16, 32, 64, 128, 256, 1000, 1024, 65536, 1 << 20] {
        let (name, case) = by_columns::<f32>(columns);
        add(&name, case);
    }
    for columns in [2, 4, 8, 32, 64, 256, 1024, 65536, 1 << 20] {
        let (name, case) = by_columns::<bf16>(columns);
        add(&name, case);
    }
    add("recurrence, (8, 8192, 1024)", Box::new(|bench, name, _| bench.along_time(name, [8, 8192, 1024])));
    add("products of 2 x 2 matrices", Box::new(|bench, name, n| bench.products(name, n / 4)));
    add("recurrence of the plane", Box::new(|bench, name, n| bench.planar(name, n / 4)));
    cases
}
