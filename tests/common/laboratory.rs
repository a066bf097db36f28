//! A laboratory without a GPU: the times of its subjects are made up.

use super::{H100, machine};
use lookback::lab::device::DeviceError;
use lookback::lab::measure::environment::Machine;
use lookback::lab::measure::point::{Point, Subject};
use lookback::lab::measure::run::{Laboratory, NotMeasured, OpenedPoint, SubjectFacts};
use lookback::lab::measure::sampling::{Figure, Readiness, Sample, Sampler};
use lookback::lab::verify::Verification;
use std::time::Duration;

/// What a test makes up.
#[derive(Clone, Copy)]
pub struct MadeUp {
    pub peers: &'static [&'static str],
    /// Nanoseconds of one run in a sample with this number.
    pub nanoseconds: fn(&Point, &Subject, Figure, u64) -> f64,
    /// Whether a subject can be measured at a point.
    pub facts: fn(&Point, &Subject) -> Result<SubjectFacts, NotMeasured>,
    /// Whether its third element is wrong.
    pub is_wrong: fn(&Subject) -> bool,
}

/// It goes by what a test makes up, and no peer can be captured into a graph.
pub struct MockLaboratory {
    made_up: MadeUp,
    point: Option<Point>,
    now: Duration,
    samples: u64,
    fails_at: usize,
    /// Scans of every point that was opened.
    pub opened: Vec<usize>,
    pub compiled_points: usize,
}

impl MockLaboratory {
    pub fn new(made_up: MadeUp) -> Self {
        Self::failing_at(usize::MAX, made_up)
    }

    /// The device fails when so many points were opened.
    pub fn failing_at(fails_at: usize, made_up: MadeUp) -> Self {
        let (now, opened) = (Duration::ZERO, Vec::new());
        Self { made_up, point: None, now, samples: 0, fails_at, opened, compiled_points: 0 }
    }

    fn point(&self) -> &Point {
        self.point.as_ref().expect("a point is open")
    }

    fn subject(&self, index: usize) -> &Subject {
        &self.point().entries[index].subject
    }
}

impl Sampler for MockLaboratory {
    type Error = DeviceError;

    fn maximum_runs(&self, _: usize, figure: Figure) -> u32 {
        if matches!(figure, Figure::Cold | Figure::Latency) { 1 } else { 1000 }
    }

    fn prepare(&mut self, subject: usize, figure: Figure, _: u32) -> Result<Readiness, DeviceError> {
        Ok(match self.subject(subject) {
            Subject::Peer { .. } if figure == Figure::Graph => Readiness::Unavailable("it waits".into()),
            _ => Readiness::Ready,
        })
    }

    fn sample(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Sample, DeviceError> {
        self.samples += 1;
        let nanoseconds = (self.made_up.nanoseconds)(self.point(), self.subject(subject), figure, self.samples);
        self.now += Duration::from_nanos((nanoseconds * f64::from(runs)) as u64);
        Ok(Sample { nanoseconds, clock_megahertz: Some(1980.0), is_late: false })
    }

    fn now(&self) -> Duration {
        self.now
    }
}

impl Laboratory for MockLaboratory {
    fn machine(&self) -> Machine {
        machine(H100)
    }

    fn peers(&self) -> Vec<String> {
        self.made_up.peers.iter().map(ToString::to_string).collect()
    }

    fn compile_ahead(&mut self, points: &[Point]) {
        self.compiled_points += points.len();
    }

    fn warm_up(&mut self, _: Duration) -> Result<(), DeviceError> {
        Ok(())
    }

    fn open(&mut self, point: &Point, _: u64) -> Result<OpenedPoint, DeviceError> {
        if self.opened.len() == self.fails_at {
            return Err(DeviceError::NoDataset);
        }
        self.opened.push(point.entries.iter().filter(|entry| entry.subject.scan().is_some()).count());
        self.point = Some(point.clone());
        let facts = |subject: &Subject| (self.made_up.facts)(point, subject);
        Ok(OpenedPoint::Ready(point.entries.iter().map(|entry| facts(&entry.subject)).collect()))
    }

    fn verify(&mut self, entry: usize) -> Result<Result<Verification, NotMeasured>, DeviceError> {
        let is_wrong = (self.made_up.is_wrong)(self.subject(entry));
        let compared = self.point().n;
        Ok(Ok(Verification {
            mismatches: u64::from(is_wrong),
            first_mismatch: is_wrong.then_some(3),
            expected: is_wrong.then(|| "5".to_owned()),
            actual: is_wrong.then(|| "4".to_owned()),
            ..Verification::right(compared)
        }))
    }

    fn sampler(&mut self) -> &mut dyn Sampler<Error = DeviceError> {
        self
    }

    fn close(&mut self) {
        self.point = None;
    }

    fn temperature_celsius(&self) -> Option<u32> {
        None
    }
}
