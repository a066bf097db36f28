//! Colour and marker of a line in a picture.
//!
//! Colours are after Okabe and Ito; wine, indigo and olive are of Tol's muted scheme. Brown and grey stand for the
//! strategies that serve as foils. Okabe and Ito's eighth colour is too light for a line on white, so look-ahead has
//! another.

/// Colour and marker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Red, green, blue.
    pub color: (u8, u8, u8),
    /// Corners of the marker in pixels from its point.
    pub marker: &'static [(i32, i32)],
}

/// The looks that have a name, because lines that are no strategy's have them too.
impl Look {
    pub const BLUE_SQUARE: Self = Self { color: (0x00, 0x7c, 0xc2), marker: &[(-4, -4), (4, -4), (4, 4), (-4, 4)] };
    pub const VERMILION_OCTAGON: Self = Self {
        color: (0xd5, 0x5e, 0x00),
        marker: &[(-4, -2), (-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2)],
    };
    pub const GREEN_TRIANGLE: Self = Self { color: (0x00, 0x9e, 0x73), marker: &[(0, -5), (5, 4), (-5, 4)] };
    pub const PINK_DIAMOND: Self = Self { color: (0xcc, 0x79, 0xa7), marker: &[(0, -6), (6, 0), (0, 6), (-6, 0)] };
    pub const ORANGE_TRIANGLE: Self = Self { color: (0xe6, 0x9f, 0x00), marker: &[(0, 5), (5, -4), (-5, -4)] };
    pub const SKY_PLUS: Self = Self {
        color: (0x56, 0xb4, 0xe9),
        marker: &[
            (-5, -2),
            (-2, -2),
            (-2, -5),
            (2, -5),
            (2, -2),
            (5, -2),
            (5, 2),
            (2, 2),
            (2, 5),
            (-2, 5),
            (-2, 2),
            (-5, 2),
        ],
    };
    pub const BROWN_CROSS: Self = Self {
        color: (0x9a, 0x7b, 0x4f),
        marker: &[
            (-3, -5),
            (0, -2),
            (3, -5),
            (5, -3),
            (2, 0),
            (5, 3),
            (3, 5),
            (0, 2),
            (-3, 5),
            (-5, 3),
            (-2, 0),
            (-5, -3),
        ],
    };
    pub const GREY_BAR: Self = Self { color: (0x80, 0x80, 0x88), marker: &[(-5, -2), (5, -2), (5, 2), (-5, 2)] };
}
