//! Charts of lines with bands and markers, in a wide layout with the legend beside them and a narrow one with the legend
//! below.
//!
//! plotters draws the axes. It knows neither dashes as an attribute nor titles inside an element, so a series is written
//! here, at the places that plotters gives: a `<g class="series">` with its entry in the legend, which a page can hide.

use super::axis::Axis;
use super::html::escaped;
use super::pen::Pen;
use super::svg::{Area, Drawing, GRID, INK, PAPER, Refusal, drawing_with, hexadecimal, plain_text};
use crate::text::{significant, wrapped};
use plotters::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

/// How a point stands to its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The line goes through it.
    OnLine,
    /// The line goes through it, and it has no marker: where markers would hide the line.
    Unmarked,
    /// It stands beside the line and has a small marker.
    Beside,
}

/// A median with its quartiles.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) standing: Standing,
    /// Whether a noise criterion was met. If not, its marker is hollow.
    pub(super) is_trusted: bool,
    /// What it is a figure of: shown with the figure where a pointer rests on it.
    pub(super) what: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) label: String,
    pub(super) pen: Pen,
    /// Ascending in x.
    pub(super) points: Vec<Point>,
}

impl Series {
    /// The value of the last point.
    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.y)
    }
}

/// How many places on the horizontal axis the series have points at.
pub(super) fn places(series: &[Series]) -> usize {
    let xs = series.iter().flat_map(|series| &series.points).map(|point| point.x.to_bits());
    xs.collect::<BTreeSet<_>>().len()
}

/// A chart of lines.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x_description: &'static str,
    pub(super) y_description: String,
    /// What stands behind a figure.
    pub(super) unit: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    /// What lower and upper values are.
    pub(super) band: &'static str,
    /// Where a line runs across, to compare with.
    pub(super) reference: Option<f64>,
    /// Whether points are joined; if not, quartiles are drawn as whiskers.
    pub(super) is_joined: bool,
}

/// The quartiles of a figure.
pub(super) const QUARTILES: &str = "quartiles";

/// Where the legend stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Legend {
    Beside { width: u32 },
    Below,
}

/// Sizes in pixels, and what a chart is made of.
#[derive(Debug, Clone, Copy)]
struct Layout {
    width: u32,
    plot_height: u32,
    legend: Legend,
    /// Room for the labels of the vertical axis.
    left: u32,
    /// As plotters counts, which writes four fifths of it.
    text_size: u32,
    most_x_ticks: usize,
    most_y_ticks: usize,
    /// Whether a figure is shown where a pointer rests on its point.
    has_titles: bool,
}

const WIDE: Layout = Layout {
    width: 900,
    plot_height: 400,
    legend: Legend::Beside { width: 238 },
    left: 66,
    text_size: 15,
    most_x_ticks: 14,
    most_y_ticks: 12,
    has_titles: true,
};
const NARROW: Layout = Layout {
    width: 380,
    plot_height: 300,
    legend: Legend::Below,
    left: 54,
    text_size: 14,
    most_x_ticks: 7,
    most_y_ticks: 8,
    has_titles: false,
};

/// From the top of one entry in the legend to that of the next.
const LINE: u32 = 21;
/// Text of the legend and of the title, in pixels, and what a letter of it takes at most on the average.
const LEGEND_TEXT: (u32, f64) = (12, 6.3);
const TITLE_TEXT: (u32, f64) = (15, 8.1);
/// Where the text of an entry begins, from the legend's edge.
const SAMPLE: u32 = 48;

impl Layout {
    /// Where the lines stand, and the left upper corner of the legend.
    fn split<'a>(&self, root: &Area<'a>, top: u32) -> (Area<'a>, (u32, u32)) {
        let (_, body) = root.split_vertically(top);
        let (area, _) = body.split_vertically(self.plot_height);
        match self.legend {
            Legend::Beside { width } => {
                let left = self.width - width;
                (area.split_horizontally(left).0, (left, top))
            }
            Legend::Below => (area, (8, top + self.plot_height + 6)),
        }
    }

    fn legend_width(&self) -> u32 {
        match self.legend {
            Legend::Beside { width } => width,
            Legend::Below => self.width - 16,
        }
    }
}

/// What a marker looks like besides its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Full,
    Hollow {
        outline: u32,
    },
    /// Nothing to see, only to point at.
    Invisible,
}

/// A text, the middle of whose height is at `y`.
pub(super) fn text_at(svg: &mut String, (x, y): (u32, u32), size: u32, text: &str) {
    let ink = hexadecimal((INK.0, INK.1, INK.2));
    let text = escaped(text);
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" dy=\".35em\" font-size=\"{size}\" fill=\"{ink}\">{text}</text>");
}

/// A marker around its point.
fn marker(svg: &mut String, (x, y): (i32, i32), corners: &[(i32, i32)], fill: Fill, title: &str) {
    let mut path = String::new();
    let mut last = None;
    for &(dx, dy) in corners {
        match last {
            None => {
                let _ = write!(path, "M{} {}l", x + dx, y + dy);
            }
            Some((left, top)) => {
                let _ = write!(path, "{} {} ", dx - left, dy - top);
            }
        }
        last = Some((dx, dy));
    }
    let paper = hexadecimal((PAPER.0, PAPER.1, PAPER.2));
    let look = match fill {
        Fill::Full => String::new(),
        Fill::Hollow { outline } => format!(" fill=\"{paper}\" stroke=\"currentColor\" stroke-width=\"{outline}\""),
        Fill::Invisible => " fill-opacity=\"0\"".to_owned(),
    };
    let end = if title.is_empty() { "/>".to_owned() } else { format!("><title>{}</title></path>", escaped(title)) };
    let _ = writeln!(svg, "<path{look} d=\"{}z\"{end}", path.trim_end());
}

const DIAMOND: [(i32, i32); 4] = [(-4, 0), (0, -4), (4, 0), (0, 4)];
const SMALL_DIAMOND: [(i32, i32); 4] = [(-3, 0), (0, -3), (3, 0), (0, 3)];

impl Point {
    /// Corners and fill of its marker on a line that has markers of these `corners`, or none.
    fn marker(&self, corners: &[(i32, i32)]) -> (Vec<(i32, i32)>, Fill) {
        let small = || match corners {
            [] => SMALL_DIAMOND.to_vec(),
            _ => corners.iter().map(|(x, y)| (x * 3 / 5, y * 3 / 5)).collect(),
        };
        // One that is not trusted has a marker even where the line has none.
        match (self.standing, self.is_trusted) {
            (Standing::OnLine, true) if corners.is_empty() => (DIAMOND.to_vec(), Fill::Invisible),
            (Standing::OnLine, true) => (corners.to_vec(), Fill::Full),
            (Standing::OnLine, false) if corners.is_empty() => (DIAMOND.to_vec(), Fill::Hollow { outline: 2 }),
            (Standing::OnLine, false) => (corners.to_vec(), Fill::Hollow { outline: 2 }),
            (Standing::Unmarked, true) => (DIAMOND.to_vec(), Fill::Invisible),
            (Standing::Beside, true) => (small(), Fill::Full),
            (Standing::Unmarked | Standing::Beside, false) => (small(), Fill::Hollow { outline: 1 }),
        }
    }

    pub(super) const fn is_on_line(&self) -> bool {
        matches!(self.standing, Standing::OnLine | Standing::Unmarked)
    }
}

/// Begins what is drawn with a pen.
pub(super) fn begin_pen(svg: &mut String, pen: Pen) {
    let (light, dark) = (hexadecimal(pen.look.color), hexadecimal(pen.look.dark_color));
    let _ = writeln!(svg, "<g class=\"pen\" style=\"--dark:{dark}\" color=\"{light}\" fill=\"currentColor\">");
}

fn points_of(places: impl Iterator<Item = (i32, i32)>) -> String {
    places.map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
}

/// The attributes of a pen's line.
fn stroke(pen: Pen) -> String {
    let dash = pen.dash.map_or(String::new(), |(dash, gap)| format!(" stroke-dasharray=\"{dash} {gap}\""));
    format!("fill=\"none\" stroke=\"currentColor\" stroke-width=\"{}\"{dash}", pen.width)
}

impl Chart {
    /// The drawing in both layouts.
    pub(super) fn drawing(&self) -> Result<Drawing, Refusal> {
        Ok(Drawing { wide: self.svg(WIDE)?, narrow: Some(self.svg(NARROW)?) })
    }

    fn svg(&self, layout: Layout) -> Result<String, Refusal> {
        let letters = |width: u32, letter: f64| (f64::from(width) / letter) as usize;
        let title = wrapped(&self.title, letters(layout.width - 24, TITLE_TEXT.1));
        let top = 18 + 20 * title.len() as u32;
        let key = self.key(letters(layout.legend_width() - SAMPLE, LEGEND_TEXT.1));
        let key_lines: usize = key.iter().map(|(_, lines)| lines.len()).sum();
        let longest = self.series.iter().map(|series| series.label.chars().count()).max().unwrap_or(0);
        let entry_width = SAMPLE + (longest as f64 * LEGEND_TEXT.1) as u32 + 8;
        let columns = match layout.legend {
            Legend::Beside { .. } => 1,
            Legend::Below => (layout.legend_width() / entry_width).clamp(1, 3),
        };
        let rows = (self.series.len() as u32).div_ceil(columns);
        let legend_height = LINE * (rows + key_lines as u32) + 12 + if key.is_empty() { 0 } else { 10 };
        let height = top
            + match layout.legend {
                Legend::Beside { .. } => layout.plot_height.max(legend_height),
                Legend::Below => layout.plot_height + legend_height + 6,
            };
        // The legend goes from the best line's end downwards, as the eye meets the lines in the chart.
        let mut order: Vec<&Series> = self.series.iter().collect();
        order.sort_by(|left, right| right.last().total_cmp(&left.last()));
        drawing_with((layout.width, height), &self.title, |root| {
            root.fill(&PAPER)?;
            let (area, (left, legend_top)) = layout.split(root, top);
            let chart = self.mesh(&area, layout)?;
            let at = |x: f64, y: f64| chart.backend_coord(&(x, y));
            let mut svg = String::new();
            for (index, line) in (0..).zip(&title) {
                text_at(&mut svg, (14, 18 + 20 * index), TITLE_TEXT.0, line);
            }
            let first = legend_top + 14;
            for series in &self.series {
                let place = order.iter().position(|other| std::ptr::eq(*other, series)).unwrap_or(0) as u32;
                let label = escaped(&series.label);
                let _ = writeln!(svg, "<g class=\"series\" data-series=\"{label}\">");
                begin_pen(&mut svg, series.pen);
                self.write_series(&mut svg, series, layout, &at);
                let corner = (left + entry_width * (place % columns), first + LINE * (place / columns));
                self.write_sample(&mut svg, series.pen, corner);
                svg.push_str("</g>\n");
                text_at(&mut svg, (corner.0 + SAMPLE, corner.1), LEGEND_TEXT.0, &series.label);
                svg.push_str("</g>\n");
            }
            let mut y = first + LINE * rows + 10;
            for (sign, lines) in &key {
                sign.write(&mut svg, (left, y));
                for line in lines {
                    text_at(&mut svg, (left + SAMPLE, y), LEGEND_TEXT.0, line);
                    y += LINE;
                }
            }
            Ok(svg)
        })
    }

    /// What stands below the legend, so that no sign needs the page to be understood, in lines of so many letters.
    fn key(&self, letters: usize) -> Vec<(Sign, Vec<String>)> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let has_band = |point: &Point| (point.upper - point.lower).abs() > f64::EPSILON * point.y.abs();
        let mut key = Vec::new();
        if points().any(has_band) {
            key.push((if self.is_joined { Sign::Band } else { Sign::Whisker }, self.band));
        }
        if points().any(|point| point.standing == Standing::Beside && point.is_trusted) {
            key.push((Sign::Small, "small: off the line"));
        }
        if points().any(|point| !point.is_trusted) {
            key.push((Sign::Hollow, "hollow: no noise criterion met"));
        }
        key.into_iter().map(|(sign, text)| (sign, wrapped(text, letters))).collect()
    }

    fn mesh<'a, 'b>(
        &self,
        area: &'b Area<'a>,
        layout: Layout,
    ) -> Result<ChartContext<'b, SVGBackend<'a>, Cartesian2d<Axis, Axis>>, Refusal> {
        let mut chart = ChartBuilder::on(area)
            .margin_right(12)
            .margin_left(8)
            .margin_bottom(8)
            .set_label_area_size(LabelAreaPosition::Left, layout.left)
            .set_label_area_size(LabelAreaPosition::Bottom, 46)
            .build_cartesian_2d(self.x.thinned(layout.most_x_ticks), self.y.thinned(layout.most_y_ticks))?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style(plain_text(layout.text_size as i32))
            .axis_desc_style(plain_text(layout.text_size as i32))
            .x_desc(self.x_description)
            .y_desc(self.y_description.as_str())
            .x_labels(40)
            .y_labels(40)
            .draw()?;
        if let Some(reference) = self.reference {
            let (left, right) = self.x.ends();
            let line = vec![(left, reference), (right, reference)];
            chart.draw_series([PathElement::new(line, INK.stroke_width(1))])?;
        }
        Ok(chart)
    }

    fn write_series(&self, svg: &mut String, series: &Series, layout: Layout, at: &dyn Fn(f64, f64) -> (i32, i32)) {
        let Series { label, pen, points } = series;
        let on_line: Vec<&Point> = points.iter().filter(|point| point.is_on_line()).collect();
        if self.is_joined && on_line.len() > 1 {
            let upper = on_line.iter().map(|point| at(point.x, point.upper));
            let lower = on_line.iter().rev().map(|point| at(point.x, point.lower));
            let band = points_of(upper.chain(lower));
            let line = points_of(on_line.iter().map(|point| at(point.x, point.y)));
            if on_line.iter().any(|point| point.upper != point.lower) {
                let _ = writeln!(svg, "<polygon fill-opacity=\".2\" points=\"{band}\"/>");
            }
            let _ = writeln!(svg, "<polyline {} points=\"{line}\"/>", stroke(*pen));
        }
        for point in points {
            if !self.is_joined && point.lower < point.upper {
                let whisker = points_of([at(point.x, point.lower), at(point.x, point.upper)].into_iter());
                let _ = writeln!(svg, "<polyline {} points=\"{whisker}\"/>", stroke(*pen));
            }
            let (corners, fill) = point.marker(pen.look.marker);
            let doubt = if point.is_trusted { "" } else { "; no noise criterion met" };
            let title = match &point.what {
                _ if !layout.has_titles => String::new(),
                what if what.is_empty() => format!("{label}: {} {}{doubt}", significant(point.y, 12), self.unit),
                what => format!("{what}: {} {}{doubt}", significant(point.y, 12), self.unit),
            };
            if fill != Fill::Invisible || !title.is_empty() {
                marker(svg, at(point.x, point.y), &corners, fill, &title);
            }
        }
    }

    /// The sample of a series in the legend.
    fn write_sample(&self, svg: &mut String, pen: Pen, (x, y): (u32, u32)) {
        if self.is_joined {
            let _ = writeln!(svg, "<polyline {} points=\"{},{y} {},{y}\"/>", stroke(pen), x + 4, x + 40);
        }
        if !pen.look.marker.is_empty() {
            marker(svg, (x as i32 + 22, y as i32), pen.look.marker, Fill::Full, "");
        }
    }
}

/// A sign that the key explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Band,
    Whisker,
    Small,
    Hollow,
}

impl Sign {
    fn write(self, svg: &mut String, (x, y): (u32, u32)) {
        let place = (x as i32 + 22, y as i32);
        begin_pen(svg, Pen::of_copy());
        match self {
            Self::Band => {
                let (x, y) = (x + 4, y - 6);
                let _ = writeln!(svg, "<rect fill-opacity=\".35\" x=\"{x}\" y=\"{y}\" width=\"36\" height=\"12\"/>");
            }
            Self::Whisker => {
                let (x, top, bottom) = (x + 22, y - 7, y + 7);
                let _ = writeln!(svg, "<path stroke=\"currentColor\" stroke-width=\"2\" d=\"M{x} {top}V{bottom}\"/>");
            }
            Self::Small => marker(svg, place, &SMALL_DIAMOND, Fill::Full, ""),
            Self::Hollow => marker(svg, place, &DIAMOND, Fill::Hollow { outline: 2 }, ""),
        }
        svg.push_str("</g>\n");
    }
}
