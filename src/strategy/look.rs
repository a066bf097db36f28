//! Colours and marker of a line in a picture.
//!
//! Hues are after Okabe and Ito, wine, indigo and olive after Tol's muted scheme; brown and grey are the foils'. Each has
//! one colour for white paper and one for dark, both with a contrast of at least 3 to 1 to it (WCAG 2, 1.4.11). A look
//! has a name if lines of something else than a strategy have it.

/// Colours and marker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Red, green, blue on white paper.
    pub color: (u8, u8, u8),
    /// Red, green, blue on a dark page.
    pub dark_color: (u8, u8, u8),
    /// Corners of the marker in pixels from its point.
    pub marker: &'static [(i32, i32)],
}

macro_rules! looks {
    ($($name:ident $color:tt $dark_color:tt $marker:tt)+) => {
        $(pub(crate) const $name: Look = Look { color: $color, dark_color: $dark_color, marker: &$marker };)+
    };
}

looks! {
    BLUE (0x00, 0x67, 0xab) (0x3b, 0x97, 0xdd) [(-4, -4), (4, -4), (4, 4), (-4, 4)]
    VERMILION (0xd5, 0x5e, 0x00) (0xe8, 0x70, 0x2a) [(-4, -2), (-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2)]
    GREEN (0x00, 0x8a, 0x65) (0x1f, 0xb5, 0x8c) [(0, -5), (5, 4), (-5, 4)]
    PINK (0xbf, 0x68, 0x9a) (0xd9, 0x8b, 0xb8) [(0, -6), (6, 0), (0, 6), (-6, 0)]
    ORANGE (0xb8, 0x7b, 0x00) (0xe6, 0x9f, 0x00) [(0, 5), (5, -4), (-5, -4)]
    SKY (0x2f, 0x93, 0xc8) (0x6c, 0xc0, 0xf0) [
        (-5, -2), (-2, -2), (-2, -5), (2, -5), (2, -2), (5, -2), (5, 2), (2, 2), (2, 5), (-2, 5), (-2, 2), (-5, 2),
    ]
    BROWN (0x8a, 0x6b, 0x40) (0xb0, 0x8f, 0x60) [
        (-3, -5), (0, -2), (3, -5), (5, -3), (2, 0), (5, 3), (3, 5), (0, 2), (-3, 5), (-5, 3), (-2, 0), (-5, -3),
    ]
    GREY (0x80, 0x80, 0x88) (0x9a, 0x9a, 0xa2) [(-5, -2), (5, -2), (5, 2), (-5, 2)]
}
