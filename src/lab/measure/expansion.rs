//! From a sweep file to points: every combination of its lists, each once, and why others are left out.

use super::input;
use super::point::{Entry, Offsets, Point, Subject};
use super::sampling::Figure;
use super::sweep::{Group, SweepFile, parse_latency_limit};
use crate::element::Instance;
use crate::lab::recorder::Skipped;
use crate::strategy::tuning::{Gpu, Resolved, Tuning, TuningError};
use crate::strategy::{Mode, ScanConfig, Strategy, StrategyChoice};
use crate::text::parse_array_size;
use std::collections::BTreeMap;

impl SweepFile {
    /// The points in the order in which they are measured, and what is left out. `peers` are those that can
    /// be run: their names. `auto` goes by the table of an H100.
    pub fn points(&self, peers: &[String]) -> (Vec<Point>, Vec<Skipped>) {
        self.points_by(peers, &Tuning::default())
    }

    /// What `auto` goes by on a GPU: the sweep's own table, or the committed one.
    ///
    /// # Errors
    /// When the sweep's own table has a row that does not fit the GPU.
    pub fn tuning_on(&self, gpu: Gpu) -> Result<Tuning, TuningError> {
        match &self.tuning {
            Some(table) => Tuning::with_table(table, gpu),
            None => Ok(Tuning::committed(gpu)),
        }
    }

    /// The points, with `auto` resolved by `tuning`.
    pub fn points_by(&self, peers: &[String], tuning: &Tuning) -> (Vec<Point>, Vec<Skipped>) {
        let mut points: BTreeMap<(Instance, u64, Offsets), Vec<Entry>> = BTreeMap::new();
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut skip = |what: String, why: &str| {
            let note = Skipped { what, why: why.to_owned() };
            if !skipped.contains(&note) {
                skipped.push(note);
            }
        };
        let latency_limit = parse_latency_limit(&self.limits.latency_up_to).unwrap_or(0);
        for group in &self.groups {
            for (&element, &operator) in
                group.types.iter().flat_map(|element| group.operators.iter().map(move |operator| (element, operator)))
            {
                let Ok(instance) = Instance::new(element, operator) else {
                    skip(format!("{element} {operator}"), "the operator is not defined on the type");
                    continue;
                };
                if !input::is_supported(instance) {
                    skip(instance.to_string(), "measured inputs are numbers");
                    continue;
                }
                let sizes = group.sizes.iter().filter_map(|text| parse_array_size(text, element.bytes()).ok());
                for (n, &offsets) in sizes.flat_map(|n| group.offsets.iter().map(move |offsets| (n, offsets))) {
                    let figures: Vec<Figure> = group
                        .figures
                        .iter()
                        .copied()
                        .filter(|&figure| figure != Figure::Latency || n <= latency_limit)
                        .collect();
                    let entries = points.entry((instance, n, offsets)).or_default();
                    let mut add = |subject: Subject| match entries.iter_mut().find(|entry| entry.subject == subject) {
                        Some(entry) => {
                            for &figure in &figures {
                                if !entry.figures.contains(&figure) {
                                    entry.figures.push(figure);
                                }
                            }
                        }
                        None => entries.push(Entry { subject, figures: figures.clone() }),
                    };
                    add(Subject::Memcpy);
                    add(Subject::Copy16);
                    for &mode in &group.modes {
                        if mode == Mode::InclusiveMinusInput && !instance.has_inverse() {
                            skip(format!("{mode} of {instance}"), "it exists for integer sums only");
                            continue;
                        }
                        for &choice in &group.strategies {
                            let (strategy, configs) = match choice {
                                StrategyChoice::Named(strategy) => {
                                    let configs = group.configs(strategy, element.bytes(), n);
                                    for &config in &configs {
                                        add(Subject::Scan { strategy, mode, config });
                                    }
                                    (strategy, configs)
                                }
                                StrategyChoice::Auto => {
                                    let Resolved { strategy, config } = tuning.resolve(instance, n);
                                    add(Subject::Auto { strategy, mode, config });
                                    (strategy, vec![config])
                                }
                            };
                            if group.bounds && strategy.row().fault_without_waiting.is_some() {
                                for config in configs {
                                    add(Subject::Bound { strategy, mode, config });
                                }
                            }
                        }
                        for name in group.peer_names(peers, &mut skip) {
                            if mode != Mode::InclusiveMinusInput {
                                add(Subject::Peer { name, mode });
                            }
                        }
                    }
                }
            }
        }
        let point = |((instance, n, offsets), entries)| Point { instance, n, offsets, entries };
        (points.into_iter().map(point).collect(), skipped)
    }
}

impl Group {
    /// The configurations of a strategy; what it does not depend on keeps its default, so that it runs once,
    /// and what the file leaves open is what is suggested for the size.
    fn configs(&self, strategy: Strategy, element_bytes: usize, n: u64) -> Vec<ScanConfig> {
        let default = ScanConfig::suggested(strategy, element_bytes, n);
        let list = |asked: &[u32], default: u32, matters: bool| {
            if matters && !asked.is_empty() { asked.to_vec() } else { vec![default] }
        };
        let vts = list(&self.vts, default.vt, strategy.has_tiles());
        let blocks = list(&self.blocks, default.block_threads, strategy.has_blocks());
        blocks
            .iter()
            .flat_map(|&block_threads| vts.iter().map(move |&vt| ScanConfig { vt, block_threads, ..default }))
            .collect()
    }

    fn peer_names(&self, available: &[String], skip: &mut impl FnMut(String, &str)) -> Vec<String> {
        // The copies are subjects of their own at every point.
        let is_copy = |name: &String| [Subject::Memcpy.name(), Subject::Copy16.name()].contains(name);
        let mut names: Vec<String> = Vec::new();
        for asked in &self.peers {
            if asked == "all" {
                names.extend(available.iter().filter(|name| !is_copy(name)).cloned());
                if available.is_empty() {
                    skip("peers".to_owned(), "this build has none; build it with the cargo feature 'peers'");
                }
            } else if available.contains(asked) {
                names.push(asked.clone());
            } else {
                skip(format!("peer {asked}"), "this build does not have it");
            }
        }
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::super::point::{Kind, bound_name};
    use super::super::sweep::SHIPPED;
    use super::super::sweep::tests::{parsed, shipped};
    use super::*;
    use crate::element::ElementType;

    #[test]
    fn every_shipped_sweep_is_usable_named_as_its_file_and_has_a_purpose() {
        for (name, _) in SHIPPED {
            let sweep = shipped(name);
            assert_eq!(&sweep.name, name);
            let (points, _) = sweep.points(&[]);
            assert!(!points.is_empty(), "{name}");
            for point in &points {
                assert_eq!(point.entries[0].subject, Subject::Memcpy, "{name}");
                assert_eq!(point.entries[1].subject, Subject::Copy16, "{name}");
            }
        }
    }

    #[test]
    fn the_vt_sweep_has_every_combination_at_four_sizes() {
        let (points, _) = shipped("vt").points(&[]);
        assert_eq!(points.iter().map(|point| point.n).collect::<Vec<_>>(), [1 << 16, 1 << 20, 1 << 24, 1 << 28]);
        for point in points {
            for strategy in [Strategy::ReduceThenScan, Strategy::Lookback] {
                let of = |entry: &&Entry| matches!(entry.subject, Subject::Scan { strategy: other, .. } if other == strategy);
                assert_eq!(point.entries.iter().filter(of).count(), 12 * 5);
            }
        }
    }

    #[test]
    fn the_size_sweep_has_four_sizes_an_octave_and_the_peers_beside_every_one() {
        let (points, _) = shipped("size").points(&["cub-3.5.0".to_owned()]);
        for element in [ElementType::I32, ElementType::U8] {
            let of_type: Vec<&Point> = points.iter().filter(|point| point.instance.element() == element).collect();
            for quarter in 48..=128_u64 {
                let bytes = (4 + quarter % 4) << (quarter / 4 - 2);
                let has = |point: &&&Point| point.n * element.bytes() as u64 == bytes;
                let point = of_type.iter().find(has).unwrap_or_else(|| panic!("{element}: {bytes} bytes"));
                for name in ["memcpy", "auto", "lookback", "reduce-then-scan", "cub-3.5.0"] {
                    let cold = |entry: &&Entry| entry.subject.name() == name && entry.figures.contains(&Figure::Cold);
                    assert!(point.entries.iter().any(|entry| cold(&entry)), "{name} at {bytes} bytes of {element}");
                }
            }
        }
        assert!(points.iter().any(|point| point.n == 100_000_000));
    }

    #[test]
    fn the_seeds_sweep_is_the_published_comparison() {
        let (points, _) = shipped("seeds").points(&["thrust-exclusive-scan".to_owned()]);
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].n, 100_000_000);
        let thrust = Subject::Peer { name: "thrust-exclusive-scan".to_owned(), mode: Mode::Exclusive };
        assert!(points[0].entries.iter().any(|entry| entry.subject == thrust));
    }

    #[test]
    fn latency_is_measured_at_small_sizes_only() {
        let (points, _) = shipped("size").points(&[]);
        for point in points {
            let has_latency = point.entries.iter().any(|entry| entry.figures.contains(&Figure::Latency));
            assert!(!has_latency || point.n <= 1 << 20, "{}", point.n);
        }
    }

    #[test]
    fn peers_that_are_not_there_are_noted_and_copies_are_not_doubled() {
        let text = "name = \"a\"\npurpose = \"b\"\n[[measure]]\nsizes = [\"1000\"]\nstrategies = [\"lookback\"]\npeers = [\"all\", \"none-such\"]";
        let sweep = SweepFile::parse(text, "test".to_owned()).unwrap();
        let (_, skipped) = sweep.points(&[]);
        assert_eq!(skipped.len(), 2);
        let (points, _) = sweep.points(&["memcpy".to_owned(), "copy-16-byte".to_owned(), "cub".to_owned()]);
        let names: Vec<String> = points[0].entries.iter().map(|entry| entry.subject.name()).collect();
        assert_eq!(names, ["memcpy", "copy-16-byte", "lookback", "cub"]);
    }

    #[test]
    fn offsets_make_points_of_their_own() {
        let sweep = parsed("sizes = [\"1000\"]\noffsets = [[0, 0], [1, 3]]\nstrategies = [\"lookback\"]").unwrap();
        let (points, _) = sweep.points(&[]);
        assert_eq!(points.iter().map(|point| <[u32; 2]>::from(point.offsets)).collect::<Vec<_>>(), [[0, 0], [1, 3]]);
        assert_ne!(points[0].seed(42), points[1].seed(42));
        assert_eq!([points[0].title(), points[1].title()], ["i32 sum n = 1000", "i32 sum n = 1000, offsets 1,3"]);
        let plain = parsed("sizes = [\"1000\"]\nstrategies = [\"lookback\"]").unwrap();
        assert_eq!(plain.points(&[]).0[0], points[0], "without offsets a point is what it was");
        // What a file does not say is not in its record, so that records from before agree with files of now.
        let text = toml::to_string(&plain).unwrap();
        assert!(!text.contains("offsets") && !text.contains("bounds"), "{text}");
        for (wrong, says) in [("[]", "empty"), ("[[32, 0]]", "32"), ("[[1]]", "no sweep file"), ("[[-1, 0]]", "-1")] {
            let measure = format!("sizes = [\"1000\"]\noffsets = {wrong}\nstrategies = [\"lookback\"]");
            let error = parsed(&measure).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn beside_a_strategy_that_waits_stands_the_same_without_waiting() {
        let measure = "sizes = [\"2^20\"]\nbounds = true\nmodes = [\"exclusive\"]\nstrategies = ";
        let names = |strategies: &str| {
            let (points, _) = parsed(&format!("{measure}{strategies}")).unwrap().points(&[]);
            for pair in points[0].entries.windows(2) {
                if let [Entry { subject: Subject::Scan { config, .. }, .. }, Entry { subject: bound, figures }] = pair
                    && let Subject::Bound { config: same, .. } = bound
                {
                    assert_eq!((same, figures, bound.kind()), (config, &Figure::ALL.to_vec(), Kind::Bound));
                }
            }
            points[0].entries[2..].iter().map(|entry| entry.subject.name()).collect::<Vec<_>>()
        };
        let waiting: Vec<&str> = Strategy::ALL
            .iter()
            .filter(|strategy| strategy.row().fault_without_waiting.is_some())
            .map(|strategy| strategy.name())
            .collect();
        let all: Vec<String> = waiting.iter().flat_map(|name| [(*name).to_owned(), bound_name(name)]).collect();
        assert_eq!(names(&format!("{waiting:?}")), all);
        assert_eq!(names("[\"reduce-then-scan\", \"single-block\"]"), ["reduce-then-scan", "single-block"]);
    }

    #[test]
    fn points_have_different_seeds() {
        let (points, _) = shipped("size").points(&[]);
        let seeds: std::collections::BTreeSet<u64> = points.iter().map(|point| point.seed(42)).collect();
        assert_eq!(seeds.len(), points.len());
    }
}
