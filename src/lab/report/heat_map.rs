//! Heat maps over two lists of names.

use super::svg::{INK, ON_DARK, ON_LIGHT, Refusal, drawing, text, title_of};
use crate::text::significant;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// A field of a heat map.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    /// A figure; `note` stands below it, `is_marked` strikes its corner out, and one that is not trusted has a
    /// question mark.
    Value { value: f64, note: String, is_marked: bool, is_trusted: bool },
    /// None, and in a word why.
    Absent { why: &'static str },
}

/// A heat map over two lists of names.
pub(super) struct HeatMap {
    pub(super) title: String,
    pub(super) x_description: &'static str,
    pub(super) y_description: &'static str,
    pub(super) columns: Vec<String>,
    /// From the top.
    pub(super) rows: Vec<String>,
    /// Row by row.
    pub(super) cells: Vec<Vec<Cell>>,
    pub(super) unit: &'static str,
    /// What a marked corner means.
    pub(super) mark: &'static str,
}

/// Cividis in seven steps: rises in lightness throughout, to every eye (Nuñez, Anderton & Renslow 2018).
const CIVIDIS: [(u8, u8, u8); 7] = [
    (0x00, 0x22, 0x4e),
    (0x2a, 0x3f, 0x6d),
    (0x57, 0x5d, 0x6d),
    (0x7d, 0x7c, 0x78),
    (0xa5, 0x9c, 0x74),
    (0xd2, 0xc0, 0x60),
    (0xfe, 0xe8, 0x38),
];

fn heat(share: f64) -> RGBColor {
    let place = share.clamp(0.0, 1.0) * (CIVIDIS.len() - 1) as f64;
    let below = (place.floor() as usize).min(CIVIDIS.len() - 2);
    let part = place - below as f64;
    let mix = |low: u8, high: u8| (f64::from(low) + (f64::from(high) - f64::from(low)) * part).round() as u8;
    let (low, high) = (CIVIDIS[below], CIVIDIS[below + 1]);
    RGBColor(mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

const ABSENT: RGBColor = RGBColor(0xb4, 0xb4, 0xb8);

impl HeatMap {
    /// The drawing.
    pub(super) fn svg(&self) -> Result<String, Refusal> {
        const WIDTH: i32 = 900;
        const LEFT: i32 = 78;
        const TOP: i32 = 44;
        const CELL_HEIGHT: i32 = 56;
        const SCALE_WIDTH: i32 = 110;
        let cell_width = (WIDTH - LEFT - SCALE_WIDTH) / self.columns.len().max(1) as i32;
        let cell_width = cell_width.min(96);
        let bottom = TOP + CELL_HEIGHT * self.rows.len() as i32;
        let right = LEFT + cell_width * self.columns.len() as i32;
        let size = (WIDTH as u32, (bottom + 74) as u32);
        let values = || {
            self.cells.iter().flatten().filter_map(|cell| match cell {
                Cell::Value { value, .. } => Some(*value),
                Cell::Absent { .. } => None,
            })
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let share = |value: f64| if high > low { (value - low) / (high - low) } else { 1.0 };
        drawing(size, &self.title, |root| {
            title_of(root, &self.title)?;
            for (row, cells) in self.cells.iter().enumerate() {
                let y = TOP + CELL_HEIGHT * row as i32;
                let middle = y + CELL_HEIGHT / 2;
                root.draw(&Text::new(self.rows[row].clone(), (LEFT - 10, middle), text(13, INK, HPos::Right)))?;
                for (column, cell) in cells.iter().enumerate() {
                    let x = LEFT + cell_width * column as i32;
                    let corners = [(x + 1, y + 1), (x + cell_width - 1, y + CELL_HEIGHT - 1)];
                    let center = x + cell_width / 2;
                    match cell {
                        Cell::Value { value, note, is_marked, is_trusted } => {
                            root.draw(&Rectangle::new(corners, heat(share(*value)).filled()))?;
                            let ink = if share(*value) < 0.55 { ON_DARK } else { ON_LIGHT };
                            if *is_marked {
                                let [(left, top), _] = corners;
                                let corner = vec![(left, top), (left + 13, top), (left, top + 13)];
                                root.draw(&Polygon::new(corner, ink.filled()))?;
                            }
                            let mut number = significant(*value, 7);
                            if !is_trusted {
                                number.push('?');
                            }
                            root.draw(&Text::new(number, (center, middle - 8), text(13, ink, HPos::Center)))?;
                            root.draw(&Text::new(note.clone(), (center, middle + 11), text(11, ink, HPos::Center)))?;
                            if *value == high {
                                let [(left, top), (right, bottom)] = corners;
                                let inner = [(left + 1, top + 1), (right - 1, bottom - 1)];
                                root.draw(&Rectangle::new(inner, ON_LIGHT.stroke_width(3)))?;
                            }
                        }
                        Cell::Absent { why } => {
                            root.draw(&Rectangle::new(corners, ABSENT.filled()))?;
                            root.draw(&Text::new(*why, (center, middle), text(11, ON_LIGHT, HPos::Center)))?;
                        }
                    }
                }
            }
            for (column, name) in self.columns.iter().enumerate() {
                let x = LEFT + cell_width * column as i32 + cell_width / 2;
                root.draw(&Text::new(name.clone(), (x, bottom + 12), text(13, INK, HPos::Center)))?;
            }
            root.draw(&Text::new(self.x_description, ((LEFT + right) / 2, bottom + 32), text(13, INK, HPos::Center)))?;
            let middle = (TOP + bottom) / 2;
            let turned = text(13, INK, HPos::Center).transform(FontTransform::Rotate270);
            root.draw(&Text::new(self.y_description, (18, middle), turned))?;
            root.draw(&Text::new(self.mark, (LEFT, bottom + 56), text(12, INK, HPos::Left)))?;
            if low.is_finite() {
                // The scale, from the best downwards.
                const STEPS: i32 = 40;
                let (scale_top, scale_height) = (TOP + 24, (bottom - TOP - 34).max(STEPS));
                root.draw(&Text::new(self.unit, (right + 20, TOP + 8), text(12, INK, HPos::Left)))?;
                for step in 0..STEPS {
                    let top = scale_top + scale_height * step / STEPS;
                    let color = heat(1.0 - (f64::from(step) + 0.5) / f64::from(STEPS));
                    // Down to the end, each over the one before: edges that only touch show as stripes when scaled.
                    let corners = [(right + 20, top), (right + 36, scale_top + scale_height)];
                    root.draw(&Rectangle::new(corners, color.filled()))?;
                }
                for (part, y) in
                    [(1.0, scale_top), (0.5, scale_top + scale_height / 2), (0.0, scale_top + scale_height)]
                {
                    let number = significant(low + part * (high - low), 7);
                    root.draw(&Text::new(number, (right + 42, y), text(12, INK, HPos::Left)))?;
                }
            }
            Ok(())
        })
    }
}
