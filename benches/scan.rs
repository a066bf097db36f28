//! Regression checks while working on a kernel: `cargo bench`.
//!
//! On a GPU the time is that between two CUDA events around as many launches as criterion asks for. Where no
//! GPU is, the same scans run on the CPU device, and the time is its executor's: good for seeing a change of
//! the executor, and no statement about a GPU. Criterion keeps sums, flushes no cache and knows no clock, so
//! published figures come from `lookback sweep` and not from here.

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BenchmarkId, Criterion, Throughput};
use lookback::element::{ElementType, Instance, Operator};
use lookback::strategy::tuning::{Resolved, Tuning};
use lookback::strategy::{Mode, ScanConfig, Strategy, StrategyChoice};
use std::time::Duration;

const STRATEGIES: [StrategyChoice; 5] = [
    StrategyChoice::Auto,
    StrategyChoice::Named(Strategy::ReduceThenScan),
    StrategyChoice::Named(Strategy::Chained),
    StrategyChoice::Named(Strategy::Lookback),
    StrategyChoice::Named(Strategy::Lookahead),
];
const SEED: u64 = 42;

/// Nanoseconds that the device took, reported by the benchmark itself.
struct DeviceTime {
    wall_time: WallTime,
}

impl Measurement for DeviceTime {
    type Intermediate = ();
    type Value = f64;

    fn start(&self) {}

    fn end(&self, (): ()) -> f64 {
        // Every benchmark here measures by `iter_custom`, which never asks for this.
        0.0
    }

    fn add(&self, left: &f64, right: &f64) -> f64 {
        left + right
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, nanoseconds: &f64) -> f64 {
        *nanoseconds
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        // It takes nanoseconds, too.
        self.wall_time.formatter()
    }
}

fn instance() -> Instance {
    Instance::new(ElementType::I32, Operator::Sum).expect("sums are defined on numbers")
}

/// What `lookback sweep` and `lookback compare` run, too, where nobody says anything else.
fn resolved(choice: StrategyChoice, n: u64, tuning: &Tuning) -> Resolved {
    match choice {
        StrategyChoice::Auto => tuning.resolve(instance(), n),
        StrategyChoice::Named(strategy) => {
            Resolved { strategy, config: ScanConfig::suggested(strategy, instance().element().bytes(), n) }
        }
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .with_measurement(DeviceTime { wall_time: WallTime })
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    if !on_gpu(&mut criterion) {
        on_cpu(&mut criterion);
    }
    criterion.final_summary();
}

/// Whether there is a GPU that the scans could run on.
#[cfg(feature = "cuda")]
fn on_gpu(criterion: &mut Criterion<DeviceTime>) -> bool {
    use lookback::lab::cuda::timing::GpuLaboratory;
    use lookback::lab::measure::point::{Entry, Offsets, Point, Subject};
    use lookback::lab::measure::run::{Laboratory, OpenedPoint};

    let mut laboratory = match GpuLaboratory::open(0) {
        Ok(laboratory) => laboratory,
        Err(error) => {
            eprintln!("{error}\nrunning on the CPU device instead");
            return false;
        }
    };
    let tuning = Tuning::committed(laboratory.machine().tuning_gpu());
    for n in [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28] {
        let scans = STRATEGIES.map(|choice| {
            let (Resolved { strategy, config }, mode) = (resolved(choice, n, &tuning), Mode::Inclusive);
            match choice {
                StrategyChoice::Auto => Subject::Auto { strategy, mode, config },
                StrategyChoice::Named(_) => Subject::Scan { strategy, mode, config },
            }
        });
        let subjects = [Subject::Memcpy].into_iter().chain(scans);
        let entries = subjects.map(|subject| Entry { subject, figures: Vec::new() }).collect();
        let point = Point { workload: instance().into(), n, offsets: Offsets::default(), entries };
        match laboratory.open(&point, SEED) {
            Ok(OpenedPoint::Ready(_)) => {}
            Ok(OpenedPoint::DoesNotFit(why)) => {
                eprintln!("n = {n} is left out: {why}");
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let mut group = criterion.benchmark_group("gpu");
        group.throughput(Throughput::Bytes(2 * point.input_bytes()));
        for (index, entry) in point.entries.iter().enumerate() {
            match laboratory.verify(index) {
                Ok(Ok(verification)) => assert!(verification.passed(), "{} is wrong", entry.subject.name()),
                Ok(Err(why)) => panic!("{}: {why:?}", entry.subject.name()),
                Err(error) => panic!("{error}"),
            }
            group.bench_function(BenchmarkId::new(entry.subject.name(), n), |bencher| {
                bencher.iter_custom(|runs| laboratory.time_runs(index, runs).unwrap_or_else(|error| panic!("{error}")));
            });
        }
        group.finish();
    }
    true
}

#[cfg(not(feature = "cuda"))]
fn on_gpu(_: &mut Criterion<DeviceTime>) -> bool {
    false
}

#[cfg(feature = "cpu")]
fn on_cpu(criterion: &mut Criterion<DeviceTime>) {
    use lookback::lab::cpu_device::{CpuDevice, CpuSettings};
    use lookback::lab::dataset::Dataset;
    use lookback::lab::device::{Device, RunSettings};
    use lookback::strategy::plan::ScanRequest;
    use lookback::strategy::tuning::Gpu;

    let mut device = CpuDevice::new(CpuSettings::default());
    let tuning = Tuning::committed(Gpu::H100);
    let mut group = criterion.benchmark_group("cpu device");
    for n in [1 << 12, 1 << 16] {
        device.load(&Dataset::random(instance(), n, SEED)).unwrap_or_else(|error| panic!("{error}"));
        group.throughput(Throughput::Elements(n));
        for choice in STRATEGIES {
            let Resolved { strategy, config } = resolved(choice, n, &tuning);
            let request = ScanRequest::aligned(instance(), strategy, Mode::Inclusive, config, n);
            group.bench_function(BenchmarkId::new(choice.name(), n), |bencher| {
                bencher.iter_custom(|runs| {
                    let settings = RunSettings { seed: SEED, ..RunSettings::default() };
                    let mut nanoseconds = 0.0;
                    for _ in 0..runs {
                        let outcome = device.run(&request, &settings).unwrap_or_else(|error| panic!("{error}"));
                        assert!(outcome.verification.passed(), "{strategy} is wrong");
                        nanoseconds += outcome.executor_time.map_or(0.0, |time| time.as_nanos() as f64);
                    }
                    nanoseconds
                });
            });
        }
    }
    group.finish();
}

#[cfg(not(feature = "cpu"))]
fn on_cpu(_: &mut Criterion<DeviceTime>) {
    eprintln!("neither a GPU nor a CPU device: nothing to measure");
}
