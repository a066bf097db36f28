//! From a step of a plan to a launch: the arguments of its kernel, and what it asks of a GPU.

use crate::abi;
use crate::element::Problem;
use crate::gpu::Architecture;
use crate::strategy::plan::{KernelConfig, Place, Plan, Step};

/// Where a scan's arrays and its workspace lie in the memory of the device: addresses in bytes, 0 for none. Those of the
/// CPU are exposed ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The user's input.
    pub input: u64,
    /// The user's output.
    pub output: u64,
    /// The scratch memory of the plan.
    pub scratch: u64,
    /// The control block.
    pub control: u64,
    /// The tile descriptors.
    pub descriptors: u64,
    /// How many descriptors there are.
    pub capacity: u64,
}

impl Addresses {
    fn of(&self, place: Place) -> u64 {
        match place {
            Place::Input => self.input,
            Place::Output => self.output,
            Place::Scratch(offset) => self.scratch + offset,
            Place::None => 0,
        }
    }
}

fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

impl Step {
    /// The arguments of the kernel, with host epoch 0: the kernels count epochs themselves.
    pub fn launch(&self, addresses: &Addresses) -> abi::lookback_launch {
        let used = |value| if self.uses_descriptors() { value } else { 0 };
        abi::lookback_launch {
            input: pointer(addresses.of(self.input)),
            output: pointer(addresses.of(self.output)),
            spine: pointer(addresses.of(self.spine)),
            control: pointer(used(addresses.control)),
            descriptors: pointer(used(addresses.descriptors)),
            n: self.n,
            tiles: self.tiles,
            stride: self.stride,
            capacity: used(addresses.capacity),
            lead: self.lead,
            host_epoch: 0,
        }
    }
}

impl KernelConfig {
    /// Tiles that a block which takes several ([`crate::strategy::plan::Kernel::is_persistent`]) holds at one time: as many
    /// as fit into `shared_bytes` beside what its warps tell each other, at most 12; 0 if not even one does.
    pub const fn stages(&self, shared_bytes: u64, problem: Problem) -> u32 {
        // For each scanning warp a row on its way to a misaligned output, and a total; in each stage a prefix for each
        // scanning warp and five more values, the tile's index, and five barriers of up to 12 bytes (`lookahead_ring` in
        // `cuda/scan/lookahead.cuh`).
        const ROW_BYTES: u64 = 33 * 16;
        const VALUE_BYTES: u64 = 16;
        const INDEX_AND_BARRIERS_BYTES: u64 = 8 + 5 * 12;
        let input_bytes = problem.input().bytes();
        let warps = self.block_threads as u64 / abi::LOOKBACK_WARP_LANES as u64;
        let fixed = 512 + warps * (ROW_BYTES + VALUE_BYTES) + self.ring_bytes(0, input_bytes);
        let values = (warps + 5) * problem.state().bytes() as u64;
        let stage = self.stage_bytes(input_bytes) + values + INDEX_AND_BARRIERS_BYTES;
        let fit = shared_bytes.saturating_sub(fixed) / stage;
        if fit < abi::LOOKBACK_MAXIMUM_STAGES as u64 { fit as u32 } else { abi::LOOKBACK_MAXIMUM_STAGES }
    }
}

impl Plan {
    /// Whether the blocks of the architecture can form the cluster that the plan asks for, if it does.
    pub fn has_its_clusters(&self, architecture: Architecture) -> bool {
        architecture.has_clusters() || !self.steps.iter().any(|step| step.kernel.is_cluster())
    }

    /// Whether a block of the architecture can hold the tiles of every kernel that keeps them in shared memory.
    pub fn fits(&self, architecture: Architecture) -> bool {
        let holds = |step: &Step| step.config.stages(architecture.shared_bytes(), step.problem) > 0;
        self.steps.iter().all(|step| !step.kernel.is_persistent() || holds(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Instance, Operator};
    use crate::strategy::{Composition, Descriptor, Mode, Pattern, TileOrder};

    #[test]
    fn as_many_tiles_are_held_as_fit() {
        let of = |major, minor, vt, block_threads| {
            let config = KernelConfig {
                vt,
                block_threads,
                mode: Mode::Inclusive,
                pattern: Pattern::Shuffle,
                composition: Composition::ReduceThenScan,
                descriptor: Descriptor::Packed64,
                tile_order: TileOrder::Ticket,
            };
            let sum = Instance::new(ElementType::U32, Operator::Sum).unwrap();
            config.stages(Architecture { major, minor }.shared_bytes(), sum.into())
        };
        // Tiles of 16 KB.
        let held = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)].map(|(a, b)| of(a, b, 32, 128));
        assert_eq!(held, [3, 9, 5, 5, 12, 12, 5]);
        assert_eq!(of(9, 0, 24, 256), 9);
        assert_eq!(of(9, 0, 64, 928), 0);
    }
}
