//! The plots of a record of `lookback compare`.
//!
//! Axes are drawn in logarithms to base 2 and labelled at powers of two, points outside are left out
//! rather than clamped, the legend stands beside the data, and every series has a colour of its own (a
//! palette that colour-blind people tell apart) and a marker of its own. Text, grid and background are
//! marked with classes, so that one file serves light and dark pages.

use super::axis::Axis;
use super::chart::{Chart, Point, QUARTILES, Series, Standing, places};
use super::error::ReportError;
use super::pen::Pen;
use super::svg::{Drawing, Plot, Refusal};
use crate::lab::record::{Record, Row};
use crate::lab::workload::Workload;
use crate::strategy::tuning::Tuning;
use crate::strategy::{ScanConfig, Strategy, StrategyChoice};
use crate::text::{format_power, format_size, significant};
use std::collections::BTreeMap;

/// A quantity on the vertical axis.
pub(super) struct Quantity {
    /// First part of the file name.
    pub(super) kind: &'static str,
    /// The axis, with its unit.
    axis: &'static str,
    /// What stands behind a figure.
    unit: &'static str,
    /// What it is, in a title.
    title: &'static str,
    /// What to know when reading it.
    caption: &'static str,
    /// Logarithmic or from zero.
    logarithmic: bool,
    /// Against n or against VT.
    against_vt: bool,
    /// What would leave all other lines at the bottom of a linear axis: told in the caption, and not drawn.
    left_out: &'static [Strategy],
    value: fn(&Row) -> Option<f64>,
    /// Between which values its samples lie, and what these are.
    spread: (&'static str, Spread),
}

/// A lower and an upper value of what a row has many samples of.
type Spread = fn(&Row) -> Option<(f64, f64)>;

const NO_SPREAD: (&str, Spread) = ("", |_| None);
const OF_SCHEDULES: (&str, Spread) = ("quartiles of 20 schedules", |row| {
    row.lookback_distance_lower_quartile_tiles.zip(row.lookback_distance_upper_quartile_tiles)
});

const GIGABYTES: &str = "GB/s, counting 2n elements";
const GIGABYTES_OF_ARRAYS: &str = "GB/s, counting every array once";
const MOVES: &str = "element-moves per element";
const DISTANCE: &str = "tiles looked back over";

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        kind: "throughput-by-size",
        axis: GIGABYTES,
        unit: "GB/s",
        title: "Throughput by size",
        caption: "Median of the timed runs. Each element counts once read and once written, whatever a strategy moves in truth.",
        logarithmic: true,
        against_vt: false,
        left_out: &[],
        value: |row| row.gigabytes_per_second,
        spread: NO_SPREAD,
    },
    Quantity {
        kind: "throughput-by-vt",
        axis: GIGABYTES,
        unit: "GB/s",
        title: "Throughput by values per thread",
        caption: "Median of the timed runs. Where VT is not a multiple of a 16-byte vector, accesses are narrower too.",
        logarithmic: false,
        against_vt: true,
        left_out: &[],
        value: |row| row.gigabytes_per_second,
        spread: NO_SPREAD,
    },
    Quantity {
        kind: "time-by-size",
        axis: "µs a scan",
        unit: "µs",
        title: "Time by size",
        caption: "Median of the timed runs: what a scan costs where launches, not memory, take the time.",
        logarithmic: true,
        against_vt: false,
        left_out: &[],
        value: |row| row.time_us,
        spread: (QUARTILES, |row| row.time_lower_quartile_us.zip(row.time_upper_quartile_us)),
    },
    Quantity {
        kind: "moves-by-size",
        axis: MOVES,
        unit: "moves per element",
        title: "Element-moves by size",
        caption: "Reads and writes of the arrays' elements, counted by the CPU device: one of each array is the least, which are 2 of a flat scan.",
        logarithmic: false,
        against_vt: false,
        left_out: &[Strategy::Naive],
        value: |row| row.element_moves_per_element,
        spread: NO_SPREAD,
    },
    Quantity {
        kind: "moves-by-vt",
        axis: "moves per element, with spines",
        unit: "moves per element",
        title: "Element-moves by values per thread",
        caption: "Reads and writes of the array's elements and of the spines, counted by the CPU device: small tiles make long spines.",
        logarithmic: false,
        against_vt: true,
        left_out: &[],
        value: |row| Some(row.element_moves_per_element? + row.spine_moves_per_element.unwrap_or(0.0)),
        spread: NO_SPREAD,
    },
    Quantity {
        kind: "work-by-size",
        axis: "operator applications per element",
        unit: "applications per element",
        title: "Work by size",
        caption: "Operator applications, counted by the CPU device: a sequential scan makes one an element.",
        logarithmic: true,
        against_vt: false,
        left_out: &[],
        value: |row| row.work_per_element,
        spread: NO_SPREAD,
    },
    Quantity {
        kind: "distance-by-size",
        axis: DISTANCE,
        unit: "tiles",
        title: "Look-back distance by size",
        caption: "Mean of the tiles that looked back, the median of 20 random schedules of the CPU device; a GPU's order of blocks is another.",
        logarithmic: false,
        against_vt: false,
        left_out: &[],
        value: |row| row.lookback_distance_median_tiles,
        spread: OF_SCHEDULES,
    },
    Quantity {
        kind: "distance-by-vt",
        axis: DISTANCE,
        unit: "tiles",
        title: "Look-back distance by values per thread",
        caption: "Mean of the tiles that looked back, the median of 20 random schedules of the CPU device; a GPU's order of blocks is another.",
        logarithmic: false,
        against_vt: true,
        left_out: &[],
        value: |row| row.lookback_distance_median_tiles,
        spread: OF_SCHEDULES,
    },
];

/// All plots that the rows have data for: at least two sizes, or two VTs at one size, of one instance and
/// mode. Wrong results and failures are left out.
///
/// # Errors
/// When the drawing library refuses.
pub fn plots(record: &Record) -> Result<Vec<Plot>, ReportError> {
    let mut plots = Vec::new();
    for family in families(record) {
        // What is read and written is 2n elements of one array and another of the same type.
        let is_flat = family.rows.iter().all(|row| row.workload().is_ok_and(Workload::is_plain));
        for quantity in QUANTITIES {
            let data =
                if quantity.against_vt { by_vt(&family.rows, quantity) } else { by_size(&family.rows, quantity) };
            let Some(data) = data else { continue };
            let name = format!("{}-{}", quantity.kind, family.slug);
            let title = format!("{}: {}{}", quantity.title, family.title, data.where_);
            let caption = caption(quantity, &family.rows);
            plots.push(Plot::drawn(name, title.clone(), caption, || draw(&title, data, quantity, is_flat))?);
        }
    }
    Ok(plots)
}

/// What to know when reading a plot, and how far what it leaves out would reach.
fn caption(quantity: &Quantity, rows: &[&Row]) -> String {
    let mut caption = quantity.caption.to_owned();
    for &strategy in quantity.left_out {
        let of_strategy = rows.iter().filter(|row| row.strategy == StrategyChoice::Named(strategy));
        if let Some(most) = of_strategy.filter_map(|row| (quantity.value)(row)).reduce(f64::max) {
            caption.push_str(&format!(
                " Left out: {strategy}, with up to {} {}.",
                significant(most, 12),
                quantity.unit
            ));
        }
    }
    caption
}

/// Rows that compute the same and so can stand in one plot.
struct Family<'a> {
    title: String,
    slug: String,
    rows: Vec<&'a Row>,
}

fn families(record: &Record) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for row in record.rows.iter().filter(|row| row.verified) {
        let mut title = row.scan();
        if row.input_offset_bytes != 0 || row.output_offset_bytes != 0 {
            title.push_str(&format!(", offsets {} and {}", row.input_offset_bytes, row.output_offset_bytes));
        }
        match families.iter_mut().find(|family| family.title == title) {
            Some(family) => family.rows.push(row),
            None => {
                let slug = title.replace(", ", "-").replace(' ', "-");
                families.push(Family { title, slug, rows: vec![row] });
            }
        }
    }
    families
}

/// What a plot shows.
struct Data {
    series: Vec<Series>,
    /// Continues the title: the size of a VT sweep.
    where_: String,
}

/// What beside n tells configurations of one strategy apart.
fn configuration(row: &Row) -> impl Ord + use<> {
    let names = (row.pattern, row.composition, row.descriptor, row.tile_order);
    (row.vt, row.block_threads, names)
}

/// Whether the row ran in the configuration that is taken where nobody chooses.
fn is_suggested(row: &Row) -> bool {
    // `auto` has one configuration a size.
    let StrategyChoice::Named(strategy) = row.strategy else { return true };
    let suggested = row.workload().map_or_else(
        |_| ScanConfig::suggested(strategy, row.element.bytes(), row.n),
        |workload| Tuning::suggested(strategy, workload.problem(row.n), row.n).config,
    );
    row.vt.is_none_or(|vt| vt == suggested.vt)
        && row.block_threads.is_none_or(|threads| threads == suggested.block_threads)
        && row.pattern.is_none_or(|pattern| pattern == suggested.pattern)
        && row.composition.is_none_or(|composition| composition == suggested.composition)
        && row.descriptor == suggested.descriptor
        && row.tile_order.is_none_or(|order| order == suggested.tile_order)
}

fn by_size(rows: &[&Row], quantity: &Quantity) -> Option<Data> {
    let mut series = Vec::new();
    let is_drawn = |choice: &StrategyChoice| match choice {
        StrategyChoice::Named(strategy) => !quantity.left_out.contains(strategy),
        StrategyChoice::Auto => true,
    };
    for strategy in StrategyChoice::ALL.iter().copied().filter(is_drawn) {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.strategy == strategy && row.n > 0).collect();
        // Of a sweep's configurations the one that ran at most sizes; the first of several such.
        let mut sizes = BTreeMap::new();
        for row in &rows {
            *sizes.entry(configuration(row)).or_insert(0) += 1;
        }
        let most = sizes.values().copied().max().unwrap_or(0);
        let Some(chosen) = rows.iter().map(|row| configuration(row)).find(|key| sizes[key] == most) else { continue };
        let mut sizes: Vec<u64> = rows.iter().map(|row| row.n).collect();
        sizes.sort_unstable();
        sizes.dedup();
        // At each size what is suggested for it, or that one.
        let points = sizes.into_iter().filter_map(|n| {
            let mut of_size = rows.iter().filter(|row| row.n == n);
            let row = of_size
                .clone()
                .find(|row| is_suggested(row))
                .or_else(|| of_size.find(|row| configuration(row) == chosen))?;
            Some((n as f64, (quantity.value)(row)?, (quantity.spread.1)(row)))
        });
        let (label, pen) = (strategy.name().to_owned(), Pen::of_choice(strategy, 0));
        let points = in_order(points, quantity, |n| format!("{label}, n = {}", format_size(n as u64)));
        series.push(Series { label, pen, points });
    }
    finish(series, String::new())
}

fn by_vt(rows: &[&Row], quantity: &Quantity) -> Option<Data> {
    // At the size with most VTs; the largest of several such.
    let mut vts: BTreeMap<u64, std::collections::BTreeSet<u32>> = BTreeMap::new();
    // What `auto` came to is one configuration a size.
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.chosen_strategy.is_none()).collect();
    for row in &rows {
        vts.entry(row.n).or_default().extend(row.vt);
    }
    let n = *vts.iter().max_by_key(|(n, vts)| (vts.len(), **n))?.0;
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.n == n && row.vt.is_some()) {
        let mut names: Vec<String> = Vec::new();
        names.extend(row.pattern.map(|pattern| pattern.to_string()));
        names.extend(row.composition.map(|composition| composition.to_string()));
        names.extend(row.descriptor.map(|descriptor| descriptor.to_string()));
        names.extend(row.tile_order.map(|order| order.to_string()));
        groups.entry((row.strategy, row.block_threads, names)).or_default().push(row);
    }
    let several = |strategy| groups.keys().filter(|(other, ..)| *other == strategy).count() > 1;
    let blocks_differ = |strategy| {
        let mut blocks: Vec<_> = groups.keys().filter(|(other, ..)| *other == strategy).map(|key| key.1).collect();
        blocks.dedup();
        blocks.len() > 1
    };
    let mut series: Vec<Series> = Vec::new();
    let mut variants = BTreeMap::new();
    for ((strategy, block, names), rows) in &groups {
        let points =
            rows.iter().filter_map(|row| Some((f64::from(row.vt?), (quantity.value)(row)?, (quantity.spread.1)(row))));
        let mut label = strategy.name().to_owned();
        match block {
            Some(block) if blocks_differ(*strategy) => label.push_str(&format!(", {block} threads")),
            _ if several(*strategy) => label.push_str(&format!(", {}", names.join(", "))),
            _ => {}
        }
        let points = in_order(points, quantity, |vt| format!("{label}, VT {vt}"));
        if points.len() < 2 {
            continue;
        }
        let variant = variants.entry(*strategy).or_insert(0);
        series.push(Series { label, pen: Pen::of_choice(*strategy, *variant), points });
        *variant += 1;
    }
    finish(series, format!(", n = {}", format_power(n as f64)))
}

/// Points in the order of x, one an x, and none that the axes cannot hold; `what` names the one at an x.
fn in_order(
    points: impl Iterator<Item = (f64, f64, Option<(f64, f64)>)>,
    quantity: &Quantity,
    what: impl Fn(f64) -> String,
) -> Vec<Point> {
    let fits = |y: f64| y.is_finite() && if quantity.logarithmic { y > 0.0 } else { y >= 0.0 };
    let mut points: Vec<_> = points.filter(|&(x, y, _)| x > 0.0 && fits(y)).collect();
    points.sort_by(|left, right| left.0.total_cmp(&right.0));
    points.dedup_by(|next, first| next.0 == first.0);
    let exact = |(x, y, spread): (f64, f64, Option<(f64, f64)>)| {
        let (lower, upper) = spread.filter(|&(lower, upper)| fits(lower) && fits(upper)).unwrap_or((y, y));
        Point { x, y, lower, upper, standing: Standing::OnLine, is_trusted: true, what: what(x) }
    };
    points.into_iter().map(exact).collect()
}

fn finish(mut series: Vec<Series>, where_: String) -> Option<Data> {
    series.retain(|series| !series.points.is_empty());
    (places(&series) >= 2).then_some(Data { series, where_ })
}

fn draw(title: &str, data: Data, quantity: &Quantity, is_flat: bool) -> Result<Drawing, Refusal> {
    let axis = if quantity.axis == GIGABYTES && !is_flat { GIGABYTES_OF_ARRAYS } else { quantity.axis };
    let points = || data.series.iter().flat_map(|series| &series.points);
    let x = Axis::powers(points().map(|point| point.x), 12);
    let ys = points().flat_map(|point| [point.y, point.lower, point.upper]);
    let chart = Chart {
        title: title.to_owned(),
        x_description: if quantity.against_vt { "VT, values per thread" } else { "n, elements" },
        y_description: axis.to_owned(),
        unit: quantity.unit,
        x,
        y: if quantity.logarithmic { Axis::powers(ys, 9) } else { Axis::from_zero(ys) },
        series: data.series,
        band: quantity.spread.0,
        reference: None,
        is_joined: true,
    };
    chart.drawing()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::record::tests::{header, outcome, request, row_of};
    use crate::strategy::Strategy;

    fn record(kind: &str, rows: impl IntoIterator<Item = (Strategy, u64, u32)>) -> Record {
        let mut record = Record::from(header(kind));
        for (strategy, n, vt) in rows {
            record.rows.push(row_of(&request(strategy, n, vt), &outcome(n, kind == "cuda")));
        }
        record
    }

    #[test]
    fn records_with_little_in_them_have_no_plots_and_do_not_panic() {
        for kind in ["cpu", "cuda"] {
            assert_eq!(plots(&record(kind, [])).unwrap(), []);
            assert_eq!(plots(&record(kind, [(Strategy::Lookback, 1000, 32)])).unwrap(), []);
            assert_eq!(plots(&record(kind, [(Strategy::Lookback, 0, 32), (Strategy::Lookback, 1, 32)])).unwrap(), []);
            let one_size = Strategy::ALL.iter().map(|&strategy| (strategy, 1000, 32));
            assert_eq!(plots(&record(kind, one_size)).unwrap(), []);
        }
    }

    #[test]
    fn two_sizes_or_two_vts_make_a_plot() {
        let kinds = |record: &Record| plots(record).unwrap().into_iter().map(|plot| plot.name).collect::<Vec<_>>();
        let sizes = record("cuda", [(Strategy::Lookback, 1 << 10, 32), (Strategy::Lookback, 1 << 30, 32)]);
        assert_eq!(kinds(&sizes), ["throughput-by-size-u32-sum-inclusive", "time-by-size-u32-sum-inclusive"]);
        let vts = record("cuda", [(Strategy::Lookback, 1 << 10, 1), (Strategy::Lookback, 1 << 10, 64)]);
        assert_eq!(kinds(&vts), ["throughput-by-vt-u32-sum-inclusive"]);
    }

    #[test]
    fn auto_has_one_line_by_size_whatever_it_came_to_and_none_by_vt() {
        let lookback = [(Strategy::Lookback, 1 << 10, 8), (Strategy::Lookback, 1 << 20, 8)];
        let mut record = record("cuda", lookback.into_iter().chain([(Strategy::Lookback, 1 << 20, 16)]));
        let without = plots(&record).unwrap();
        for (strategy, n, vt) in [(Strategy::SingleBlock, 1 << 10, 4), (Strategy::OneWave, 1 << 20, 32)] {
            record.rows.push(row_of(&request(strategy, n, vt), &outcome(n, true)).chosen_by_auto());
        }
        let with = plots(&record).unwrap();
        assert_eq!(with.len(), without.len());
        for (with, without) in with.iter().zip(&without) {
            let labels = with.svg.matches("data-series=\"auto\"").count();
            assert_eq!(labels, usize::from(with.name.contains("by-size")), "{}", with.name);
            assert!(!with.svg.contains("one-wave"), "{}", with.name);
            assert_eq!(with == without, labels == 0, "{}", with.name);
        }
    }

    #[test]
    fn plots_are_deterministic_and_well_formed() {
        let rows = || {
            [1u64 << 10, 1 << 20, 3_000_000].into_iter().flat_map(|n| Strategy::ALL.iter().map(move |&s| (s, n, 32)))
        };
        let first = plots(&record("cpu", rows())).unwrap();
        assert!(!first.is_empty());
        assert_eq!(first, plots(&record("cpu", rows())).unwrap());
        for plot in first {
            assert!(!plot.svg.contains("NaN") && !plot.svg.contains("inf"), "{}", plot.name);
            for tag in plot.svg.split('<') {
                assert!(tag.matches("class=").count() <= 1, "two classes in <{tag}");
            }
        }
    }

    #[test]
    fn moves_are_linear_and_what_would_hide_the_others_is_told_instead() {
        let strategies = [(Strategy::Lookback, 2.0), (Strategy::Blelloch, 4.0), (Strategy::Naive, 8192.0)];
        let sizes = [1 << 10, 1 << 14];
        let rows = strategies.iter().flat_map(|&(strategy, _)| sizes.map(|n| (strategy, n, 32)));
        let mut record = record("cpu", rows);
        for row in &mut record.rows {
            let of = strategies.iter().find(|(strategy, _)| row.strategy == StrategyChoice::Named(*strategy));
            row.element_moves_per_element = of.map(|(_, moves)| *moves);
            row.work_per_element = of.map(|(_, moves)| *moves);
        }
        let plots = plots(&record).unwrap();
        let moves = plots.iter().find(|plot| plot.name.starts_with("moves-by-size")).unwrap();
        assert!(!moves.svg.contains("data-series=\"naive\"") && moves.svg.contains("data-series=\"blelloch\""));
        assert!(moves.caption.ends_with("Left out: naive, with up to 8192 moves per element."), "{}", moves.caption);
        // From 0 in even steps: 0, 1, 2, 3, 4.
        let svg = moves.svg.replace('\n', "");
        assert!([">0<", ">1<", ">2<", ">3<", ">4<"].iter().all(|tick| svg.contains(tick)), "{svg}");
        let work = plots.iter().find(|plot| plot.name.starts_with("work-by-size")).unwrap();
        assert!(work.svg.contains("data-series=\"naive\""));
    }

    #[test]
    fn a_look_back_distance_is_drawn_over_many_schedules_or_not_at_all() {
        let rows = || [1 << 14, 1 << 16, 1 << 18].map(|n| (Strategy::Lookback, n, 32));
        let distance = |record: &Record| {
            let plots = plots(record).unwrap();
            plots.into_iter().find(|plot| plot.name.starts_with("distance-by-size"))
        };
        let mut record = record("cpu", rows());
        assert!(record.rows.iter().all(|row| row.lookback_distance_tiles.is_some()));
        assert_eq!(distance(&record), None, "one random schedule is no trend");
        let distances: Vec<f64> = (0..20).map(|seed| 1.0 + f64::from(seed) / 10.0).collect();
        record.rows = record.rows.into_iter().map(|row| row.with_schedules(&distances)).collect();
        assert_eq!(record.rows[0].lookback_schedules, Some(20));
        let plot = distance(&record).unwrap();
        assert!(plot.title.starts_with("Look-back distance by size"), "{}", plot.title);
        assert!(plot.svg.contains("<polygon fill-opacity") && plot.svg.contains("quartiles of 20 schedules"));
        assert!(plot.svg.contains("<title>lookback, n = 2^14: 1.950 tiles</title>"));
    }

    #[test]
    fn wrong_results_are_not_plotted() {
        let mut record = record("cuda", [(Strategy::Lookback, 1 << 10, 32), (Strategy::Lookback, 1 << 20, 32)]);
        record.rows[1].verified = false;
        assert_eq!(plots(&record).unwrap(), []);
    }
}
