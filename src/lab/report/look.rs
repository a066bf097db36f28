//! Colours, markers and dashes: every strategy and every peer has its own in all pictures.

use super::svg::{COPY, PEER};
use crate::lab::measure::point::is_variant;
use crate::strategy::{Strategy, StrategyChoice};
use plotters::style::RGBColor;

const fn color((red, green, blue): (u8, u8, u8)) -> RGBColor {
    RGBColor(red, green, blue)
}

/// The pink of Tol's bright scheme: `auto` runs beside every strategy that it may have come to.
const AUTO_COLOR: RGBColor = RGBColor(0xee, 0x33, 0x77);
const AUTO_MARKER: &[(i32, i32)] = &[(0, -6), (2, -2), (6, 0), (2, 2), (0, 6), (-2, 2), (-6, 0), (-2, -2)];

/// Peers take the markers of the first so many strategies, so that a new strategy changes no picture.
const PEER_MARKERS: usize = 8;

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) color: RGBColor,
    pub(super) width: u32,
    /// Length of dash and gap in pixels; solid without.
    pub(super) dash: Option<(u32, u32)>,
    /// Corners of the marker in pixels from its point; no marker without.
    pub(super) marker: &'static [(i32, i32)],
}

impl Look {
    /// The look of one of several lines of a kind, told apart by colour, marker and dashes.
    pub(super) fn of_index(index: usize) -> Self {
        const ORDER: [Strategy; 8] = [
            Strategy::ReduceThenScan,
            Strategy::Lookback,
            Strategy::ScanThenPropagate,
            Strategy::Chained,
            Strategy::Blelloch,
            Strategy::HillisSteele,
            Strategy::Naive,
            Strategy::Sequential,
        ];
        Self::of_choice(ORDER[index % ORDER.len()].into(), index / ORDER.len())
    }

    /// The look of one of several lines of a strategy, or of `auto`, told apart by dashes; the first is solid.
    pub(super) fn of_choice(choice: StrategyChoice, variant: usize) -> Self {
        let (color, marker) = match choice {
            StrategyChoice::Named(strategy) => (color(strategy.row().look.color), strategy.row().look.marker),
            StrategyChoice::Auto => (AUTO_COLOR, AUTO_MARKER),
        };
        Self { color, width: 2, dash: (variant > 0).then(|| dashes(variant)), marker }
    }

    /// The look of a subject: a strategy always has its own, `peers` are told apart by their place in this list.
    pub(super) fn of_subject(subject: &str, peers: &[String]) -> Self {
        if let Ok(choice) = subject.parse::<StrategyChoice>() {
            return Self::of_choice(choice, 0);
        }
        match peers.iter().position(|peer| peer == subject) {
            // Variants stand in no picture with strategies other than lookback, so they may have the others' colours.
            Some(index) if is_variant(subject) => {
                let skipped = usize::from(index % 8 >= 1);
                Self { dash: Some(dashes(index)), ..Self::of_index(index % 8 + skipped) }
            }
            Some(index) => Self {
                color: PEER,
                width: 2,
                dash: (index > 0).then(|| dashes(index)),
                marker: Strategy::ALL[(index + 2) % PEER_MARKERS].row().look.marker,
            },
            None if subject == "memcpy" => Self { color: COPY, width: 4, dash: None, marker: &[] },
            None => Self { color: COPY, width: 2, dash: Some((3, 3)), marker: &[] },
        }
    }
}

/// Length of dash and gap in pixels.
const fn dashes(variant: usize) -> (u32, u32) {
    match variant % 4 {
        1 => (8, 4),
        2 => (3, 3),
        3 => (12, 3),
        _ => (5, 6),
    }
}
