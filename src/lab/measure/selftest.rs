//! The timer, measured: kernels of known time must be measured as that, equal kernels as equal, and a kernel
//! that does 5 % more as slower. A harness that fails this has nothing to say about scans.

use super::clocks::Clocks;
use super::point::{Entry, Offsets, Point, Subject};
use super::run::{Laboratory, NotMeasured, OpenedPoint};
use super::sampling::{Compared, Figure, Measured, SamplingSettings, sample_figure};
use super::stopping::StoppingRule;
use crate::element::{ElementType, Instance, Operator};
use crate::lab::device::DeviceError;
use crate::lab::statistics::{Difference, Ratio, Summary};
use std::fmt::Write as _;
use std::time::Duration;

/// Durations of the kernel of known time; 0 is a kernel that looks at the clock and ends.
const SPINS_NS: [u64; 11] = [0, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 1_000_000, 10_000_000];
/// From this duration on the error must stay below [`LARGEST_ERROR`]; below it the offset is printed.
const JUDGED_FROM_NS: u64 = 100_000;
const LARGEST_ERROR: f64 = 0.03;
/// How often the copies are compared; every time must come out right.
const RUNS: u64 = 10;
/// Elements of the copies: 256 MiB, far more than an L2, so that 5 % more bytes take 5 % more time.
const COPY_ELEMENTS: u64 = 1 << 26;
const THRESHOLD: f64 = 0.01;
const FIGURES: [Figure; 3] = [Figure::Cold, Figure::Stream, Figure::Graph];

/// What the self-test found.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfTest {
    /// The tables.
    pub text: String,
    /// Whether everything was as it must be.
    pub passed: bool,
}

fn settings() -> SamplingSettings {
    SamplingSettings {
        rule: StoppingRule { minimum_samples: 20, maximum_samples: 60, relative_standard_error: 0.003 },
        sample_time: Duration::from_millis(1),
        warm_up: Duration::from_millis(20),
        time_out_per_subject: Duration::from_secs(2),
    }
}

/// The subjects with all figures, and an empty frame behind them.
fn point(n: u64, subjects: impl IntoIterator<Item = Subject>) -> Point {
    let instance = Instance::new(ElementType::I32, Operator::Sum).expect("sums are defined on numbers");
    let mut entries: Vec<Entry> =
        subjects.into_iter().map(|subject| Entry { subject, figures: FIGURES.to_vec() }).collect();
    entries.push(Entry { subject: Subject::EmptyFrame, figures: vec![Figure::Cold] });
    Point { workload: instance.into(), n, offsets: Offsets::default(), entries }
}

/// Runs all tests.
///
/// # Errors
/// When the device failed.
pub fn selftest(laboratory: &mut dyn Laboratory, seed: u64) -> Result<SelfTest, DeviceError> {
    let mut test = SelfTest { text: String::new(), passed: true };
    laboratory.warm_up(Duration::from_millis(300))?;
    let mut clocks = Clocks::default();
    known_times(laboratory, seed, &mut clocks, &mut test)?;
    copies(laboratory, seed, &mut clocks, &mut test)?;
    laboratory.close();
    Ok(test)
}

fn known_times(
    laboratory: &mut dyn Laboratory,
    seed: u64,
    clocks: &mut Clocks,
    test: &mut SelfTest,
) -> Result<(), DeviceError> {
    let point = point(1024, SPINS_NS.map(|nanoseconds| Subject::Spin { nanoseconds }));
    let Some(Samples { figures, empty_frame_ns }) = sample(laboratory, &point, seed, clocks, test)? else {
        return Ok(());
    };
    let _ = writeln!(
        test.text,
        "The queue of a cold sample with nothing between its events: {:.2} microseconds, taken off every cold time.\n",
        empty_frame_ns / 1000.0
    );
    let _ = writeln!(test.text, "A kernel that runs for a known time: measured minus known, in microseconds");
    let _ = writeln!(test.text, "{:>12} {:>20} {:>20} {:>20}", "known", "cold", "stream", "graph");
    for (position, known_ns) in SPINS_NS.into_iter().enumerate() {
        let _ = write!(test.text, "{:>9} us", known_ns / 1000);
        for samples in &figures {
            let Some(summary) = samples.get(position).and_then(|samples| Summary::of(samples)) else {
                test.passed = false;
                let _ = write!(test.text, " {:>20}", "no samples");
                continue;
            };
            let error = summary.median - known_ns as f64;
            let relative = error / known_ns as f64;
            let mark = if known_ns < JUDGED_FROM_NS {
                String::new()
            } else if relative.abs() <= LARGEST_ERROR {
                format!(" {:+.2}% ok", 100.0 * relative)
            } else {
                test.passed = false;
                format!(" {:+.2}% BAD", 100.0 * relative)
            };
            let _ = write!(test.text, " {:>20}", format!("{:+.2}{mark}", error / 1000.0));
        }
        test.text.push('\n');
    }
    let _ = writeln!(
        test.text,
        "From {} us on the error must be below {:.0} %; below that it is the constant offset of each figure.\n",
        JUDGED_FROM_NS / 1000,
        100.0 * LARGEST_ERROR
    );
    Ok(())
}

fn copies(
    laboratory: &mut dyn Laboratory,
    seed: u64,
    clocks: &mut Clocks,
    test: &mut SelfTest,
) -> Result<(), DeviceError> {
    let point = point(COPY_ELEMENTS, [Subject::Copy16, Subject::Copy16Again, Subject::Copy16Slower]);
    let _ = writeln!(test.text, "One copy kernel under two names, and one that moves 5 % more bytes ({RUNS} runs)");
    let _ = writeln!(test.text, "{:>4} {:<7} {:>28} {:>28}", "run", "figure", "the same kernel", "5 % more bytes");
    let mut right = 0;
    let mut judged = 0;
    for run in 0..RUNS {
        let Some(Samples { figures, .. }) = sample(laboratory, &point, seed.wrapping_add(run), clocks, test)? else {
            return Ok(());
        };
        for (figure, samples) in FIGURES.into_iter().zip(&figures) {
            let judge = |other: usize, expected: Difference| {
                let ratio = Ratio::bootstrap(samples.first()?, samples.get(other)?)?;
                let difference = ratio.difference(THRESHOLD);
                Some((format!("{:.4} {}", ratio.ratio, difference.name()), difference == expected))
            };
            let mut cells = Vec::new();
            for (other, expected) in [(1, Difference::Same), (2, Difference::Slower)] {
                let (cell, is_right) = judge(other, expected).unwrap_or(("too few samples".to_owned(), false));
                judged += 1;
                right += usize::from(is_right);
                cells.push(if is_right { format!("{cell} ok") } else { format!("{cell} BAD") });
            }
            let _ = writeln!(test.text, "{:>4} {:<7} {:>28} {:>28}", run + 1, figure.name(), cells[0], cells[1]);
        }
    }
    test.passed &= right == judged;
    let _ = writeln!(test.text, "{right} of {judged} comparisons came out as they must.");
    Ok(())
}

/// What was sampled.
struct Samples {
    /// Of each figure, of each subject.
    figures: Vec<Vec<Vec<f64>>>,
    /// The median of the empty frame, which was taken off the cold samples.
    empty_frame_ns: f64,
}

/// Samples of each figure and subject; `None`, with a line in the text, where a subject does not work.
fn sample(
    laboratory: &mut dyn Laboratory,
    point: &Point,
    seed: u64,
    clocks: &mut Clocks,
    test: &mut SelfTest,
) -> Result<Option<Samples>, DeviceError> {
    let mut fail = |what: String| {
        test.passed = false;
        let _ = writeln!(test.text, "FAILED: {what}");
    };
    match laboratory.open(point, seed)? {
        OpenedPoint::Ready(opened) => {
            for (entry, opened) in point.entries.iter().zip(opened) {
                if let Err(NotMeasured::Unsupported(why) | NotMeasured::NotLaunchable(why)) = opened {
                    fail(format!("{}: {why}", entry.subject.name()));
                    return Ok(None);
                }
            }
        }
        OpenedPoint::DoesNotFit(why) => {
            fail(why);
            return Ok(None);
        }
    }
    for (index, entry) in point.entries.iter().enumerate() {
        match laboratory.verify(index)? {
            Ok(verification) => {
                if let Some(complaint) = verification.complaint() {
                    fail(format!("{}: {complaint}", entry.subject.name()));
                    return Ok(None);
                }
            }
            Err(NotMeasured::Unsupported(why) | NotMeasured::NotLaunchable(why)) => {
                fail(format!("{}: {why}", entry.subject.name()));
                return Ok(None);
            }
        }
    }
    let frame = point.entries.len() - 1;
    let mut samples = Samples { figures: Vec::new(), empty_frame_ns: 0.0 };
    for figure in FIGURES {
        let is_cold = figure == Figure::Cold;
        let subjects: Vec<usize> = (0..frame + usize::from(is_cold)).collect();
        let compared = Compared {
            figure,
            subjects: &subjects,
            hint_nanoseconds: &[],
            frame: is_cold.then_some(frame),
            seed: seed ^ figure as u64,
        };
        let measured = sample_figure(laboratory.sampler(), &compared, &settings(), clocks)?;
        let mut sampled: Vec<Vec<f64>> = measured
            .into_iter()
            .map(|measured| match measured {
                Measured::Series(series) => series.accepted_nanoseconds,
                Measured::Unavailable(_) => Vec::new(),
            })
            .collect();
        if is_cold && let Some(summary) = sampled.pop().and_then(|frame| Summary::of(&frame)) {
            samples.empty_frame_ns = summary.median;
            sampled.iter_mut().flatten().for_each(|sample| *sample -= summary.median);
        }
        samples.figures.push(sampled);
    }
    Ok(Some(samples))
}
