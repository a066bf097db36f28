//! Colours, markers and dashes, and the classes by which one file serves light and dark pages.

use crate::strategy::{Strategy, StrategyChoice};
use plotters::style::RGBColor;

// Placeholders that `finish_svg` turns into classes; no series has these colours.
pub(super) const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
/// Okabe and Ito's black, for what is not this crate's; near white on dark pages.
pub(super) const PEER: RGBColor = RGBColor(0x11, 0x11, 0x13);
/// The copy: no contender but the roof.
pub(super) const COPY: RGBColor = RGBColor(0x8c, 0x8c, 0x8c);
pub(super) const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
pub(super) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xfe);

const fn color(strategy_color: (u8, u8, u8)) -> RGBColor {
    RGBColor(strategy_color.0, strategy_color.1, strategy_color.2)
}

/// The pink of Tol's bright scheme: `auto` runs beside every strategy that it may have come to.
const AUTO_COLOR: RGBColor = RGBColor(0xee, 0x33, 0x77);
const AUTO_MARKER: &[(i32, i32)] = &[(0, -6), (2, -2), (6, 0), (2, 2), (0, 6), (-2, 2), (-6, 0), (-2, -2)];

/// The colour of a strategy, or of `auto`.
pub(super) fn color_of_choice(choice: StrategyChoice) -> RGBColor {
    match choice {
        StrategyChoice::Named(strategy) => color(strategy.row().look.color),
        StrategyChoice::Auto => AUTO_COLOR,
    }
}

/// The marker of a strategy, or of `auto`.
pub(super) fn marker_of_choice(choice: StrategyChoice) -> &'static [(i32, i32)] {
    match choice {
        StrategyChoice::Named(strategy) => strategy.row().look.marker,
        StrategyChoice::Auto => AUTO_MARKER,
    }
}

/// Peers take the markers of so many strategies, the first of all: a new strategy changes no picture.
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
        let look = ORDER[index % ORDER.len()].row().look;
        let round = index / ORDER.len();
        Self { color: color(look.color), width: 2, dash: (round > 0).then(|| dashes(round)), marker: look.marker }
    }

    /// The look of a subject: a strategy always has its own, `peers` are told apart by their place in this list.
    pub(super) fn of_subject(subject: &str, peers: &[String]) -> Self {
        if let Ok(choice) = subject.parse::<StrategyChoice>() {
            return Self { color: color_of_choice(choice), width: 2, dash: None, marker: marker_of_choice(choice) };
        }
        match peers.iter().position(|peer| peer == subject) {
            // Variants stand in no picture with strategies other than lookback, so they may have the others' colours.
            Some(index) if super::sweep::is_variant(subject) => {
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
pub(super) const fn dashes(variant: usize) -> (u32, u32) {
    match variant % 4 {
        1 => (8, 4),
        2 => (3, 3),
        3 => (12, 3),
        _ => (5, 6),
    }
}

/// Colours of the dark page; the attributes in the drawing are those of the light one.
pub(super) const STYLE: &str = "<style>\
text{font-family:system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif}\
@media(prefers-color-scheme:dark){\
.ink-fill{fill:#d7dde3}.ink-line{stroke:#8b949e}.grid-line{stroke:#30363d}.paper-fill{fill:#0d1117}}\
</style>";

/// What is added where peers are drawn.
const PEER_STYLE: &str = "<style>\
@media(prefers-color-scheme:dark){.peer-fill{fill:#e6e6e6}.peer-line{stroke:#e6e6e6}}\
</style>";

/// Adds a title for screen readers, the style, and classes where colours follow the page.
pub(super) fn finish_svg(svg: &str, title: &str) -> String {
    let attribute = |name: &str, color: RGBColor| format!("{name}=\"#{:02X}{:02X}{:02X}\"", color.0, color.1, color.2);
    let mut svg = svg.to_owned();
    for (name, color, class) in [
        ("fill", INK, "ink-fill"),
        ("stroke", INK, "ink-line"),
        ("fill", PEER, "peer-fill"),
        ("stroke", PEER, "peer-line"),
        ("stroke", GRID, "grid-line"),
        ("fill", PAPER, "paper-fill"),
    ] {
        let plain = attribute(name, color);
        svg = svg.replace(&plain, &format!("{plain} class=\"{class}\""));
    }
    let head_end = svg.find('>').map_or(0, |end| end + 1);
    let (head, rest) = svg.split_at(head_end);
    let head = head.replacen("<svg ", "<svg role=\"img\" ", 1);
    let peer_style = if rest.contains("class=\"peer-") { PEER_STYLE } else { "" };
    format!("{head}\n<title>{}</title>{STYLE}{peer_style}{rest}", super::page::escaped(title))
}
