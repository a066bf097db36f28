//! One reproducible run on the CPU device, as text and drawn from a seed.

use super::counted::DeviceCount;
use super::draw::Draw;
use super::scan_case::{CaseError, Fields, Words, check};
use super::workspace::WorkspaceStart;
use crate::cpu::{BlockOrder, Pause};
use crate::kernels::mutant::Mutant;
use crate::lab::cpu_device::CountedArrays;
use crate::lab::workload::{ProblemKind, Shape, Workload};
use crate::names::named;
use crate::strategy::plan::{Plan, ScanRequest, Step};
use crate::strategy::{Blocks, TileOrder};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Tiles that a launch must have to count as a schedule of the kernels as they are.
pub const MINIMUM_TILES: u64 = 8;
/// Warps a block that it must have.
pub const MINIMUM_WARPS: u32 = 2;

named! {
    /// What a load may return.
    pub enum Memory as "memory" {
        /// The last value stored: every interleaving is one of sequential consistency.
        Strong = "strong",
        /// Any store that the thread's view does not rule out; plain accesses are checked for races.
        Weak = "weak",
    }
}

/// Launches of kernels at one time that a text may ask for.
const MOST_TOGETHER: u32 = 16;

/// Ranks that tiles may be dealt to.
const MOST_RANKS: u32 = 8;

/// Something that happens in the middle of the first launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Nothing.
    None,
    /// A block stands still from its k-th scheduling point on, for so many switches of the others. k is `after_points`.
    Pause { block: u64, after_points: u64, switches: u64 },
    /// A block never runs on after its k-th scheduling point; then the workspace is cleaned.
    Kill { block: u64, after_points: u64 },
    /// The launch ends after its k-th scheduling point; then the workspace is cleaned.
    Abort { after_points: u64 },
    /// Another launch runs at the k-th access of the protocol, on a workspace of its own.
    Overlap { after_accesses: u64 },
}

impl Disturbance {
    /// A word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pause { .. } => "pause",
            Self::Kill { .. } => "kill",
            Self::Abort { .. } => "abort",
            Self::Overlap { .. } => "overlap",
        }
    }

    /// Whether the launch comes to its end, and is the only one while it runs.
    pub(super) const fn goes_through(&self) -> bool {
        matches!(self, Self::None | Self::Pause { .. })
    }
}

/// One run: a few launches of one scan on one workspace. The text form reproduces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The fault that the kernels have, if any.
    pub mutant: Option<&'static Mutant>,
    /// What loads may return.
    pub memory: Memory,
    /// Everything random in the run is drawn from it.
    pub seed: u64,
    /// What is scanned.
    pub workload: Workload,
    /// How, and how much; its problem is that of so many elements.
    pub request: ScanRequest,
    /// Blocks that may be started and not ended at one time.
    pub resident_blocks: u32,
    /// In which order blocks start.
    pub block_order: BlockOrder,
    /// Probability in percent that a scheduling point switches to another warp; `None` is round robin.
    pub preemption: Option<u32>,
    /// Whether plain and shared accesses are scheduling points too.
    pub plain_points: bool,
    /// Launches, one after the other; those behind the first have sizes of their own up to that of the first.
    pub launches: u32,
    /// Launches of kernels, whichever of these they are of, that are there at one time: blocks of the next one run with those
    /// of the one before, and wait for its end as its kernel says. 1 is one behind the end of the other.
    pub together: u32,
    /// Ranks that tiles are dealt to in turn, each with launches and a workspace of its own; 1 is one that has all.
    pub ranks: u32,
    /// How many elements there are as the device is told, where the host does not know it.
    pub count: Option<DeviceCount>,
    /// Launches that the workspace claims to have completed before.
    pub completed_epochs: u32,
    /// What its descriptors hold.
    pub workspace: WorkspaceStart,
    /// What happens in the middle of the first launch.
    pub disturbance: Disturbance,
}

impl Case {
    /// Whether the launch is possible, and the kernels as they are end: who has a static tile id waits for blocks that are
    /// not resident for ever.
    pub(super) fn can_end(&self) -> bool {
        let has_tickets = self.request.config.tile_order == TileOrder::Ticket;
        let is_resident = |step: &Step| step.grid_blocks <= u64::from(self.resident_blocks);
        Plan::new(&self.planned()).is_ok_and(|plan| has_tickets || plan.steps.iter().all(is_resident))
    }

    /// The arrays of a launch of `n` elements, where the device alone knows how many these are. None has room for more than the first
    /// one, for which there is a workspace.
    pub(super) fn counted(&self, workload: Workload, n: u64) -> Option<CountedArrays> {
        let count = self.count?;
        let first = count.arrays(self.workload, self.request.n)?;
        let without_room = DeviceCount { spare: 0, ..count };
        count.arrays(workload, n).filter(|arrays| arrays.n <= first.n).or_else(|| without_room.arrays(workload, n))
    }

    /// What the host plans for, which may be more than there is.
    pub(super) fn planned(&self) -> ScanRequest {
        match self.counted(self.workload, self.request.n) {
            None => self.request,
            Some(CountedArrays { workload, n, .. }) => ScanRequest { problem: workload.problem(n), n, ..self.request },
        }
    }

    /// Whether it could be read from its text: its problem is one of so many elements, and its launch possible and ending.
    pub(super) fn is_possible(&self) -> bool {
        self.check().is_ok() && self.can_end()
    }

    /// Tiles of the first launch, had the strategy any.
    pub fn tiles(&self) -> u64 {
        self.request.n.div_ceil(self.request.config.tile_elements()).max(1)
    }

    /// The same scan of so many elements, or as many as its rows and columns need.
    pub(super) fn sized(&self, n: u64) -> (Workload, ScanRequest) {
        let (workload, n) = self.workload.resized(self.request.n, n);
        (workload, ScanRequest { problem: workload.problem(n), n, ..self.request })
    }

    /// Changes the number of elements.
    pub(super) fn resize(&mut self, n: u64) {
        (self.workload, self.request) = self.sized(n);
    }

    /// Changes what is scanned, of so many elements.
    pub(super) fn reshape(&mut self, (workload, n): (Workload, u64)) {
        self.workload = workload;
        (self.request.problem, self.request.n) = (workload.problem(n), n);
    }

    /// Tiles of a launch of `n` elements; 0 in strategies without tiles.
    pub(super) fn tiles_of(&self, n: u64) -> u64 {
        let strategy = self.request.strategy;
        let (_, request) = self.sized(n);
        match () {
            () if !strategy.has_tiles() || strategy.row().shape.blocks == Blocks::Single => 0,
            // Columns are cut otherwise.
            () if request.problem.axis().is_some() => {
                Plan::new(&request).map_or(0, |plan| plan.steps.iter().map(|step| step.tiles).sum())
            }
            () => n.div_ceil(request.config.tile_elements()),
        }
    }

    /// Elements of a launch behind the first: most often of at least 8 tiles too.
    pub(super) fn later_size(&self, draw: &mut Draw) -> u64 {
        let n = self.request.n;
        let fewest = (MINIMUM_TILES - 1) * self.request.config.tile_elements();
        let below = if self.mutant.is_none() && draw.percent(75) { fewest.min(n - 1) } else { 0 };
        below + 1 + draw.below(n - below)
    }

    /// The pause of the first launch, if there is one.
    pub(super) fn pause(&self) -> Option<Pause> {
        match self.disturbance {
            Disturbance::Pause { block, after_points, switches } => Some(Pause { block, after_points, switches }),
            _ => None,
        }
    }
}

/// Whether its tiles may be dealt to ranks: one sequence of a problem that is given arrays, by blocks that stay.
pub(super) fn can_be_dealt(workload: Workload, request: &ScanRequest) -> bool {
    workload.kind() == ProblemKind::Reproducible && request.strategy.row().shape.kernel_of_deals.is_some()
}

/// Whether neighbours in memory belong to different scans.
pub(super) fn is_of_columns(kind: ProblemKind) -> bool {
    kind.needs_shape() && kind.line_elements(Shape { rows: 1, columns: 2 }) == Some(1)
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Words::of_scan(',', self.mutant, self.workload, &self.request, "type");
        words.add("n", self.request.n);
        words.add_workload(self.workload, self.request.n);
        words
            .add("order", self.request.config.tile_order)
            .add("memory", self.memory)
            .add("seed", self.seed)
            .add("resident", self.resident_blocks)
            .add("blocks", self.block_order)
            .add("preemption", self.preemption.map_or("fair".to_owned(), |percent| percent.to_string()))
            .add("plain-points", self.plain_points)
            .add("launches", self.launches)
            .add("epochs", self.completed_epochs)
            .add("workspace", self.workspace);
        if self.together > 1 {
            words.add("together", self.together);
        }
        if self.ranks > 1 {
            words.add("ranks", self.ranks);
        }
        if let Some(DeviceCount { spare, excess }) = self.count {
            words.add("count", format_args!("{spare}:{excess}"));
        }
        let disturbance = match self.disturbance {
            Disturbance::None => return formatter.write_str(&words.text),
            Disturbance::Pause { block, after_points, switches } => format!("{block}:{after_points}:{switches}"),
            Disturbance::Kill { block, after_points } => format!("{block}:{after_points}"),
            Disturbance::Abort { after_points: point } | Disturbance::Overlap { after_accesses: point } => {
                point.to_string()
            }
        };
        formatter.write_str(&words.add(self.disturbance.name(), disturbance).text)
    }
}

impl FromStr for Case {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        let mut fields = Fields::new(text.trim().split(','))?;
        let n = fields.value("n")?;
        let workload = fields.workload("type", n)?;
        let (mutant, mut request) = fields.scan(workload, n)?;
        request.config.tile_order = fields.value("order")?;
        let mut disturbance = Disturbance::None;
        if let Some([block, after_points, switches]) = fields.numbers("pause", ':')? {
            disturbance = Disturbance::Pause { block, after_points, switches };
        }
        if let Some([block, after_points]) = fields.numbers("kill", ':')? {
            disturbance = Disturbance::Kill { block, after_points };
        }
        if let Some([after_points]) = fields.numbers("abort", ':')? {
            disturbance = Disturbance::Abort { after_points };
        }
        if let Some([after_accesses]) = fields.numbers("overlap", ':')? {
            disturbance = Disturbance::Overlap { after_accesses };
        }
        let case = Self {
            mutant,
            memory: fields.value("memory")?,
            seed: fields.value("seed")?,
            workload,
            request,
            resident_blocks: fields.value("resident")?,
            block_order: fields.value("blocks")?,
            preemption: fields.unless("preemption", "fair")?,
            plain_points: fields.value("plain-points")?,
            launches: fields.value("launches")?,
            together: fields.numbers("together", ':')?.map_or(1, |[together]| together),
            ranks: fields.numbers("ranks", ':')?.map_or(1, |[ranks]| ranks),
            count: fields.numbers("count", ':')?.map(|[spare, excess]| DeviceCount { spare, excess }),
            completed_epochs: fields.value("epochs")?,
            workspace: fields.value("workspace")?,
            disturbance,
        };
        fields.end()?;
        case.check()?;
        Ok(case)
    }
}

impl Case {
    fn check(&self) -> Result<(), CaseError> {
        let fault = |key, value: &dyn fmt::Display, fault: &str| Err(CaseError::part(key, value, fault));
        if self.request.n == 0 {
            return fault("n", &0, "there is nothing to run");
        }
        if self.request.n > 1 << 24 {
            return fault("n", &self.request.n, "at most 2^24 elements: every thread is a coroutine");
        }
        if let Some(DeviceCount { spare, excess }) = self.count {
            let text = format!("{spare}:{excess}");
            if spare > 1 << 24 || excess > 1 << 33 {
                return fault(
                    "count",
                    &text,
                    "room for at most 2^24 elements more, and at most 2^33 more that are counted",
                );
            }
            if self.ranks > 1 || self.workload.counted_in(self.request.n).is_none() {
                let why = "the device is told no count where one array of numbers or segments by offsets are scanned, a matrix of one \
                           column or several matrices, or tiles are dealt to ranks";
                return fault("count", &text, why);
            }
        }
        if !(1..=1000).contains(&self.launches) {
            return fault("launches", &self.launches, "1 to 1000");
        }
        if !(1..=MOST_TOGETHER).contains(&self.together) {
            return fault("together", &self.together, "1 to 16 launches of kernels at one time");
        }
        if self.together > 1 && self.planned().n * u64::from(self.launches) > 1 << 24 {
            let why = "launches of at most 2^24 elements in all: all arrays are there at one time";
            return fault("together", &self.together, why);
        }
        if self.together > 1 && !self.disturbance.goes_through() {
            let why = "a launch that is cut short, or another one in its middle, comes one behind the end of the other";
            return fault("together", &self.together, why);
        }
        if !(1..=MOST_RANKS).contains(&self.ranks) {
            return fault("ranks", &self.ranks, "1 to 8 ranks that tiles are dealt to");
        }
        let is_alone = self.together == 1 && self.disturbance.goes_through() && !self.request.in_place;
        if self.ranks > 1 && !(can_be_dealt(self.workload, &self.request) && is_alone) {
            let why = "look-ahead over the problem 'reproducible' alone is dealt to ranks, all of it and not in place";
            return fault("ranks", &self.ranks, why);
        }
        if !(1..=4096).contains(&self.resident_blocks) {
            return fault("resident", &self.resident_blocks, "1 to 4096");
        }
        if let Some(percent) = self.preemption.filter(|&percent| percent > 100) {
            return fault("preemption", &percent, "fair, or 0 to 100 percent");
        }
        check(self.workload, &self.request, self.completed_epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan_case::{PLAIN, problems_of, workloads};
    use super::*;
    use crate::abi;
    use crate::element::Defined;
    use crate::strategy::{Strategy, StrategyRow};
    use std::collections::BTreeSet;

    #[test]
    fn a_case_comes_back_from_its_text() {
        let mutants = Mutant::all().expect("readable").iter().map(Some).chain([None]);
        for mutant in mutants {
            for seed in 0..40 {
                for memory in [Memory::Strong, Memory::Weak] {
                    let case = Case::draw(mutant, memory, seed);
                    assert_eq!(case.to_string().parse::<Case>().as_ref(), Ok(&case));
                    assert_eq!(Case::draw(mutant, memory, seed), case);
                }
            }
        }
    }

    #[test]
    fn a_fault_that_names_problems_is_drawn_of_those() {
        let mut named = 0;
        for mutant in Mutant::all().expect("readable").iter().filter(|mutant| !mutant.when.problems.is_empty()) {
            for name in mutant.when.problems.iter().filter(|&name| name != "all") {
                let kind: ProblemKind = name.parse().unwrap_or_else(|error| panic!("{mutant}: {error}"));
                assert_ne!(kind, ProblemKind::Flat, "{mutant}: that is what is drawn where none is named");
            }
            let all = problems_of(PLAIN, Some(mutant));
            assert!(!all.is_empty() && !all.contains(&ProblemKind::Flat), "{mutant}");
            assert_eq!(problems_of(&all[..1], Some(mutant))[..], all[..1]);
            assert!(all.contains(&Case::draw(Some(mutant), Memory::Weak, 1).workload.kind()), "{mutant}");
            named += 1;
        }
        assert!(named > 100, "{named}");
        let of_plain = Mutant::named("relaxed_tag").expect("one of the kernels'");
        assert_eq!(problems_of(ProblemKind::ALL, Some(of_plain))[..], *ProblemKind::ALL);
    }

    #[test]
    fn a_case_of_each_problem_names_it_and_comes_back_from_its_text() {
        for kind in ProblemKind::ALL {
            let (mut strategies, mut few, mut segments) = (BTreeSet::new(), 0, BTreeSet::new());
            for seed in 0..400 {
                let case = Case::draw_of(&[*kind], None, Memory::Weak, seed);
                let text = case.to_string();
                assert_eq!(text.parse::<Case>().as_ref(), Ok(&case), "{text}");
                assert_eq!(case.workload.kind(), *kind);
                assert_eq!(text.contains(&format!(",problem={kind},")), *kind != ProblemKind::Flat, "{text}");
                assert_eq!(case.workload.misfit(case.request.n), None, "{text}");
                strategies.insert(case.request.strategy);
                few += u64::from(case.tiles() < 4);
                segments.extend(case.workload.segment_elements());
            }
            // Those that take arrays, or columns, or combine tiles one after the other.
            let is_asked = |row: &StrategyRow| match kind {
                ProblemKind::Reproducible => row.is_reproducible,
                ProblemKind::ReproducibleColumns => row.shape.scans_columns_in_order(),
                ProblemKind::StridedRows => row.shape.takes_strides(),
                &kind if !kind.is_scan() => {
                    let verb = workloads(kind)[0].defined().map(Defined::verb).expect("it is defined");
                    row.shape.does(verb)
                }
                &kind if is_of_columns(kind) => row.shape.kernel_of_columns.is_some(),
                _ => row.shape.takes_arrays(),
            };
            let all: Vec<_> = Strategy::ALL.iter().filter(|strategy| is_asked(strategy.row())).collect();
            assert!(all.iter().all(|strategy| strategies.contains(strategy)), "{kind}: {strategies:?}");
            assert!((10..200).contains(&few), "{kind}: {few}");
            assert_eq!(segments.len() > 20, kind.takes_shape() || kind.has_runs(), "{kind}");
        }
        let one = |seed| Case::draw_of(&[ProblemKind::Flat], None, Memory::Weak, seed);
        assert!((0..40).all(|seed| one(seed) == Case::draw(None, Memory::Weak, seed)));
    }

    /// A misaligned array begins a tile earlier: 82 blocks wait here for one that finds no room among 81.
    #[test]
    fn static_tile_ids_have_room_for_all_blocks() {
        let text = "mutant=none,strategy=lookback,type=u32,operator=min,mode=exclusive,layout=packed-64,pattern=shuffle,\
                    composition=reduce-then-scan,vt=8,threads=64,in-place=false,input-offset=12,output-offset=0,n=41471,\
                    order=static,memory=weak,seed=8304,resident=81,blocks=reverse,preemption=100,plain-points=false,\
                    launches=1,epochs=0,workspace=zeros";
        let case: Case = text.parse().expect("a case");
        assert!(!case.can_end());
        assert!(Case { resident_blocks: 82, ..case.clone() }.can_end());
        let mut with_tickets = case;
        with_tickets.request.config.tile_order = TileOrder::Ticket;
        assert!(with_tickets.can_end());
    }

    #[test]
    fn what_is_drawn_has_enough_tiles_and_warps() {
        let (mut tiny, mut wide) = (0, 0);
        for seed in 0..2000 {
            let case = Case::draw(None, Memory::Weak, seed);
            let ScanRequest { config, strategy, n, .. } = case.request;
            assert!(config.block_threads >= 64, "{case}");
            let is_tiny = n <= 48 && case.request.instance().element().bytes() <= 2;
            if config.block_threads > 256 {
                // As many threads at one time as other cases have.
                assert!((2..=4).contains(&case.tiles()) && case.resident_blocks <= 2, "{case}");
                wide += 1;
            } else if is_tiny && matches!(strategy.row().shape.blocks, Blocks::Single | Blocks::Cluster) {
                tiny += 1;
            } else {
                assert!(case.tiles() >= 8, "{case}");
            }
        }
        assert!((20..200).contains(&wide) && (5..100).contains(&tiny), "{wide} wide, {tiny} tiny");
    }

    /// What a strategy can meet beyond the plain drawing is drawn for it, of the kernels as they are and soon.
    #[test]
    fn what_lies_beyond_the_usual_sizes_is_drawn_for_every_strategy_that_has_it() {
        let drawn: Vec<_> = (0..40_000).map(|seed| Case::draw(None, Memory::Strong, seed)).collect();
        for &strategy in Strategy::ALL.iter().filter(|strategy| strategy.has_tiles()) {
            let has = |what: &str, is: &dyn Fn(&Case) -> bool| {
                let found = drawn.iter().any(|case| case.request.strategy == strategy && is(case));
                assert!(found, "{strategy}: {what}");
            };
            let warps = |case: &Case| case.request.config.block_threads / abi::LOOKBACK_WARP_LANES;
            has("9 to 16 warps", &|case| (9..=16).contains(&warps(case)));
            has("more than 16 warps", &|case| warps(case) > 16);
            has("an odd number of more than 8 warps", &|case| warps(case) > 8 && warps(case) % 2 == 1);
            let row = strategy.row();
            if row.stress.windows.percent > 0 {
                has("more windows", &|case| case.tiles() >= row.stress.windows.cpu_tiles_of_more.0);
            }
            if matches!(row.shape.blocks, Blocks::Single | Blocks::Cluster) {
                let lead = |case: &Case| u64::from(case.request.input_offset % abi::LOOKBACK_VECTOR_BYTES);
                let bytes = |case: &Case| case.request.instance().element().bytes() as u64;
                has("both ends in one vector", &|case| {
                    bytes(case) <= 2 && lead(case) > 0 && lead(case) + case.request.n * bytes(case) < 16
                });
            }
        }
    }

    #[test]
    fn a_launch_counts_for_every_strategy_with_tiles() {
        for seed in 0..500 {
            let case = Case::draw(None, Memory::Strong, seed);
            let tiles = case.tiles_of(case.request.n);
            let strategy = case.request.strategy;
            let has_many = strategy.has_tiles() && strategy.row().shape.blocks != Blocks::Single;
            let wants = if has_many { case.tiles() } else { 0 };
            assert_eq!(tiles, wants, "{case}");
        }
    }

    #[test]
    fn texts_that_are_no_case_say_what_is_wrong() {
        let good = Case::draw(None, Memory::Strong, 1).to_string();
        let fault = |text: &str| text.parse::<Case>().expect_err(text).to_string();
        assert!(fault("").contains("key=value"));
        assert!(fault("seed=1").contains("a case needs n="));
        assert!(fault(&good.replace("seed=1", "seed=x")).contains("seed=x"));
        assert!(fault(&format!("{good},colour=red")).contains("colour=red"));
        assert!(fault(&good.replace("mutant=none", "mutant=none_such")).contains("none_such"));
        let n = good.split(',').find(|word| word.starts_with("n=")).expect("a size");
        for launches in [1, 2] {
            let nothing = good.replace(n, "n=0").replace("launches=1", &format!("launches={launches}"));
            assert!(fault(&nothing).contains("nothing to run"), "{nothing}");
        }
        let many = good.replace(n, "n=16777216").replace("launches=1", "launches=2");
        assert!(fault(&format!("{many},together=2")).contains("2^24 elements in all"), "{many}");
        let rows = "mutant=none,strategy=lookback,type=u32,operator=sum,mode=inclusive,layout=none,pattern=shuffle,\
                    composition=reduce-then-scan,vt=1,threads=64,in-place=false,input-offset=0,output-offset=0,n=200,\
                    problem=rows,shape=4x50,order=ticket,memory=weak,seed=1,resident=1,blocks=in-order,preemption=20,\
                    plain-points=false,launches=1,epochs=0,workspace=zeros";
        rows.parse::<Case>().expect("a case");
        format!("{rows},count=50:7").parse::<Case>().expect("a case");
        for (from, to, says) in [
            ("n=200", "n=201", "no such matrix"),
            ("problem=rows,", "", "no such segments"),
            ("shape=4x50", "run-length=50", "no such segments"),
            (",shape=4x50", "", "say how many"),
            ("problem=rows,shape=4x50", "problem=by-key", "say how many"),
            ("=lookback", "=naive", "naive"),
            ("in-place=false", "in-place=true,input-type=u8", "u8"),
            ("problem=rows", "problem=diagonals", "by-key"),
            ("epochs=0", "epochs=0,count=7", "count=7"),
            ("epochs=0", "epochs=0,count=99999999:0", "2^24 elements more"),
            ("epochs=0", "epochs=0,count=0:99999999999", "2^33 more"),
            ("launches=1,epochs=0", "launches=1000,epochs=0,together=2,count=9999999:0", "2^24 elements in all"),
            ("problem=rows,shape=4x50", "problem=offsets,run-length=50,count=50:7", "told no count"),
            (",problem=rows,shape=4x50", ",count=50:7", "told no count"),
        ] {
            assert!(fault(&rows.replace(from, to)).contains(says), "{to}: {}", fault(&rows.replace(from, to)));
        }
    }
}
