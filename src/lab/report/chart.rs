//! Charts of sweeps: lines with bands and markers, and heat maps.
//!
//! Every series is a layer of its own, drawn on the same axes and wrapped into `<g class="series">` together
//! with its entry in the legend, so that a page can hide it.

use super::axis::Axis;
use super::look::{GRID, INK, Look, PAPER, finish_svg};
use super::page::escaped;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

/// What the drawing library says when it refuses.
pub(super) type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// A median with its quartiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// Whether the line goes through it, or it stands beside the line.
    pub(super) is_on_line: bool,
    /// Whether a noise criterion was met. If not, its marker is hollow.
    pub(super) is_trusted: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) label: String,
    pub(super) look: Look,
    /// Ascending in x.
    pub(super) points: Vec<Point>,
}

/// A chart of lines.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x_description: &'static str,
    pub(super) y_description: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    /// Where a line runs across, to compare with.
    pub(super) reference: Option<f64>,
    /// Whether points are joined; if not, quartiles are drawn as whiskers.
    pub(super) is_joined: bool,
}

const WIDTH: u32 = 900;
const LEAST_HEIGHT: u32 = 440;
const TITLE_HEIGHT: u32 = 40;
const LEGEND_WIDTH: u32 = 232;
const LEGEND_LINE: u32 = 22;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The elements of a drawing without the `<svg>` around them, and its first line.
fn layer(
    size: (u32, u32),
    draw: impl for<'a> FnOnce(&Area<'a>) -> Result<(), Refusal>,
) -> Result<(String, String), Refusal> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&root)?;
        root.present()?;
    }
    let start = svg.find('>').map_or(0, |end| end + 1);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    Ok((svg[..start].to_owned(), svg[start..end].trim_start_matches('\n').to_owned()))
}

fn title_of(root: &Area<'_>, title: &str) -> Result<(), Refusal> {
    root.fill(&PAPER)?;
    let style = ("sans-serif", 17).into_font().color(&INK);
    root.draw(&Text::new(title.to_owned(), (16, 14), style))?;
    Ok(())
}

impl Chart {
    /// The drawing.
    pub(super) fn svg(&self) -> Result<String, Refusal> {
        let height = LEAST_HEIGHT.max(TITLE_HEIGHT + LEGEND_LINE * self.series.len() as u32 + 24);
        let size = (WIDTH, height);
        let (head, base) = layer(size, |root| {
            title_of(root, &self.title)?;
            self.with_axes(root, true, |_| Ok(()))
        })?;
        let mut svg = format!("{head}\n{base}");
        // The legend goes from the best line's end downwards, as the eye meets the lines in the chart.
        let last = |index: &usize| self.series[*index].points.last().map_or(0.0, |point| point.y);
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        order.sort_by(|left, right| last(right).total_cmp(&last(left)));
        for (index, series) in self.series.iter().enumerate() {
            let place = order.iter().position(|other| *other == index).unwrap_or(index);
            let (_, drawn) = layer(size, |root| self.draw_series(root, series, place))?;
            let label = escaped(&series.label);
            let _ = write!(svg, "<g class=\"series\" data-series=\"{label}\">\n{drawn}</g>\n");
        }
        svg.push_str("</svg>\n");
        Ok(finish_svg(&svg, &self.title))
    }

    fn with_axes<'a>(
        &self,
        root: &Area<'a>,
        is_mesh_drawn: bool,
        draw: impl FnOnce(&mut ChartContext<'_, SVGBackend<'a>, Cartesian2d<Axis, Axis>>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let (_, body) = root.split_vertically(TITLE_HEIGHT);
        let (area, _) = body.split_horizontally(WIDTH - LEGEND_WIDTH);
        let mut chart = ChartBuilder::on(&area)
            .margin_right(12)
            .margin_left(8)
            .margin_bottom(8)
            .set_label_area_size(LabelAreaPosition::Left, 66)
            .set_label_area_size(LabelAreaPosition::Bottom, 46)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        if is_mesh_drawn {
            let text = ("sans-serif", 13).into_font().color(&INK);
            chart
                .configure_mesh()
                .max_light_lines(0)
                .bold_line_style(GRID)
                .light_line_style(TRANSPARENT)
                .axis_style(INK)
                .label_style(text.clone())
                .axis_desc_style(text)
                .x_desc(self.x_description)
                .y_desc(self.y_description.as_str())
                .x_labels(40)
                .y_labels(40)
                .draw()?;
            if let Some(reference) = self.reference {
                let (left, right) = self.x.ends();
                chart.draw_series([PathElement::new(
                    vec![(left, reference), (right, reference)],
                    INK.stroke_width(1),
                )])?;
            }
        }
        draw(&mut chart)
    }

    fn draw_series(&self, root: &Area<'_>, series: &Series, place: usize) -> Result<(), Refusal> {
        let Look { color, width, dash, marker } = series.look;
        let on_line: Vec<&Point> = series.points.iter().filter(|point| point.is_on_line).collect();
        self.with_axes(root, false, |chart| {
            if self.is_joined {
                if on_line.len() > 1 {
                    let upper = on_line.iter().map(|point| (point.x, point.upper));
                    let lower = on_line.iter().rev().map(|point| (point.x, point.lower));
                    chart
                        .draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), color.mix(0.2).filled())])?;
                }
                let line = on_line.iter().map(|point| (point.x, point.y));
                match dash {
                    None => chart.draw_series(LineSeries::new(line, color.stroke_width(width)))?,
                    Some((dash, gap)) => {
                        chart.draw_series(DashedLineSeries::new(line, dash, gap, color.stroke_width(width)))?
                    }
                };
            } else {
                let whisker = |point: &Point| vec![(point.x, point.lower), (point.x, point.upper)];
                chart.draw_series(
                    series.points.iter().map(|point| PathElement::new(whisker(point), color.stroke_width(width))),
                )?;
            }
            for point in &series.points {
                // A point beside the line has a smaller marker, and one even where the line has none; so has one
                // that is not trusted.
                let mut corners: Vec<(i32, i32)> = match (point.is_on_line, marker.is_empty()) {
                    (true, true) if !point.is_trusted => vec![(-4, 0), (0, -4), (4, 0), (0, 4)],
                    (true, _) => marker.to_vec(),
                    (false, true) => vec![(-2, 0), (0, -2), (2, 0), (0, 2)],
                    (false, false) => marker.iter().map(|(x, y)| (x * 3 / 5, y * 3 / 5)).collect(),
                };
                let Some(&first) = corners.first() else { continue };
                let place = EmptyElement::at((point.x, point.y));
                if point.is_trusted {
                    chart.draw_series([place + Polygon::new(corners, color.filled())])?;
                } else {
                    let inside = Polygon::new(corners.clone(), PAPER.filled());
                    corners.push(first);
                    let outline = PathElement::new(corners, color.stroke_width(if point.is_on_line { 2 } else { 1 }));
                    chart.draw_series([place + inside + outline])?;
                }
            }
            Ok(())
        })?;
        let (_, body) = root.split_vertically(TITLE_HEIGHT);
        let (_, legend) = body.split_horizontally(WIDTH - LEGEND_WIDTH);
        let y = (16 + LEGEND_LINE as usize * place) as i32;
        if self.is_joined {
            let (dash, gap) = dash.map_or((36, 1), |(dash, gap)| (dash as i32, gap as i32));
            let mut x = 4;
            while x < 40 {
                let end = (x + dash).min(40);
                legend.draw(&PathElement::new(vec![(x, y), (end, y)], color.stroke_width(width)))?;
                x = end + gap;
            }
        }
        if !marker.is_empty() {
            let corners = marker.iter().map(|(dx, dy)| (22 + dx, y + dy)).collect::<Vec<_>>();
            legend.draw(&Polygon::new(corners, color.filled()))?;
        }
        let style = ("sans-serif", 13).into_font().color(&INK);
        legend.draw(&Text::new(series.label.clone(), (48, y - 6), style))?;
        Ok(())
    }
}

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

// Apart from `PAPER` and `INK`, because a cell keeps its colour on a dark page.
const ON_DARK: RGBColor = RGBColor(0xff, 0xff, 0xff);
const ON_LIGHT: RGBColor = RGBColor(0x10, 0x10, 0x10);
const ABSENT: RGBColor = RGBColor(0xb4, 0xb4, 0xb8);

impl HeatMap {
    /// The drawing.
    pub(super) fn svg(&self) -> Result<String, Refusal> {
        const LEFT: i32 = 78;
        const TOP: i32 = 44;
        const CELL_HEIGHT: i32 = 56;
        const SCALE_WIDTH: i32 = 110;
        let cell_width = (WIDTH as i32 - LEFT - SCALE_WIDTH) / self.columns.len().max(1) as i32;
        let cell_width = cell_width.min(96);
        let bottom = TOP + CELL_HEIGHT * self.rows.len() as i32;
        let right = LEFT + cell_width * self.columns.len() as i32;
        let size = (WIDTH, (bottom + 74) as u32);
        let values = || {
            self.cells.iter().flatten().filter_map(|cell| match cell {
                Cell::Value { value, .. } => Some(*value),
                Cell::Absent { .. } => None,
            })
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let share = |value: f64| if high > low { (value - low) / (high - low) } else { 1.0 };
        let text = |size: i32, color: RGBColor, horizontal: HPos| {
            ("sans-serif", size).into_font().color(&color).pos(Pos::new(horizontal, VPos::Center))
        };
        let (head, drawn) = layer(size, |root| {
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
                            let mut number = crate::cli::table::significant(*value, 7);
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
                    let number = crate::cli::table::significant(low + part * (high - low), 7);
                    root.draw(&Text::new(number, (right + 42, y), text(12, INK, HPos::Left)))?;
                }
            }
            Ok(())
        })?;
        Ok(finish_svg(&format!("{head}\n{drawn}</svg>\n"), &self.title))
    }
}
