//! Colour and marker of a line in a picture.
//!
//! Colours are after Okabe and Ito, whose eighth is too light for a line on white; wine, indigo and olive are of Tol's
//! muted scheme. Brown and grey are the foils'. A look has a name if lines of something else than a strategy have it.

/// Colour and marker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Red, green, blue.
    pub color: (u8, u8, u8),
    /// Corners of the marker in pixels from its point.
    pub marker: &'static [(i32, i32)],
}

macro_rules! looks {
    ($($name:ident $color:tt $marker:tt)+) => {
        $(pub(crate) const $name: Look = Look { color: $color, marker: &$marker };)+
    };
}

looks! {
    BLUE (0x00, 0x7c, 0xc2) [(-4, -4), (4, -4), (4, 4), (-4, 4)]
    VERMILION (0xd5, 0x5e, 0x00) [(-4, -2), (-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2)]
    GREEN (0x00, 0x9e, 0x73) [(0, -5), (5, 4), (-5, 4)]
    PINK (0xcc, 0x79, 0xa7) [(0, -6), (6, 0), (0, 6), (-6, 0)]
    ORANGE (0xe6, 0x9f, 0x00) [(0, 5), (5, -4), (-5, -4)]
    SKY (0x56, 0xb4, 0xe9) [
        (-5, -2), (-2, -2), (-2, -5), (2, -5), (2, -2), (5, -2), (5, 2), (2, 2), (2, 5), (-2, 5), (-2, 2), (-5, 2),
    ]
    BROWN (0x9a, 0x7b, 0x4f) [
        (-3, -5), (0, -2), (3, -5), (5, -3), (2, 0), (5, 3), (3, 5), (0, 2), (-3, 5), (-5, 3), (-2, 0), (-5, -3),
    ]
    GREY (0x80, 0x80, 0x88) [(-5, -2), (5, -2), (5, 2), (-5, 2)]
}
