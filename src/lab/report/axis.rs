//! Axes with exactly the ticks that are asked for: powers of two, steps from zero, or names.

use crate::text::{format_bytes, format_power};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// What an axis goes by: numbers above 0. What is beyond all that is measured has no place, whatever a record says, so
/// that the ticks stay few and their labels short.
fn placed(values: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.filter(|value| (1e-9..=1e20).contains(value))
}

/// 0.25 as 1/4, 1024 as it is.
fn plain_label(value: f64) -> String {
    if value > 0.0 && value < 1.0 && (1.0 / value).fract() == 0.0 {
        format!("1/{}", 1.0 / value)
    } else {
        value.to_string()
    }
}

/// 1024 as 1 KiB, 512 as 512 B.
fn bytes_label(value: f64) -> String {
    format_bytes(value as u64).unwrap_or_else(|| format!("{value} B"))
}

/// An axis with exactly these ticks. If `logarithmic`, values stand at the places of their logarithms.
#[derive(Clone)]
pub(super) struct Axis {
    range: Range<f64>,
    ticks: Vec<f64>,
    logarithmic: bool,
    label: fn(f64) -> String,
    /// What stands at 0, 1, 2, … instead of numbers; empty for numbers.
    names: Vec<String>,
}

impl Axis {
    /// Powers of two from below the smallest to above the largest value, thinned to at most `most` ticks.
    pub(super) fn powers(values: impl Iterator<Item = f64>, most: i32) -> Self {
        let ends = placed(values).map(|value| (value, value));
        let (low, high) = ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or((1.0, 1.0));
        let (low, high) = (low.log2(), high.log2());
        let (first, last) = (low.floor() as i32, (high.ceil() as i32).max(low.floor() as i32 + 1));
        // All ticks of an axis are written alike: as 2¹⁶ where numbers get long, as 1/4 and 1024 elsewhere.
        let label = if last > 13 || first < -10 { format_power } else { plain_label };
        let step = (f64::from(last - first) / f64::from(most)).ceil().max(1.0) as usize;
        let ticks = (first..=last).step_by(step).map(|tick| f64::from(tick).exp2()).collect();
        // A little air, so that no marker lies on the frame.
        let air = f64::from(last - first) * 0.03;
        Self {
            range: (f64::from(first).min(low) - air)..(f64::from(last).max(high) + air),
            ticks,
            logarithmic: true,
            label,
            names: Vec::new(),
        }
    }

    /// Bytes from below the smallest to above the largest value, with ticks at 4 KiB, 64 KiB, 1 MiB and so on.
    pub(super) fn bytes(values: impl Iterator<Item = f64>) -> Self {
        const EXPONENTS: i32 = 4;
        let axis = Self::powers(values, i32::MAX);
        let is_round = |tick: &f64| (tick.log2().round() as i32).rem_euclid(EXPONENTS) == 0;
        let round: Vec<f64> = axis.ticks.iter().copied().filter(is_round).collect();
        // A few sizes close together have a tick each.
        let ticks = if round.len() < 2 { axis.ticks } else { round };
        Self { ticks, label: bytes_label, ..axis }
    }

    /// The same axis with every second tick, or every third, so that there are at most so many. Names stay.
    pub(super) fn thinned(&self, most: usize) -> Self {
        let step = if self.names.is_empty() { self.ticks.len().div_ceil(most).max(1) } else { 1 };
        Self { ticks: self.ticks.iter().copied().step_by(step).collect(), ..self.clone() }
    }

    /// The ticks and what stands at them.
    pub(super) fn labelled_ticks(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().map(|&tick| (tick, self.format_ext(&tick)))
    }

    /// From zero to a little above the largest value, with steps of 1, 2 or 5 times a power of ten.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = placed(values).reduce(f64::max).unwrap_or(1.0);
        let decade = 10f64.powf((high / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade).into_iter().find(|step| high / step <= 7.0);
        let step = step.unwrap_or(10.0 * decade);
        // The axis ends before the next tick, which could leave half of the picture empty.
        let end = high * 1.04;
        let ticks: Vec<f64> = (0..=(end / step) as usize).map(|index| index as f64 * step).collect();
        Self { range: 0.0..end, ticks, logarithmic: false, label: plain_label, names: Vec::new() }
    }

    /// Where the axis begins and ends.
    pub(super) fn ends(&self) -> (f64, f64) {
        let range = Ranged::range(self);
        (range.start, range.end)
    }

    /// Names at 0, 1, 2, ….
    pub(super) fn of_names(names: Vec<String>) -> Self {
        Self {
            range: -0.5..names.len() as f64 - 0.5,
            ticks: (0..names.len()).map(|index| index as f64).collect(),
            logarithmic: false,
            label: plain_label,
            names,
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let value = if self.logarithmic { value.log2() } else { *value };
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        // What is outside stays so, within numbers that can be drawn.
        limit.0 + (share.clamp(-1.0, 2.0) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        if self.logarithmic { self.range.start.exp2()..self.range.end.exp2() } else { self.range.clone() }
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        if let Some(name) = self.names.get(value.round() as usize) {
            name.clone()
        } else if self.logarithmic {
            (self.label)(*value)
        } else {
            // Multiples of a decimal step carry rounding noise in their last digits.
            format!("{}", (value * 1e6).round() / 1e6)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_one_are_labelled_as_such() {
        for (value, label) in [(1.0, "1"), (64.0, "64"), (0.25, "1/4"), (0.0, "0"), (1.5, "1.5")] {
            assert_eq!(plain_label(value), label);
        }
    }

    #[test]
    fn bytes_have_round_ticks_and_thinning_keeps_the_range() {
        let labels = |axis: &Axis| axis.ticks.iter().map(|tick| axis.format_ext(tick)).collect::<Vec<_>>();
        let axis = Axis::bytes([4096.0, 4.0 * 1024f64.powi(3)].into_iter());
        assert_eq!(labels(&axis), ["4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB", "4 GiB"]);
        let thinned = axis.thinned(3);
        assert_eq!(labels(&thinned), ["4 KiB", "1 MiB", "256 MiB"]);
        assert_eq!(thinned.range(), axis.range());
        assert_eq!(labels(&Axis::bytes([256.0, 600.0].into_iter())), ["256 B", "512 B", "1 KiB"]);
        let names = Axis::of_names(["u8", "u16", "f64"].map(str::to_owned).to_vec());
        assert_eq!(labels(&names.thinned(2)), ["u8", "u16", "f64"]);
    }

    #[test]
    fn axes_hold_all_their_values() {
        for values in [vec![1.0], vec![1000.0, 1e6], vec![0.001, 3e9], vec![5.0, 5.1]] {
            let axis = Axis::powers(values.iter().copied(), 9);
            assert!(axis.ticks.len() <= 11, "{:?}", axis.ticks);
            for value in &values {
                assert!(axis.range().contains(value), "{value} in {:?}", axis.range());
            }
            let axis = Axis::from_zero(values.iter().copied());
            assert!((2..=8).contains(&axis.ticks.len()), "{:?}", axis.ticks);
            for value in values {
                assert!(axis.range().contains(&value), "{value} in {:?}", axis.range());
            }
        }
        assert!(Axis::from_zero([0.0].into_iter()).range().end > 1.0);
    }

    #[test]
    fn an_axis_is_finite_whatever_its_values_are() {
        const NEVER: [f64; 9] =
            [0.0, -1.0, 5e-324, 1e-300, 1e300, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for beside in [&[][..], &[8.0]] {
            for values in NEVER.iter().map(std::slice::from_ref).chain([&NEVER[..]]) {
                let values = || values.iter().chain(beside).copied();
                for axis in [Axis::powers(values(), 9), Axis::powers(values(), i32::MAX), Axis::bytes(values())] {
                    assert!((2..100).contains(&axis.ticks.len()), "{:?}", axis.ticks);
                }
                for axis in [Axis::powers(values(), 9), Axis::from_zero(values()), Axis::bytes(values())] {
                    assert!(axis.range().start < axis.range().end, "{:?}", axis.range());
                    for label in axis.ticks.iter().map(|tick| axis.format_ext(tick)) {
                        assert!(label.len() < 30 && !label.contains("inf") && !label.contains("NaN"), "{label}");
                    }
                    assert!(beside.iter().all(|value| axis.range().contains(value)), "{:?}", axis.range());
                    for value in values() {
                        axis.map(&value, (0, 10_000));
                    }
                }
            }
        }
    }
}
