//! Colours, markers and dashes: every strategy and every peer has its own in all pictures.

use crate::lab::measure::point::is_variant;
use crate::strategy::StrategyChoice;
use crate::strategy::look::{BLUE, BROWN, GREEN, GREY, Look, ORANGE, PINK, SKY, VERMILION};

/// `auto` runs beside every strategy that it may have come to. The pink is near that of Tol's bright scheme.
const AUTO: Look = Look {
    color: (0xe0, 0x20, 0x6a),
    dark_color: (0xff, 0x5c, 0x93),
    marker: &[(0, -6), (2, -2), (6, 0), (2, 2), (0, 6), (-2, 2), (-6, 0), (-2, -2)],
};
/// Okabe and Ito's black, for what is not this crate's; near white on dark pages.
const PEER: Look = Look { color: (0x11, 0x11, 0x13), dark_color: (0xe6, 0xe6, 0xe6), marker: &[] };
/// The copy: no contender but the roof.
const COPY: Look = Look { color: (0x8c, 0x8c, 0x8c), dark_color: (0x8c, 0x8c, 0x8c), marker: &[] };

/// Lines that are neither strategies nor peers, in their order.
const LINES: [Look; 8] = [BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BROWN, GREY];
/// Variants of peers. They stand in no picture with strategies other than lookback, so they have all looks but its own.
const VARIANTS: [Look; 8] = [BLUE, GREEN, PINK, ORANGE, SKY, BROWN, GREY, BLUE];
/// The other peers, which have the markers of these and one colour.
const PEERS: [Look; 8] = [SKY, ORANGE, GREEN, BLUE, PINK, VERMILION, GREY, BROWN];

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pen {
    /// Its marker may have no corners: then points have none.
    pub(super) look: Look,
    pub(super) width: u32,
    /// Length of dash and gap in pixels; solid without.
    pub(super) dash: Option<(u32, u32)>,
}

impl Pen {
    const fn new(look: Look, dash: Option<(u32, u32)>) -> Self {
        Self { look, width: 2, dash }
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
            Some(index) => Self::of_peer(PEERS[index % PEERS.len()], dash_of_further(index)),
            None if subject == "memcpy" => Self { width: 4, ..Self::of_copy() },
            None => Self::new(COPY, Some((3, 3))),
        }
    }

    /// A peer has the marker of a look, and the colour that all peers have.
    const fn of_peer(look: Look, dash: Option<(u32, u32)>) -> Self {
        Self::new(Look { marker: look.marker, ..PEER }, dash)
    }

    /// The thin line of the copy, and of signs that belong to no line.
    pub(super) const fn of_copy() -> Self {
        Self::new(COPY, None)
    }

    /// The line of the best of several peers.
    pub(super) const fn of_best_peer() -> Self {
        Self::of_peer(GREEN, None)
    }

    /// The same with the dashes of the `index`th line of a picture; the first is solid.
    pub(super) fn dashed(self, index: usize) -> Self {
        Self { dash: dash_of_further(index), ..self }
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

#[cfg(test)]
mod tests {
    use super::super::svg::{DARK_PAPER, PAPER, contrast};
    use super::*;

    #[test]
    fn every_line_can_be_seen_on_white_and_on_dark_paper() {
        let strategies = StrategyChoice::ALL.iter().map(|&choice| Pen::of_choice(choice, 0).look);
        let others = [LINES, VARIANTS, PEERS].concat().into_iter().chain([PEER, COPY]);
        for look in strategies.chain(others) {
            for (color, paper) in [(look.color, PAPER), (look.dark_color, DARK_PAPER)] {
                let contrast = contrast(color, (paper.0, paper.1, paper.2));
                assert!(contrast >= 3.0, "{color:02x?} has {contrast:.2} to 1 on {paper:?}");
            }
        }
    }

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        for (one, other, expected) in [
            ((0, 0, 0), (255, 255, 255), 21.0),
            ((255, 255, 255), (0, 0, 0), 21.0),
            ((0x77, 0x77, 0x77), (255, 255, 255), 4.48),
            ((0x33, 0x22, 0x88), (0x0d, 0x11, 0x17), 1.55),
        ] {
            assert!((contrast(one, other) - expected).abs() < 0.01, "{one:?} {other:?}: {}", contrast(one, other));
        }
    }
}
