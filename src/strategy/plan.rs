//! A strategy as data: what is asked of a device, checked, and the launches that do it. Both devices execute the same
//! plan.

use super::config::access_width;
use super::planner::Planner;
use super::shape::{Shape, Tiling};
use super::{Alignment, Blocks, Composition, ConfigError, Descriptor, Mode, Pattern, ScanConfig, Strategy, TileOrder};
use crate::abi;
use crate::element::{Defined, Histogram, Instance, Problem, Verb};
use crate::ranks::Hand;

pub use super::kernel::Kernel;
pub use super::planner::{KernelConfig, KernelKey, Place, RegionKey, Step};

/// What is asked of a device: one scan of `n` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanRequest {
    /// What is loaded, scanned, published and stored.
    pub problem: Problem,
    /// The strategy.
    pub strategy: Strategy,
    /// What is computed.
    pub mode: Mode,
    /// The choices inside the strategy.
    pub config: ScanConfig,
    /// Elements.
    pub n: u64,
    /// Whether the output replaces the input.
    pub in_place: bool,
    /// Address of the input modulo [`ScanRequest::OFFSETS`], in bytes; a multiple of the element size.
    pub input_offset: u32,
    /// Address of the output modulo [`ScanRequest::OFFSETS`], in bytes; the same as the input's if in place.
    pub output_offset: u32,
    /// Elements of a row, as the arrays of the launch say, where the problem is one of rows: tiles of whole rows wait for nobody.
    pub row: Option<u64>,
    /// Which tiles these are, where they are dealt to several ranks.
    pub hand: Option<Hand>,
}

impl ScanRequest {
    /// What addresses are told apart by: where they lie in a sector of the L2 cache, in bytes.
    pub const OFFSETS: u32 = abi::LOOKBACK_SECTOR_BYTES;

    /// Of the operator's own values, from one array into another one, both of which begin at a sector.
    pub const fn aligned(instance: Instance, strategy: Strategy, mode: Mode, config: ScanConfig, n: u64) -> Self {
        Self::of(Problem::plain(instance), strategy, mode, config, n)
    }

    /// The same of any problem, all of whose elements are one rank's.
    pub const fn of(problem: Problem, strategy: Strategy, mode: Mode, config: ScanConfig, n: u64) -> Self {
        Self {
            problem,
            strategy,
            mode,
            config,
            n,
            in_place: false,
            input_offset: 0,
            output_offset: 0,
            row: None,
            hand: None,
        }
    }

    /// The operator on what is scanned.
    ///
    /// # Panics
    /// If that is what a user has defined.
    pub const fn instance(&self) -> Instance {
        self.problem.instance().expect("the scan of an array of numbers")
    }

    /// Of the columns of a narrow matrix the scan of its rows as elements, by blocks that stay, if the descriptors that are asked for
    /// hold the state of a row; any other request as it is.
    fn narrowed(&self) -> Self {
        let stays = self.strategy.row().shape.blocks == Blocks::Persistent;
        let narrow = self.problem.defined().filter(|_| stays).and_then(|defined| defined.narrow(self.n));
        let (Some(defined), Some(axis)) = (narrow, self.problem.axis()) else { return *self };
        let rows = Problem::from(defined);
        let holds = self.config.descriptor.is_none_or(|descriptor| descriptor.holds() >= rows.packed_bytes());
        let are_aligned = [self.input_offset, self.output_offset].iter().all(|offset| {
            // The widest row is as many bytes as vectors have.
            offset.is_multiple_of(rows.access_bytes() as u32)
        });
        if holds && are_aligned { Self { problem: rows, n: axis.length, ..*self } } else { *self }
    }

    /// Below it lie the offsets that a strategy tells apart.
    pub fn offsets_that_matter(strategy: Strategy) -> u32 {
        let has_copies = strategy.row().shape.blocks == Blocks::Persistent;
        if has_copies { Self::OFFSETS } else { abi::LOOKBACK_VECTOR_BYTES }
    }
}

/// The launches of one scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Launches in order; each sees what the ones before it wrote. Empty if n is 0.
    pub steps: Vec<Step>,
    /// Bytes of scratch memory (temporary arrays and spines).
    pub scratch_bytes: u64,
    /// Tile descriptors that the plan's launches need, 0 if none.
    pub descriptors: u64,
    /// How they are laid out.
    pub layout: Descriptor,
    /// Bytes of one descriptor, flags and slots together.
    pub descriptor_bytes: u64,
    /// Widest access of a lane in bytes: the 16 of a vector, or less where VT is not a multiple.
    pub access_bytes: u32,
}

impl RegionKey {
    /// Those of a plan.
    pub const fn of(plan: &Plan) -> Self {
        Self { layout: plan.layout, descriptor_bytes: plan.descriptor_bytes }
    }
}

impl Plan {
    /// Whether its launches may begin while the one before drains, on GPUs that know such launches. Behind a kernel that does not let
    /// them, a user's for instance, they begin 0.25 µs later than ordinary ones (H200), so that a scan of one block or one cluster,
    /// which is over in little more than a microsecond, is an ordinary launch.
    pub fn begins_early(&self) -> bool {
        let is_small =
            |step: &Step| matches!(step.kernel.strategy().row().shape.blocks, Blocks::Single | Blocks::Cluster);
        !(self.steps.len() == 1 && self.steps.iter().all(is_small))
    }

    /// # Errors
    /// When the configuration cannot be launched; the error says what to choose instead.
    pub fn new(request: &ScanRequest) -> Result<Self, ConfigError> {
        let request = &request.narrowed();
        let mut planner = Self::planner(request)?;
        let has_vectors = request.strategy.has_tiles();
        let bytes = request.problem.access_bytes();
        let access_bytes = if has_vectors { access_width(planner.config.vt, bytes) } else { 1 } * bytes as u32;
        // Of no elements there is a total, too, and other ranks may have some.
        if request.n > 0 || request.problem.verb() == Verb::Total || request.hand.is_some() {
            planner.mark_segments();
            let kernel_of_columns = planner.shape.kernel_of_columns.filter(|_| request.problem.axis().is_some());
            match request.problem.verb() {
                _ if let Some(kernel) = kernel_of_columns => planner.down_columns(kernel),
                _ if let Some(hand) = request.hand => planner.dealt(request.strategy.name(), hand)?,
                Verb::Sort if let Some(bits) = request.problem.key_bits() => planner.sort(bits),
                Verb::Histogram if let Some(histogram) = request.problem.histogram() => planner.histogram(histogram),
                Verb::Expand => planner.expand(),
                Verb::Scatter => planner.scatter(),
                Verb::Total => planner.total(),
                _ => (request.strategy.row().plan)(&mut planner),
            }
        }
        let block_threads = planner.config.block_threads;
        let added = planner.steps.iter().map(Step::block_threads).max().unwrap_or(0).saturating_sub(block_threads);
        if block_threads + added > abi::LOOKBACK_MAXIMUM_BLOCK_THREADS {
            return Err(ConfigError::HelperThreads { strategy: request.strategy.name(), block_threads, added });
        }
        // Tickets are words of 32 bits, whoever takes them.
        let most = planner.steps.iter().map(|step| step.grid_blocks).max().unwrap_or(0);
        if most > i32::MAX as u64 {
            return Err(ConfigError::TooManyBlocks { n: request.n, blocks: most });
        }
        let descriptors = planner.steps.iter().map(|step| step.descriptors).max();
        let layout = planner.steps.iter().find(|step| step.uses_descriptors()).map(|step| step.config.descriptor);
        Ok(Plan {
            steps: planner.steps,
            scratch_bytes: planner.scratch_bytes,
            descriptors: descriptors.unwrap_or(0),
            layout: layout.unwrap_or(Descriptor::Packed64),
            descriptor_bytes: Plan::descriptor_bytes(
                planner.config.descriptor,
                request.problem.published_bytes(),
                request.problem.packed_bytes(),
            ),
            access_bytes,
        })
    }

    /// The planner of a request whose configuration can be launched.
    fn planner(request: &ScanRequest) -> Result<Planner, ConfigError> {
        let ScanConfig { vt, block_threads, pattern, composition, descriptor, tile_order } = request.config;
        request.config.check()?;
        let problem = request.problem;
        let has_inverse = problem.instance().is_some_and(Instance::has_inverse);
        if request.mode == Mode::InclusiveMinusInput && !has_inverse {
            return Err(ConfigError::NoInverse(problem.to_string()));
        }
        if let Some([input, _, output]) = problem.types()
            && request.in_place
            && input != output
        {
            return Err(ConfigError::InPlace { input, output });
        }
        let moves = problem.is_by_rank() || !problem.is_scan();
        if moves && (request.in_place || request.mode != Mode::Inclusive) {
            return Err(ConfigError::Moved(problem.to_string()));
        }
        let shape = request.strategy.row().shape;
        if shape.blocks == Blocks::Persistent && shape.has_descriptors && tile_order == TileOrder::Static {
            return Err(ConfigError::StaticOrder(request.strategy.name()));
        }
        let strategy = request.strategy.name();
        let is_reproducible = problem.is_reproducible();
        let is_strided = problem.defined().is_some_and(Defined::is_strided);
        if is_reproducible && problem.axis().is_some() {
            if is_strided {
                return Err(ConfigError::ReproducibleStrides);
            }
            if !shape.scans_columns_in_order() {
                return Err(ConfigError::ReproducibleColumns { strategy });
            }
        }
        if problem.defined().is_some() && problem.is_scan() && !shape.takes_arrays() {
            return Err(ConfigError::TakesNoArrays { strategy, problem: problem.to_string() });
        }
        if problem.axis().is_some() && shape.kernel_of_columns.is_none() {
            return Err(ConfigError::TakesNoColumns { strategy, problem: problem.to_string() });
        }
        if is_strided && !shape.takes_strides() {
            return Err(ConfigError::TakesNoStrides { strategy, problem: problem.to_string() });
        }
        if !problem.is_scan() && !shape.does(problem.verb()) {
            return Err(ConfigError::ScansAlone { strategy, problem: problem.to_string() });
        }
        if let Some(Histogram { bins, .. }) = problem.histogram()
            && shape.blocks == Blocks::Cluster
            && (bins > abi::LOOKBACK_CLUSTER_BINS || request.n > u64::from(u32::MAX))
        {
            return Err(ConfigError::ClusterBins { strategy, problem: problem.to_string(), bins, n: request.n });
        }
        if is_reproducible && problem.axis().is_none() {
            if !request.strategy.row().is_reproducible {
                return Err(ConfigError::NotReproducible { strategy, problem: problem.to_string() });
            }
            // Where warps scan by shuffles alone it is that order, whatever pattern and composition say.
            let is_in_order = shape.tiling == Tiling::Shuffled
                || pattern == Pattern::Shuffle && composition == Composition::ReduceThenScan;
            if !is_in_order || block_threads > ConfigError::REPRODUCIBLE_THREADS {
                return Err(ConfigError::ReproducibleBlock);
            }
        }
        let state_bytes = problem.state_bytes();
        if problem.verb() == Verb::Total && !Shape::loads_states(state_bytes) {
            return Err(ConfigError::TotalOfStates { problem: problem.to_string(), state_bytes });
        }
        if !shape.hands_on(state_bytes) {
            return Err(ConfigError::SpineOfStates { strategy, problem: problem.to_string(), state_bytes });
        }
        if shape.works_in_output && !problem.is_of_one_type() {
            return Err(ConfigError::WorksInOutput { strategy, problem: problem.to_string() });
        }
        let bytes = problem.packed_bytes();
        let smallest = Descriptor::that_hold(bytes).next().unwrap_or(Descriptor::Split);
        let descriptor = descriptor.unwrap_or(smallest);
        if descriptor.holds() < bytes {
            return Err(ConfigError::DescriptorTooSmall { descriptor, bytes });
        }
        // Tiles whose places are known to others, or a part of what the scan gives, are counted from the first element, and so are
        // those of rows whose vectors are not the array's.
        let is_counted_from_first = is_reproducible || is_strided || request.hand.is_some();
        let offsets = [request.input_offset, request.output_offset];
        let are_aligned = offsets.iter().all(|offset| offset % abi::LOOKBACK_VECTOR_BYTES == 0);
        // An element that is a vector never lies off one, and its kernel has no code for that.
        let may_lie_off = problem.access_bytes() < abi::LOOKBACK_VECTOR_BYTES as usize;
        let is_apart = shape.is_aligned_apart() && may_lie_off && problem.defined().is_none() && !is_counted_from_first;
        let alignment = if is_apart && are_aligned { Alignment::Vectors } else { Alignment::Any };
        let mode = request.mode;
        let config = KernelConfig { vt, block_threads, mode, pattern, composition, descriptor, tile_order, alignment };
        Ok(Planner {
            shape,
            config,
            problem,
            n: request.n,
            in_place: request.in_place,
            // Wherever that lies.
            input_offset: if is_counted_from_first { 0 } else { request.input_offset },
            output_offset: if is_counted_from_first { 0 } else { request.output_offset },
            row: request.row.filter(|_| problem.defined().is_some_and(|defined| defined.has_rows())),
            steps: Vec::new(),
            scratch_bytes: 0,
            bits: Place::None,
        })
    }

    /// Bytes of one descriptor of `layout` for values of `published_bytes`, of which `packed_bytes` say something.
    pub const fn descriptor_bytes(layout: Descriptor, published_bytes: usize, packed_bytes: usize) -> u64 {
        match layout {
            Descriptor::Packed64 => 8,
            Descriptor::Packed128 => 16 * (packed_bytes as u64).div_ceil(abi::LOOKBACK_PACKED_128_BYTES as u64),
            Descriptor::Split => 4 + 2 * published_bytes as u64,
        }
    }
}
