//! From a plan to launches: kernels resolved and arguments laid out before, so that a scan costs one
//! driver call a kernel.

use super::compile::{Architecture, Compiler, ENTRY_POINT, Variant, stages};
use super::error::{Context as _, CudaError};
use super::memory::RelaxedCapture;
use super::workspace::{RegionKey, Workspace};
use crate::abi;
use crate::element::Instance;
use crate::strategy::Descriptor;
use crate::strategy::plan::{Kernel, KernelConfig, Place, Plan, ScanRequest};
use cudarc::driver::result::DriverError;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, LaunchConfig, sys};
use cudarc::nvrtc::Ptx;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel in the context, ready to launch.
#[derive(Debug, Clone)]
pub(crate) struct LoadedKernel {
    pub(crate) function: CudaFunction,
    claim: Claim,
}

/// What a launch of a kernel takes beside its blocks and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Dynamic shared memory of a block.
    pub(crate) shared_bytes: u32,
    /// Blocks that a launch is cut to, where blocks take one tile after the other: as many as run at one time.
    pub(crate) most_blocks: u32,
    /// Whether the grid is one thread block cluster.
    pub(crate) is_cluster: bool,
    /// Whether its blocks may take their places while the launch before it still runs: they wait for that one's end
    /// before they touch memory (`cuda/entry.cu`).
    pub(crate) waits_by_itself: bool,
}

impl Claim {
    /// The blocks of a grid that would have work for so many.
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
pub(crate) unsafe fn launch_kernel(
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

/// What a launch of a loaded kernel takes.
pub(crate) fn claim(
    function: &CudaFunction,
    context: &Arc<CudaContext>,
    (kernel, config): (Kernel, &KernelConfig),
    instance: Instance,
    architecture: Architecture,
) -> Result<Claim, CudaError> {
    let waits_by_itself = architecture.has_programmatic_launch();
    if kernel.is_cluster() {
        let most_blocks = most_cluster_blocks(function, config.block_threads, &context.default_stream())?;
        return Ok(Claim { shared_bytes: 0, most_blocks, is_cluster: true, waits_by_itself });
    }
    let stages = stages(kernel, instance, config, architecture)?;
    if stages == 0 {
        return Ok(Claim { shared_bytes: 0, most_blocks: u32::MAX, is_cluster: false, waits_by_itself });
    }
    // Checked by `stages`: less than the shared memory of a block.
    let bytes = config.ring_bytes(stages, instance.element().bytes()) as u32;
    function
        .set_attribute(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
        .during(|| format!("allowing a kernel {bytes} bytes of shared memory"))?;
    let threads = config.block_threads + kernel.helper_threads(config.composition);
    let resident = function
        .occupancy_max_active_blocks_per_multiprocessor(threads, bytes as usize, None)
        .during(|| String::from("asking how many blocks of a kernel run at one time"))?;
    let multiprocessors = context
        .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        .during(|| String::from("asking for the number of multiprocessors"))?;
    let most_blocks = resident.max(1) * multiprocessors.max(1) as u32;
    Ok(Claim { shared_bytes: bytes, most_blocks, is_cluster: false, waits_by_itself })
}

/// The kernels of one context: compiled and loaded on demand, kept until the context's owner goes.
#[derive(Debug)]
pub(crate) struct KernelSet {
    context: Arc<CudaContext>,
    compiler: Compiler,
    architecture: Architecture,
    /// What is compiled of a kernel: as it is, or a variant of it.
    variant: fn(Kernel) -> Variant,
    loaded: Mutex<HashMap<(Kernel, Instance, KernelConfig), LoadedKernel>>,
}

impl KernelSet {
    pub(crate) fn new(context: &Arc<CudaContext>, compiler: Compiler) -> Result<Self, CudaError> {
        let (major, minor) =
            context.compute_capability().during(|| String::from("asking for the compute capability"))?;
        Ok(Self {
            context: Arc::clone(context),
            compiler,
            architecture: Architecture { major, minor },
            variant: |_| Variant::default(),
            loaded: Mutex::new(HashMap::new()),
        })
    }

    /// The same with a variant in the place of each kernel.
    #[cfg(feature = "lab")]
    pub(crate) fn with_variant(mut self, variant: fn(Kernel) -> Variant) -> Self {
        self.variant = variant;
        self
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// A scan kernel, compiled and loaded if this is the first call for it.
    pub(crate) fn kernel(
        &self,
        kernel: Kernel,
        instance: Instance,
        config: KernelConfig,
    ) -> Result<LoadedKernel, CudaError> {
        let key = (kernel, instance.canonical(), config);
        if let Some(found) = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(found.clone());
        }
        // Not under the lock: another thread's kernel need not wait for this one to compile.
        let variant = (self.variant)(kernel);
        let compiled = self.compiler.scan_kernel_variant(kernel, instance, &config, self.architecture, variant)?;
        let module = self.load(compiled.cubin)?;
        let function = function(&module, ENTRY_POINT)?;
        let claim = {
            let _relaxed = RelaxedCapture::begin(&self.context)?;
            claim(&function, &self.context, (kernel, &config), instance, self.architecture)?
        };
        let loaded = LoadedKernel { function, claim };
        let mut set = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(set.entry(key).or_insert(loaded).clone())
    }

    /// Compiles and loads the kernels of all these scans, on all cores. Requests that cannot be planned are
    /// passed over: running them says why.
    pub(crate) fn compile_ahead(&self, requests: &[ScanRequest]) -> Result<(), CudaError> {
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for request in requests {
            let Ok(plan) = Plan::new(request) else { continue };
            for step in plan.steps {
                let key = (step.kernel, request.instance.canonical(), step.config);
                if seen.insert(key) {
                    wanted.push(key);
                }
            }
        }
        let next = AtomicUsize::new(0);
        let worker = || {
            while let Some(&(kernel, instance, config)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.kernel(kernel, instance, config)?;
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    /// The comparison kernels.
    pub(crate) fn verification_module(&self) -> Result<Arc<CudaModule>, CudaError> {
        self.load(self.compiler.verification_kernels(self.architecture)?.cubin)
    }

    /// All that is loaded, for an owner that must not unload it.
    pub(crate) fn take_modules(&self) -> HashMap<(Kernel, Instance, KernelConfig), LoadedKernel> {
        std::mem::take(&mut *self.loaded.lock().unwrap_or_else(PoisonError::into_inner))
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

struct PreparedStep {
    kernel: LoadedKernel,
    grid_blocks: u32,
    block_threads: u32,
    input: Place,
    output: Place,
    spine: Place,
    uses_descriptors: bool,
    launch: abi::lookback_launch,
}

// SAFETY: the raw pointers in `launch` are addresses of device memory, which the host never follows; they
// mean the same on every thread.
unsafe impl Send for PreparedStep {}

/// A scan whose kernels are loaded and whose arguments are laid out.
pub(crate) struct PreparedScan {
    request: ScanRequest,
    steps: Vec<PreparedStep>,
    region: RegionKey,
    descriptors: u64,
    descriptor_bytes: u64,
    scratch_bytes: u64,
    access_bytes: u32,
}

impl PreparedScan {
    /// Plans the scan and loads its kernels. Compiles those that were never asked for before.
    pub(crate) fn new(request: &ScanRequest, kernels: &KernelSet) -> Result<Self, CudaError> {
        let plan = Plan::new(request)?;
        let mut layout = Descriptor::Packed64;
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            if step.uses_descriptors() {
                layout = step.config.descriptor;
            }
            // `Plan::new` refuses what a grid cannot hold.
            let grid_blocks = u32::try_from(step.grid_blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32);
            let Some(grid_blocks) = grid_blocks else {
                return Err(crate::strategy::ConfigError::TooManyBlocks { n: step.n, blocks: step.grid_blocks }.into());
            };
            let kernel = kernels.kernel(step.kernel, request.instance, step.config)?;
            steps.push(PreparedStep {
                grid_blocks: kernel.claim.blocks(grid_blocks),
                kernel,
                block_threads: step.block_threads(),
                input: step.input,
                output: step.output,
                spine: step.spine,
                uses_descriptors: step.uses_descriptors(),
                launch: abi::lookback_launch {
                    input: std::ptr::null(),
                    output: std::ptr::null_mut(),
                    spine: std::ptr::null_mut(),
                    control: std::ptr::null_mut(),
                    descriptors: std::ptr::null_mut(),
                    n: step.n,
                    tiles: step.tiles,
                    stride: step.stride,
                    capacity: 0,
                    lead: step.lead,
                    host_epoch: 0,
                },
            });
        }
        Ok(Self {
            request: *request,
            steps,
            region: RegionKey { layout, element_bytes: request.instance.element().bytes() },
            descriptors: plan.descriptors,
            descriptor_bytes: plan.descriptor_bytes,
            scratch_bytes: plan.scratch_bytes,
            access_bytes: plan.access_bytes,
        })
    }

    /// What it was prepared for.
    pub(crate) fn request(&self) -> &ScanRequest {
        &self.request
    }

    /// Kernel launches of one scan.
    pub(crate) fn launches(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Widest access of a lane in bytes.
    pub(crate) fn access_bytes(&self) -> u32 {
        self.access_bytes
    }

    /// The kernel that does the scan proper: the last over the user's array.
    pub(crate) fn main_kernel(&self) -> Option<&LoadedKernel> {
        self.steps.last().map(|step| &step.kernel)
    }

    /// Reserves what the launches need and fills in every address.
    pub(crate) fn bind(&mut self, input: u64, output: u64, workspace: &mut Workspace) -> Result<(), CudaError> {
        let reserved = workspace.reserve(self.region, self.descriptors, self.descriptor_bytes, self.scratch_bytes)?;
        let address = |place: Place| match place {
            Place::Input => input,
            Place::Output => output,
            Place::Scratch(offset) => reserved.scratch + offset,
            Place::None => 0,
        };
        for step in &mut self.steps {
            step.launch.input = address(step.input) as *const c_void;
            step.launch.output = address(step.output) as *mut c_void;
            step.launch.spine = address(step.spine) as *mut c_void;
            if step.uses_descriptors {
                step.launch.control = reserved.control as *mut abi::lookback_control;
                step.launch.descriptors = reserved.descriptors as *mut c_void;
                step.launch.capacity = reserved.capacity;
            }
        }
        Ok(())
    }

    /// Puts the launches of one scan onto the stream.
    ///
    /// # Safety
    /// `bind` was called; input, output and workspace live until the stream has done the work; the stream
    /// is the workspace's, of the context that the kernels are loaded in, and that context is current.
    pub(crate) unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        for step in &self.steps {
            let mut arguments = [std::ptr::from_ref(&step.launch).cast_mut().cast::<c_void>()];
            // SAFETY: the kernel takes one `lookback_launch` by value, which the driver copies during the
            // call; the rest is what the caller promises.
            unsafe {
                launch_kernel(
                    &step.kernel.function,
                    (step.grid_blocks, step.block_threads),
                    step.kernel.claim.shared_bytes,
                    step.kernel.claim.attributes(step.grid_blocks),
                    stream,
                    &mut arguments,
                )
            }
            .during(|| String::from("launching a kernel"))?;
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
    fn blocks_that_take_tiles_are_no_more_than_run_at_one_time() {
        let claim = Claim { shared_bytes: 0, most_blocks: 132, is_cluster: false, waits_by_itself: true };
        assert_eq!([claim.blocks(1), claim.blocks(132), claim.blocks(4096)], [1, 132, 132]);
        assert_eq!(claim.attributes(7), LaunchAttributes { cluster_blocks: 0, is_programmatic: true });
        let cluster = Claim { most_blocks: 16, is_cluster: true, ..claim };
        assert_eq!(
            cluster.attributes(cluster.blocks(33)),
            LaunchAttributes { cluster_blocks: 16, is_programmatic: true }
        );
    }
}
