//! From a sweep file to points: every combination of its lists, each once, and why others are left out.

use super::copies::COPY_KERNELS;
use super::point::{Entry, Point, PointKey, Subject};
use super::sampling::{Figure, shuffle};
use super::sweep::{Group, SWITCHES, SweepFile, parse_latency_limit};
use crate::element::Operator;
use crate::lab::peers::{self as libraries, PeerKind};
use crate::lab::recorder::Skipped;
use crate::lab::workload::Workload;
use crate::strategy::tuning::{Gpu, Resolved, Tuning, TuningError};
use crate::strategy::{Mode, ScanConfig, Strategy, StrategyChoice};
use crate::text::{format_size, parse_array_size, parse_count};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
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
        let mut points: BTreeMap<PointKey, Point> = BTreeMap::new();
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut skip = |what: String, why: &str| {
            let note = Skipped { what, why: why.to_owned() };
            if !skipped.contains(&note) {
                skipped.push(note);
            }
        };
        let latency_limit = parse_latency_limit(&self.limits.latency_up_to).unwrap_or(0);
        let is_first = self.process.is_none_or(|process| process == 1);
        for group in self.groups.iter().filter(|group| is_first || group.every_process) {
            for workload in group.workloads(&mut skip) {
                for (n, &offsets) in group
                    .sizes_of(workload, tuning, &mut skip)
                    .into_iter()
                    .flat_map(|n| group.offsets.iter().map(move |at| (n, at)))
                {
                    let figures: Vec<Figure> = group
                        .figures
                        .iter()
                        .copied()
                        .filter(|&figure| figure != Figure::Latency || n <= latency_limit)
                        .collect();
                    let point = Point { workload, n, offsets, entries: Vec::new() };
                    let entries = &mut points.entry(point.key()).or_insert(point).entries;
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
                    for &kernel in COPY_KERNELS.iter().filter(|_| group.copies) {
                        add(Subject::Copy(kernel));
                    }
                    for &mode in &group.modes {
                        if !workload.has_mode(mode) {
                            skip(format!("{mode} of {workload}"), workload.lacks_mode());
                            continue;
                        }
                        for &choice in &group.strategies {
                            let (strategy, configs) = match choice {
                                StrategyChoice::Named(strategy) => {
                                    let configs = group.configs(strategy, workload, n);
                                    for &config in &configs {
                                        add(Subject::Scan { strategy, mode, config });
                                    }
                                    (strategy, configs)
                                }
                                StrategyChoice::Auto => {
                                    // As a call knows it: whether every row begins where the array does within a vector.
                                    let row = workload.line_elements().filter(|_| offsets.input == 0);
                                    let Resolved { strategy, config } =
                                        tuning.choose(choice, workload.problem(n), n, row, offsets.bytes(workload));
                                    add(Subject::Auto { strategy, mode, config });
                                    (strategy, vec![config])
                                }
                            };
                            if group.bounds && strategy.row().fault_without_waiting.is_some() {
                                if !workload.is_plain() {
                                    skip(format!("bounds of {workload}"), "they are of flat scans of one type");
                                    continue;
                                }
                                for config in configs {
                                    add(Subject::Bound { strategy, mode, config });
                                }
                            }
                        }
                        for name in group.peer_names(peers, &mut skip) {
                            // One that was asked for by its name says why it is not measured.
                            let is_named = group.peers.contains(&name);
                            let lacks_it =
                                libraries::by_name(&name).is_ok_and(|peer| !peer.supports(workload, mode, n));
                            if mode == Mode::InclusiveMinusInput || (!is_named && lacks_it) {
                                continue;
                            }
                            add(match is_reading(&name) {
                                true => Subject::Reading { name },
                                false => Subject::Peer { name, mode },
                            });
                        }
                    }
                }
            }
        }
        let mut points: Vec<Point> = points.into_values().collect();
        if let Some(process) = self.process {
            shuffle(&mut points, &mut Pcg64Mcg::seed_from_u64(self.seed ^ (u64::from(process) << 32)));
        }
        (points, skipped)
    }
}

impl Group {
    /// What is scanned: every combination of problem, types, operator and length of segments that there is.
    fn workloads(&self, skip: &mut impl FnMut(String, &str)) -> Vec<Workload> {
        let mut workloads = Vec::new();
        for (&kind, &element) in self.problems.iter().flat_map(|kind| self.types.iter().map(move |of| (kind, of))) {
            let inputs = if self.inputs.is_empty() { vec![element] } else { self.inputs.clone() };
            let operators = if kind.has_operator() { self.operators.clone() } else { vec![Operator::Sum] };
            let has_segments = kind.takes_shape() || kind.has_runs();
            let segments = self.segments.iter().filter(|_| has_segments).map(|text| parse_count(text).ok());
            let segments: Vec<Option<u64>> = segments.collect();
            let segments = if segments.is_empty() { vec![None] } else { segments };
            for (&input, &operator) in inputs.iter().flat_map(|input| operators.iter().map(move |of| (input, of))) {
                for &segment in &segments {
                    match Workload::with_halves(kind, operator, input, element, segment) {
                        Ok(workload) => workloads.push(workload),
                        Err(error) => {
                            let problem = if kind.is_flat() { String::new() } else { format!("{kind}, ") };
                            let of = if input == element { String::new() } else { format!(" of {input}") };
                            skip(format!("{problem}{element} {operator}{of}"), &error.to_string());
                        }
                    }
                }
            }
        }
        workloads
    }

    /// Elements of the arrays; where there are rows or columns, whole ones.
    fn sizes_of(&self, workload: Workload, tuning: &Tuning, skip: &mut impl FnMut(String, &str)) -> Vec<u64> {
        let asked = self.sizes.iter().flat_map(|text| match text.as_str() {
            SWITCHES => tuning.switches(workload.instance()).flat_map(|n| [n, n + 1]).collect(),
            text => Vec::from_iter(parse_array_size(text, workload.input().bytes())),
        });
        let mut sizes: Vec<u64> = Vec::new();
        for n in asked {
            match n - n % workload.least() {
                0 => skip(
                    format!("{workload}, n = {}", format_size(n)),
                    "the array is shorter than a row, or a column of each matrix",
                ),
                whole => sizes.push(whole),
            }
        }
        sizes
    }

    /// The configurations of a strategy; what it does not depend on keeps its default, so that it runs once,
    /// and what the file leaves open is what is suggested for the size.
    fn configs(&self, strategy: Strategy, workload: Workload, n: u64) -> Vec<ScanConfig> {
        let default = Tuning::suggested(strategy, workload.problem(n), n).config;
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
        // The copies are subjects of their own at every point, and readings of those that name them.
        let is_floor =
            |name: &String| is_reading(name) || [Subject::Memcpy.name(), Subject::Copy16.name()].contains(name);
        let mut names: Vec<String> = Vec::new();
        for asked in &self.peers {
            if asked == "all" {
                names.extend(available.iter().filter(|name| !is_floor(name)).cloned());
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

/// Whether a peer of this build only reads.
fn is_reading(name: &str) -> bool {
    libraries::by_name(name).is_ok_and(|peer| peer.kind() == PeerKind::Reading)
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
            let of_type: Vec<&Point> = points.iter().filter(|point| point.workload.element() == element).collect();
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
        let has = |word: &&str| text.contains(word);
        assert_eq!(["offsets", "bounds", "problems", "inputs", "segments"].into_iter().find(has), None, "{text}");
        for (wrong, says) in [("[]", "empty"), ("[[32, 0]]", "32"), ("[[1]]", "no sweep file"), ("[[-1, 0]]", "-1")] {
            let measure = format!("sizes = [\"1000\"]\noffsets = {wrong}\nstrategies = [\"lookback\"]");
            let error = parsed(&measure).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    fn titles(measure: &str) -> Vec<String> {
        parsed(measure).unwrap().points(&[]).0.iter().map(Point::title).collect()
    }

    #[test]
    fn problems_make_points_of_their_own_and_flat_ones_come_first() {
        let measure = "sizes = [\"1000\"]\nproblems = [\"rows\", \"flat\", \"by-key\"]\nsegments = [\"2^5\", \"100\"]\n\
                       strategies = [\"auto\"]";
        assert_eq!(
            titles(measure),
            [
                "i32 sum n = 1000",
                // Whole rows of 32.
                "i32 sum, rows of 32 n = 992",
                "i32 sum, rows of 100 n = 1000",
                "i32 sum, by key in runs of 32 n = 1000",
                "i32 sum, by key in runs of 100 n = 1000",
            ]
        );
        let sweep = parsed(measure).unwrap();
        let (points, _) = sweep.points(&[]);
        let plain = parsed("sizes = [\"1000\"]\nstrategies = [\"auto\"]").unwrap().points(&[]).0;
        assert_eq!(points[0], plain[0], "a flat point is what it was");
        let seeds: std::collections::BTreeSet<u64> = points.iter().map(|point| point.seed(42)).collect();
        assert_eq!(seeds.len(), points.len());
        // Keys are of 4 bytes; the copies move as many bytes in all.
        assert_eq!([points[3].workload.bytes(1000), points[3].copied_bytes()], [12_000, 6000]);
        assert_eq!([points[0].workload.bytes(1000), points[0].copied_bytes()], [8000, 4000]);
        // 1001 bytes are none that the copy kernel moves.
        let odd =
            parsed("sizes = [\"1001\"]\ntypes = [\"u8\"]\nproblems = [\"flat\", \"reverse\"]\nstrategies = [\"auto\"]");
        let copied: Vec<u64> = odd.unwrap().points(&[]).0.iter().map(Point::copied_bytes).collect();
        assert_eq!(copied, [1001, 1008]);
    }

    #[test]
    fn what_is_loaded_may_be_of_another_type_and_what_there_is_not_is_noted() {
        let measure = "sizes = [\"1000\"]\ntypes = [\"u32\", \"f32\", \"bf16\"]\ninputs = [\"u8\", \"f16\"]\noperators = [\"sum\", \"max\"]\n\
                       problems = [\"flat\", \"recurrence\"]\nstrategies = [\"auto\"]";
        let (points, skipped) = parsed(measure).unwrap().points(&[]);
        let titles: Vec<String> = points.iter().map(|point| point.workload.to_string()).collect();
        assert_eq!(
            titles,
            [
                "u32 sum of u8",
                "u32 max of u8",
                "f32 sum of u8",
                "f32 sum of f16",
                "f32 max of f16",
                "bf16 sum of u8",
                "bf16 sum of f16",
            ]
        );
        let why = |what: &str| {
            let found = skipped.iter().find(|skipped| skipped.what == what);
            found.map_or_else(|| panic!("{what}: {skipped:?}"), |skipped| skipped.why.as_str())
        };
        // Nothing that u8 holds is less than every float.
        assert!(!why("f32 max of u8").is_empty());
        assert!(why("bf16 max of u8").contains("not defined on bf16"));
        assert!(why("recurrence, u32 sum of u8").contains("one type"));
        assert!(!why("u32 sum of f16").is_empty());
        // Bytes of the input, of which an element has one.
        assert!(
            self::titles("sizes = [\"1KiB\"]\ntypes = [\"u32\"]\ninputs = [\"u8\"]\nstrategies = [\"auto\"]")[0]
                .ends_with("n = 2^10")
        );
    }

    #[test]
    fn rows_that_are_longer_than_the_array_and_bounds_of_problems_are_noted() {
        let measure = "sizes = [\"64\"]\nproblems = [\"columns\"]\nsegments = [\"32\", \"128\"]\nstrategies = [\"lookback\"]\nbounds = true";
        let (points, skipped) = parsed(measure).unwrap().points(&[]);
        assert_eq!(
            points.iter().map(|point| point.workload.shape(point.n).unwrap().to_string()).collect::<Vec<_>>(),
            ["32x2"]
        );
        assert_eq!(points[0].entries.len(), 3);
        let notes: Vec<&str> = skipped.iter().map(|skipped| skipped.what.as_str()).collect();
        assert_eq!(notes, ["bounds of i32 sum, columns of 32", "i32 sum, columns of 128, n = 64"]);
    }

    #[test]
    fn auto_comes_to_what_a_call_of_the_problem_does() {
        let tuning = Tuning::default();
        let (points, _) = shipped("problems").points(&[]);
        let mut strategies = std::collections::BTreeSet::new();
        for point in &points {
            let autos = point.entries.iter().filter(|entry| matches!(entry.subject, Subject::Auto { .. }));
            for (strategy, mode, config) in autos.filter_map(|entry| entry.subject.scan()) {
                let row = point.workload.line_elements();
                let chosen = tuning.choose(StrategyChoice::Auto, point.workload.problem(point.n), point.n, row, [0, 0]);
                assert_eq!((chosen.strategy, chosen.config), (strategy, config), "{}", point.title());
                assert!(
                    crate::strategy::plan::Plan::new(&point.request(strategy, mode, config)).is_ok(),
                    "{}",
                    point.title()
                );
                strategies.insert(strategy);
            }
        }
        assert!(strategies.len() >= 2, "{strategies:?}");
    }

    #[test]
    fn the_problems_sweep_has_rows_and_columns_of_every_length_and_each_other_problem() {
        // Of a library that no build knows nothing is known to be missing.
        let (points, _) = shipped("problems").points(&["another".to_owned()]);
        let titles: Vec<String> = points.iter().map(Point::title).collect();
        for element in ["f32", "bf16"] {
            for power in 0..=26 {
                // As many columns as elements of a row, and as columns beside each other.
                let [row, column] = [1_u64 << power, 1 << (28 - power)];
                for scan in [format!("rows of {row}"), format!("columns of {column}")] {
                    let title = format!("{element} sum, {scan} n = 2^28");
                    assert!(titles.contains(&title), "{title}");
                }
            }
        }
        for title in [
            "i32 sum n = 2^28",
            "f32 sum n = 2^28",
            "f16 sum n = 2^28",
            "u32 sum of u8 n = 2^28",
            "reverse i32 sum n = 2^28",
            "reproducible f32 sum n = 2^28",
            "i32 sum, by key in runs of 61 n = 2^28",
            "f32 sum, by offsets in segments of 8 n = 2^28",
            "f32 recurrence n = 2^28",
            "reverse f32 recurrence n = 2^28",
            "f32 recurrence, rows of 8192 n = 2^26",
            "f32 recurrence, columns of 65536 n = 2^26",
        ] {
            assert!(titles.iter().any(|other| other == title), "{title}: {titles:?}");
        }
        let has_peer = |point: &&Point| point.entries.iter().any(|entry| entry.subject.name() == "another");
        assert_eq!(points.iter().filter(has_peer).count(), points.len());
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
                    assert_eq!((same, figures, bound.kind()), (config, &Figure::USUAL.to_vec(), Kind::Bound));
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
