//! From a plan to launches: kernels are loaded and addresses known before, so that a scan costs one driver call a kernel.

use super::compile::{Compiler, ENTRY_POINT, Variant, stages};
use super::error::{Context as _, CudaError};
use super::memory::RelaxedCapture;
use super::workspace::Workspace;
use crate::abi;
use crate::gpu::Architecture;
use crate::strategy::ConfigError;
use crate::strategy::launch::Addresses;
use crate::strategy::plan::{Kernel, KernelKey, Plan, RegionKey, ScanRequest, Step};
use crate::strategy::ring::Ring;
use cudarc::driver::result::DriverError;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, LaunchConfig, sys};
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel in the context, ready to launch.
#[derive(Debug, Clone)]
pub(crate) struct LoadedKernel {
    pub(crate) function: CudaFunction,
    limits: LaunchLimits,
}

/// What a launch of a kernel needs beside its blocks and threads, and how many blocks it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchLimits {
    /// Dynamic shared memory of a block.
    pub(crate) shared_bytes: u32,
    /// As many blocks as are resident at one time, where each works on one tile after the other; else no limit.
    pub(crate) most_blocks: u32,
    /// Whether the grid is one thread block cluster.
    pub(crate) is_cluster: bool,
    /// Whether its blocks may become resident while the previous launch drains: they wait for that one's end before they
    /// access memory (`cuda/entry.cu`).
    pub(crate) waits_by_itself: bool,
}

impl LaunchLimits {
    /// Blocks of the grid, where `wanted` would have work.
    pub(crate) fn blocks(self, wanted: u32) -> u32 {
        wanted.min(self.most_blocks)
    }

    /// How such a grid is launched.
    pub(crate) fn attributes(self, blocks: u32) -> LaunchAttributes {
        LaunchAttributes {
            cluster_blocks: if self.is_cluster { blocks } else { 0 },
            is_programmatic: self.waits_by_itself,
        }
    }
}

/// What the driver is told of a launch beside the sizes of grid, block and shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LaunchAttributes {
    /// Blocks of a thread block cluster, of which the grid has a whole number; 0 for a launch without clusters.
    pub(crate) cluster_blocks: u32,
    /// Whether it may start before the launch before it is over (programmatic dependent launch).
    pub(crate) is_programmatic: bool,
}

/// The most that [`LaunchAttributes`] can say.
const MOST_ATTRIBUTES: usize = 2;

impl LaunchAttributes {
    /// In the driver's words: the first so many of the array.
    fn to_driver(self) -> ([sys::CUlaunchAttribute; MOST_ATTRIBUTES], u32) {
        let nothing = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { pad: [0; 64] },
        };
        let mut attributes = [nothing; MOST_ATTRIBUTES];
        let mut count = 0;
        if self.cluster_blocks > 0 {
            attributes[count].id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attributes[count].value.clusterDim =
                sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: self.cluster_blocks, y: 1, z: 1 };
            count += 1;
        }
        if self.is_programmatic {
            attributes[count].id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attributes[count].value.programmaticStreamSerializationAllowed = 1;
            count += 1;
        }
        (attributes, count as u32)
    }
}

/// Launches a grid of so many blocks of so many threads.
///
/// # Safety
/// As for [`cudarc::driver::result::launch_kernel`].
unsafe fn launch_kernel(
    function: &CudaFunction,
    (blocks, threads): (u32, u32),
    shared_bytes: u32,
    attributes: LaunchAttributes,
    stream: &CudaStream,
    arguments: &mut [*mut c_void],
) -> Result<(), DriverError> {
    let (mut list, count) = attributes.to_driver();
    let config = sys::CUlaunchConfig {
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared_bytes,
        hStream: stream.cu_stream(),
        attrs: list.as_mut_ptr(),
        numAttrs: count,
    };
    // SAFETY: the configuration and its list live until the call returns; the rest is what the caller promises.
    unsafe {
        sys::cuLaunchKernelEx(&raw const config, function.cu_function(), arguments.as_mut_ptr(), std::ptr::null_mut())
    }
    .result()
}

/// Launches a scan kernel.
///
/// # Safety
/// As for [`launch_kernel`], of a kernel that takes one `lookback_launch`.
pub(crate) unsafe fn launch_scan(
    function: &CudaFunction,
    (blocks, threads): (u32, u32),
    limits: LaunchLimits,
    launch: &abi::lookback_launch,
    stream: &CudaStream,
) -> Result<(), CudaError> {
    let mut arguments = [std::ptr::from_ref(launch).cast_mut().cast::<c_void>()];
    let (shared_bytes, attributes) = (limits.shared_bytes, limits.attributes(blocks));
    // SAFETY: the kernel takes one `lookback_launch` by value, which the driver copies during the call; the rest is what
    // the caller promises.
    unsafe { launch_kernel(function, (blocks, threads), shared_bytes, attributes, stream, &mut arguments) }
        .during(|| String::from("launching a kernel"))
}

/// The most blocks of a cluster of this kernel that the GPU can run at all: 16 where it allows them, 8 of every kernel
/// that leaves room for them.
fn most_cluster_blocks(function: &CudaFunction, threads: u32, stream: &CudaStream) -> Result<u32, CudaError> {
    const MOST: u32 = abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS;
    function
        .set_attribute(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        .during(|| String::from("allowing a kernel clusters of more than 8 blocks"))?;
    let config = LaunchConfig { grid_dim: (MOST, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 };
    let most = function
        .occupancy_max_potential_cluster_size(config, stream)
        .during(|| String::from("asking how many blocks a cluster of a kernel may have"))?;
    Ok(most.clamp(1, MOST))
}

/// Multiprocessors of the GPU, at least 1.
pub(crate) fn multiprocessors(context: &CudaContext) -> Result<u32, CudaError> {
    let count = context
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .during(|| String::from("asking for the number of multiprocessors"))?;
    Ok(count.max(1) as u32)
}

/// Lets a kernel have so many bytes of dynamic shared memory a block, more than it has without asking.
pub(crate) fn allow_shared_bytes(function: &CudaFunction, bytes: u32) -> Result<(), CudaError> {
    function
        .set_attribute(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
        .during(|| format!("allowing a kernel {bytes} bytes of shared memory"))
}

/// The limits of a loaded kernel's launches; allows the function the shared memory that they need.
pub(crate) fn launch_limits(
    function: &CudaFunction,
    context: &Arc<CudaContext>,
    (kernel, problem, config): KernelKey,
    architecture: Architecture,
) -> Result<LaunchLimits, CudaError> {
    let waits_by_itself = architecture.has_programmatic_launch();
    if kernel.is_cluster() {
        let most_blocks = most_cluster_blocks(function, config.block_threads, &context.default_stream())?;
        return Ok(LaunchLimits { shared_bytes: 0, most_blocks, is_cluster: true, waits_by_itself });
    }
    let stages = stages(kernel, problem, &config, architecture)?;
    if stages == 0 {
        return Ok(LaunchLimits { shared_bytes: 0, most_blocks: u32::MAX, is_cluster: false, waits_by_itself });
    }
    // Checked by `stages`: less than the shared memory of a block.
    let bytes = Ring::of((kernel, problem, config)).bytes(stages) as u32;
    allow_shared_bytes(function, bytes)?;
    if !kernel.is_persistent() {
        return Ok(LaunchLimits { shared_bytes: bytes, most_blocks: u32::MAX, is_cluster: false, waits_by_itself });
    }
    let threads = kernel.block_threads(config.block_threads, config.composition, problem);
    let resident = function
        .occupancy_max_active_blocks_per_multiprocessor(threads, bytes as usize, None)
        .during(|| String::from("asking how many blocks of a kernel run at one time"))?;
    let most_blocks = resident.max(1) * multiprocessors(context)?;
    Ok(LaunchLimits { shared_bytes: bytes, most_blocks, is_cluster: false, waits_by_itself })
}

/// The kernels of one context: compiled and loaded on demand, kept until the context's owner goes.
#[derive(Debug)]
pub(crate) struct KernelSet {
    context: Arc<CudaContext>,
    compiler: Compiler,
    architecture: Architecture,
    /// What is compiled of a kernel: as it is, or a variant of it.
    variant: fn(Kernel) -> Variant,
    pub(crate) loaded: Mutex<HashMap<KernelKey, LoadedKernel>>,
}

impl KernelSet {
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        compiler: Compiler,
        variant: fn(Kernel) -> Variant,
    ) -> Result<Self, CudaError> {
        let (major, minor) =
            context.compute_capability().during(|| String::from("asking for the compute capability"))?;
        Ok(Self {
            context: Arc::clone(context),
            compiler,
            architecture: Architecture { major, minor },
            variant,
            loaded: Mutex::new(HashMap::new()),
        })
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// A scan kernel, compiled and loaded if this is the first call for it.
    pub(crate) fn kernel(&self, key: KernelKey) -> Result<LoadedKernel, CudaError> {
        if let Some(found) = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(found.clone());
        }
        // Not under the lock: another thread's kernel need not wait for this one to compile.
        let (kernel, problem, config) = key;
        let variant = (self.variant)(kernel);
        let compiled = self.compiler.scan_kernel_variant(kernel, problem, &config, self.architecture, variant)?;
        let module = self.load(compiled.cubin)?;
        let function = function(&module, ENTRY_POINT)?;
        let limits = {
            let _relaxed = RelaxedCapture::begin(&self.context)?;
            launch_limits(&function, &self.context, key, self.architecture)?
        };
        let loaded = LoadedKernel { function, limits };
        let mut set = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(set.entry(key).or_insert(loaded).clone())
    }

    /// Loads a cubin into the context.
    pub(crate) fn load(&self, cubin: Vec<u8>) -> Result<Arc<CudaModule>, CudaError> {
        let _relaxed = RelaxedCapture::begin(&self.context)?;
        self.context.load_module(Ptx::from_binary(cubin)).during(|| String::from("loading a compiled kernel"))
    }
}

/// An entry point of a module.
pub(crate) fn function(module: &Arc<CudaModule>, name: &str) -> Result<CudaFunction, CudaError> {
    module.load_function(name).during(|| format!("looking up the kernel '{name}'"))
}

/// A scan whose kernels are loaded.
pub(crate) struct PreparedScan {
    pub(crate) request: ScanRequest,
    pub(crate) plan: Plan,
    /// A kernel and the blocks of its grid, for each step of the plan.
    pub(crate) kernels: Vec<(LoadedKernel, u32)>,
    addresses: Addresses,
}

impl PreparedScan {
    /// Plans the scan and loads its kernels. Compiles those that were never asked for before.
    pub(crate) fn new(request: &ScanRequest, kernels: &KernelSet) -> Result<Self, CudaError> {
        let plan = Plan::new(request)?;
        let load = |step: &Step| {
            // `Plan::new` refuses what a grid cannot hold.
            let blocks = u32::try_from(step.grid_blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32);
            let blocks = blocks.ok_or(ConfigError::TooManyBlocks { n: step.n, blocks: step.grid_blocks })?;
            let mut kernel = kernels.kernel(step.key())?;
            kernel.limits.waits_by_itself &= plan.begins_early();
            let blocks = kernel.limits.blocks(blocks);
            Ok((kernel, blocks))
        };
        let kernels = plan.steps.iter().map(load).collect::<Result<_, CudaError>>()?;
        Ok(Self { request: *request, plan, kernels, addresses: Addresses::default() })
    }

    /// Reserves what the launches need and keeps every address; `places` are those of the user's arrays.
    pub(crate) fn bind(&mut self, places: Addresses, workspace: &mut Workspace) -> Result<(), CudaError> {
        let Plan { descriptors, scratch_bytes, .. } = self.plan;
        let region = RegionKey::of(&self.plan);
        // Descriptors that ranks share are known already.
        let own_descriptors = if self.request.hand.is_some() { 0 } else { descriptors };
        let reserved = workspace.reserve(region, own_descriptors, scratch_bytes)?;
        let reserved = if self.request.hand.is_some() { places } else { reserved };
        let findings = if self.request.problem.has_findings() { workspace.findings()? } else { 0 };
        let Addresses { input, output, arrays, .. } = places;
        self.addresses = Addresses { input, output, arrays, findings, ..reserved };
        Ok(())
    }

    /// Where the kernels record so many tiles.
    #[cfg(feature = "lab")]
    pub(crate) fn record_into(&mut self, trace: (u64, u64)) {
        self.addresses.trace = trace;
    }

    /// Puts the launches of one scan onto the stream.
    ///
    /// # Safety
    /// `bind` was called; input, output and workspace live until the stream has done the work; the stream
    /// is the workspace's, of the context that the kernels are loaded in, and that context is current.
    pub(crate) unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        for (step, (kernel, blocks)) in self.plan.steps.iter().zip(&self.kernels) {
            // SAFETY: the addresses are what `bind` was given and has reserved; the rest is what the caller promises.
            unsafe {
                let size = (*blocks, step.block_threads());
                launch_scan(&kernel.function, size, kernel.limits, &step.launch(&self.addresses), stream)
            }?;
        }
        Ok(())
    }
}

/// Whether the stream is being captured into a graph.
pub(crate) fn is_capturing(stream: &CudaStream) -> Result<bool, CudaError> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream is alive; a valid pointer to the status.
    unsafe { sys::cuStreamIsCapturing(stream.cu_stream(), &raw mut status) }
        .result()
        .during(|| String::from("asking whether the stream is captured"))?;
    Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_told_of_clusters_and_overlap_and_of_no_more() {
        let told = |cluster_blocks, is_programmatic| {
            let (list, count) = LaunchAttributes { cluster_blocks, is_programmatic }.to_driver();
            list[..count as usize].to_vec()
        };
        assert!(told(0, false).is_empty());
        let both = told(12, true);
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].id, sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        // SAFETY: the attribute's id says which member was written.
        let cluster = unsafe { both[0].value.clusterDim };
        assert_eq!((cluster.x, cluster.y, cluster.z), (12, 1, 1));
        assert_eq!(both[1].id, sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
        // SAFETY: as above.
        assert_eq!(unsafe { both[1].value.programmaticStreamSerializationAllowed }, 1);
        assert_eq!(
            told(0, true)[0].id,
            sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        );
    }

    #[test]
    fn a_grid_of_persistent_blocks_is_no_larger_than_what_is_resident() {
        let limits = LaunchLimits { shared_bytes: 0, most_blocks: 132, is_cluster: false, waits_by_itself: true };
        assert_eq!([limits.blocks(1), limits.blocks(132), limits.blocks(4096)], [1, 132, 132]);
        assert_eq!(limits.attributes(7), LaunchAttributes { cluster_blocks: 0, is_programmatic: true });
        let cluster = LaunchLimits { most_blocks: 16, is_cluster: true, ..limits };
        assert_eq!(
            cluster.attributes(cluster.blocks(33)),
            LaunchAttributes { cluster_blocks: 16, is_programmatic: true }
        );
    }
}
