use lookback::cpu::{CpuDevice, CpuSettings};
use lookback::dataset::Dataset;
use lookback::device::{Device, RunSettings};
use lookback::element::{ElementType, Instance, Operator};
use lookback::plan::ScanRequest;
use lookback::strategy::{Mode, ScanConfig, Strategy};
#[test]
fn smoke() {
    for &(e, o) in &[(ElementType::U32, Operator::Sum), (ElementType::F64, Operator::Sum), (ElementType::IndexInterval, Operator::Intervals), (ElementType::AffineMap, Operator::Affine)] {
        let instance = Instance::new(e, o).unwrap();
        for &strategy in Strategy::ALL {
            for n in [0u64, 1, 2, 3, 5, 31, 33, 64, 100, 1000, 5000] {
                let dataset = Dataset::random(instance, n, 42);
                for &mode in Mode::ALL {
                    for in_place in [false, true] {
                    let request = ScanRequest { instance, strategy, mode, config: ScanConfig { vt: 4, block_threads: 64, ..Default::default() }, n, in_place, input_offset: 0, output_offset: 0 };
                    let mut device = CpuDevice::new(CpuSettings { check_bounds: true, ..Default::default() });
                    device.load(&dataset).unwrap();
                    match device.run(&request, &RunSettings { seed: 1, samples: 0 }) {
                        Ok(out) => { if !out.verification.passed() { println!("WRONG {instance} {strategy} {mode} {n} in_place={in_place} {:?}", out.verification) } }
                        Err(error) => if mode != Mode::InclusiveMinusInput { println!("ERR {instance} {strategy} {mode} {n} {error}") },
                    }
                    }
                }
            }
        }
    }
}
#[test]
fn speed() {
    for &(e, o) in &[(ElementType::U32, Operator::Sum), (ElementType::F64, Operator::Sum), (ElementType::IndexInterval, Operator::Intervals), (ElementType::AffineMap, Operator::Affine), (ElementType::U8, Operator::Sum)] {
        let instance = Instance::new(e, o).unwrap();
        let n = 1 << 22;
        let dataset = Dataset::random(instance, n, 42);
        for vt in [16, 32] {
        let request = ScanRequest { instance, strategy: Strategy::Lookback, mode: Mode::Inclusive, config: ScanConfig { vt, block_threads: 256, ..Default::default() }, n, in_place: false, input_offset: 0, output_offset: 0 };
        let mut device = CpuDevice::new(CpuSettings::default());
        device.load(&dataset).unwrap();
        let out = device.run(&request, &RunSettings { seed: 1, samples: 0 }).unwrap();
        println!("{instance} vt {vt} {} {:.1} M/s {:?}", out.verification.passed(), n as f64 / out.executor_time.unwrap().as_secs_f64() / 1e6, out.counters);
        }
    }
}
