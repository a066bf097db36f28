//! Colours, markers and dashes: every strategy and every peer has its own in all pictures.

use super::svg::{COPY, PEER};
use crate::lab::measure::point::is_variant;
use crate::strategy::StrategyChoice;
use crate::strategy::look::{BLUE, BROWN, GREEN, GREY, Look, ORANGE, PINK, SKY, VERMILION};
use plotters::style::RGBColor;

/// `auto` runs beside every strategy that it may have come to. The pink is of Tol's bright scheme.
const AUTO: Look =
    Look { color: (0xee, 0x33, 0x77), marker: &[(0, -6), (2, -2), (6, 0), (2, 2), (0, 6), (-2, 2), (-6, 0), (-2, -2)] };

/// Lines that are neither strategies nor peers, in their order.
const LINES: [Look; 8] = [BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BROWN, GREY];
/// Variants of peers. They stand in no picture with strategies other than lookback, so they have all looks but its own.
const VARIANTS: [Look; 8] = [BLUE, GREEN, PINK, ORANGE, SKY, BROWN, GREY, BLUE];
/// The other peers, which have the markers of these and one colour.
const PEERS: [Look; 8] = [SKY, ORANGE, GREEN, BLUE, PINK, VERMILION, GREY, BROWN];

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pen {
    pub(super) color: RGBColor,
    pub(super) width: u32,
    /// Length of dash and gap in pixels; solid without.
    pub(super) dash: Option<(u32, u32)>,
    /// Corners of the marker in pixels from its point; no marker without.
    pub(super) marker: &'static [(i32, i32)],
}

impl Pen {
    const fn new(look: Look, dash: Option<(u32, u32)>) -> Self {
        let Look { color: (red, green, blue), marker } = look;
        Self { color: RGBColor(red, green, blue), width: 2, dash, marker }
    }

    /// One of several lines of a kind, told apart by colour, marker and dashes.
    pub(super) fn of_index(index: usize) -> Self {
        Self::new(LINES[index % LINES.len()], dash_of_further(index / LINES.len()))
    }

    /// One of several lines of a strategy, or of `auto`, told apart by dashes; the first is solid.
    pub(super) fn of_choice(choice: StrategyChoice, variant: usize) -> Self {
        let look = match choice {
            StrategyChoice::Named(strategy) => strategy.row().look,
            StrategyChoice::Auto => AUTO,
        };
        Self::new(look, dash_of_further(variant))
    }

    /// The line of a subject: a strategy always has its own look, `peers` are told apart by their place in this list.
    pub(super) fn of_subject(subject: &str, peers: &[String]) -> Self {
        if let Ok(choice) = subject.parse::<StrategyChoice>() {
            return Self::of_choice(choice, 0);
        }
        match peers.iter().position(|peer| peer == subject) {
            Some(index) if is_variant(subject) => Self::new(VARIANTS[index % VARIANTS.len()], Some(dashes(index))),
            Some(index) => Self { color: PEER, ..Self::new(PEERS[index % PEERS.len()], dash_of_further(index)) },
            None if subject == "memcpy" => Self { color: COPY, width: 4, dash: None, marker: &[] },
            None => Self { color: COPY, width: 2, dash: Some((3, 3)), marker: &[] },
        }
    }
}

/// The dashes of one of several lines that have a colour in common: the first is solid.
fn dash_of_further(index: usize) -> Option<(u32, u32)> {
    (index > 0).then(|| dashes(index))
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
