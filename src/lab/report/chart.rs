//! Charts of lines with bands and markers.
//!
//! Where a page can hide series, each is a layer of its own, drawn on the same axes and wrapped into
//! `<g class="series">` together with its entry in the legend.

use super::axis::Axis;
use super::html::escaped;
use super::pen::Pen;
use super::svg::{Area, GRID, INK, PAPER, Refusal, drawing, finish_svg, layer, plain_text, title_of};
use plotters::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;

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

/// Sizes in pixels, and what a chart is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    width: u32,
    legend_width: u32,
    legend_line: u32,
    /// Whether quartiles are drawn, and each series is a layer that a page can hide.
    has_layers: bool,
}

/// A chart of lines.
pub(super) struct Chart {
    pub(super) layout: Layout,
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

impl Layout {
    /// A plot of `lookback compare`.
    pub(super) const COMPARED: Self = Self { width: 860, legend_width: 230, legend_line: 24, has_layers: false };
    /// A picture of a sweep.
    pub(super) const SWEPT: Self = Self { width: 900, legend_width: 232, legend_line: 22, has_layers: true };
}

const LEAST_HEIGHT: u32 = 440;
const TITLE_HEIGHT: u32 = 40;

impl Chart {
    /// The drawing.
    pub(super) fn svg(&self) -> Result<String, Refusal> {
        let height = LEAST_HEIGHT.max(TITLE_HEIGHT + self.layout.legend_line * self.series.len() as u32 + 24);
        let size = (self.layout.width, height);
        // The legend goes from the best line's end downwards, as the eye meets the lines in the chart.
        let mut order: Vec<&Series> = self.series.iter().collect();
        order.sort_by(|left, right| right.last().total_cmp(&left.last()));
        let frame = |root: &Area<'_>| {
            title_of(root, &self.title)?;
            self.draw_mesh(root)
        };
        if !self.layout.has_layers {
            return drawing(size, &self.title, &|root| {
                frame(root)?;
                self.series.iter().try_for_each(|series| self.draw_series(root, series))?;
                (0..).zip(&order).try_for_each(|(place, series)| self.draw_legend(root, series, place))
            });
        }
        let (head, base) = layer(size, &|root| frame(root))?;
        let mut svg = format!("{head}\n{base}");
        for series in &self.series {
            let place = order.iter().position(|other| std::ptr::eq(*other, series)).unwrap_or(0);
            let (_, drawn) = layer(size, &|root| {
                self.draw_series(root, series)?;
                self.draw_legend(root, series, place as i32)
            })?;
            let label = escaped(&series.label);
            let _ = write!(svg, "<g class=\"series\" data-series=\"{label}\">\n{drawn}</g>\n");
        }
        svg.push_str("</svg>\n");
        Ok(finish_svg(&svg, &self.title))
    }

    /// Where the lines stand, and where the legend.
    fn split<'a>(&self, root: &Area<'a>) -> (Area<'a>, Area<'a>) {
        let (_, body) = root.split_vertically(TITLE_HEIGHT);
        body.split_horizontally(self.layout.width - self.layout.legend_width)
    }

    fn axes<'a, 'b>(
        &self,
        area: &'b Area<'a>,
    ) -> Result<ChartContext<'b, SVGBackend<'a>, Cartesian2d<Axis, Axis>>, Refusal> {
        Ok(ChartBuilder::on(area)
            .margin_right(12)
            .margin_left(8)
            .margin_bottom(8)
            .set_label_area_size(LabelAreaPosition::Left, 66)
            .set_label_area_size(LabelAreaPosition::Bottom, 46)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?)
    }

    fn draw_mesh(&self, root: &Area<'_>) -> Result<(), Refusal> {
        let (area, _) = self.split(root);
        let mut chart = self.axes(&area)?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style(plain_text(13))
            .axis_desc_style(plain_text(13))
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
        Ok(())
    }

    fn draw_series(&self, root: &Area<'_>, series: &Series) -> Result<(), Refusal> {
        let Pen { color, width, dash, marker } = series.pen;
        let (area, _) = self.split(root);
        let mut chart = self.axes(&area)?;
        let on_line: Vec<&Point> = series.points.iter().filter(|point| point.is_on_line).collect();
        if self.is_joined {
            if self.layout.has_layers && on_line.len() > 1 {
                let upper = on_line.iter().map(|point| (point.x, point.upper));
                let lower = on_line.iter().rev().map(|point| (point.x, point.lower));
                let band = upper.chain(lower).collect::<Vec<_>>();
                chart.draw_series([Polygon::new(band, color.mix(0.2).filled())])?;
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
    }

    /// The entry of a series, the `place`th from the top.
    fn draw_legend(&self, root: &Area<'_>, series: &Series, place: i32) -> Result<(), Refusal> {
        let Pen { color, width, dash, marker } = series.pen;
        let (_, legend) = self.split(root);
        let y = 16 + self.layout.legend_line as i32 * place;
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
        legend.draw(&Text::new(series.label.clone(), (48, y - 6), plain_text(13)))?;
        Ok(())
    }
}
