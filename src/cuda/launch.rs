//! From a plan to launches: kernels resolved and arguments laid out before, so that a scan costs one
//! driver call a kernel.

use super::compile::{Architecture, Compiler, ENTRY_POINT, Variant, stages};
use super::error::{Context as _, CudaError};
use super::memory::RelaxedCapture;
use super::workspace::{RegionKey, Workspace};
use crate::abi;
use crate::element::Instance;
use crate::plan::{Kernel, KernelConfig, Place, Plan, ScanRequest};
use crate::strategy::Descriptor;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, DriverError, sys};
use cudarc::nvrtc::Ptx;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel in the context, ready to launch.
#[derive(Debug, Clone)]
pub(super) struct LoadedKernel {
    pub(super) function: CudaFunction,
    /// Dynamic shared memory of a block.
    shared_bytes: u32,
    /// Blocks that a launch is cut to, where blocks take one tile after the other: as many as run at one time.
    most_blocks: u32,
    architecture: Architecture,
}

/// How many threads a launch takes, in blocks of how many, and dynamic shared memory of a block in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaunchShape {
    pub(super) grid_blocks: u32,
    pub(super) block_threads: u32,
    pub(super) shared_bytes: u32,
}

/// Puts a launch of a scan kernel onto the stream. Where the GPU can, its blocks take their places while the launch
/// before it still runs, and wait for that one's end before they touch memory (`cuda/entry.cu`).
///
/// # Safety
/// The kernel is one of `cuda/entry.cu`; what the launch points to lives until the stream has done the work; the
/// stream's context is that of the kernel, and is current.
pub(super) unsafe fn launch_scan_kernel(
    function: &CudaFunction,
    shape: LaunchShape,
    architecture: Architecture,
    stream: &CudaStream,
    launch: &abi::lookback_launch,
) -> Result<(), DriverError> {
    let mut attributes = [sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    }];
    let config = sys::CUlaunchConfig {
        gridDimX: shape.grid_blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: shape.block_threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shape.shared_bytes,
        hStream: stream.cu_stream(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: u32::from(architecture.has_programmatic_launch()),
    };
    let mut arguments = [std::ptr::from_ref(launch).cast_mut().cast::<c_void>()];
    // SAFETY: the kernel takes one `lookback_launch` by value; the driver copies it, the configuration and its
    // attributes during the call and writes to none of them; the rest is what the caller promises.
    unsafe {
        sys::cuLaunchKernelEx(&raw const config, function.cu_function(), arguments.as_mut_ptr(), std::ptr::null_mut())
    }
    .result()
}

/// What a launch of a loaded kernel takes: dynamic shared memory of a block, and the most blocks that are of use.
pub(super) fn claim(
    function: &CudaFunction,
    context: &CudaContext,
    (kernel, config): (Kernel, &KernelConfig),
    instance: Instance,
    architecture: Architecture,
) -> Result<(u32, u32), CudaError> {
    let stages = stages(kernel, instance, config, architecture)?;
    if stages == 0 {
        return Ok((0, u32::MAX));
    }
    // Checked by `stages`: less than the shared memory of a block.
    let bytes = (u64::from(stages) * config.tile_bytes(instance.element().bytes())) as u32;
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
    Ok((bytes, resident.max(1) * multiprocessors.max(1) as u32))
}

/// The kernels of one context: compiled and loaded on demand, kept until the context's owner goes.
#[derive(Debug)]
pub(super) struct KernelSet {
    context: Arc<CudaContext>,
    compiler: Compiler,
    architecture: Architecture,
    /// What is compiled of a kernel: as it is, or a variant of it.
    variant: fn(Kernel) -> Variant,
    loaded: Mutex<HashMap<(Kernel, Instance, KernelConfig), LoadedKernel>>,
}

impl KernelSet {
    pub(super) fn new(context: &Arc<CudaContext>, compiler: Compiler) -> Result<Self, CudaError> {
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
    #[cfg(feature = "cli")]
    pub(super) fn with_variant(mut self, variant: fn(Kernel) -> Variant) -> Self {
        self.variant = variant;
        self
    }

    pub(super) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    pub(super) fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// A scan kernel, compiled and loaded if this is the first call for it.
    pub(super) fn kernel(
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
        let (shared_bytes, most_blocks) = {
            let _relaxed = RelaxedCapture::begin(&self.context)?;
            claim(&function, &self.context, (kernel, &config), instance, self.architecture)?
        };
        let loaded = LoadedKernel { function, shared_bytes, most_blocks, architecture: self.architecture };
        let mut set = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(set.entry(key).or_insert(loaded).clone())
    }

    /// Compiles and loads the kernels of all these scans, on all cores. Requests that cannot be planned are
    /// passed over: running them says why.
    pub(super) fn compile_ahead(&self, requests: &[ScanRequest]) -> Result<(), CudaError> {
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
    pub(super) fn verification_module(&self) -> Result<Arc<CudaModule>, CudaError> {
        self.load(self.compiler.verification_kernels(self.architecture)?.cubin)
    }

    /// All that is loaded, for an owner that must not unload it.
    pub(super) fn take_modules(&self) -> HashMap<(Kernel, Instance, KernelConfig), LoadedKernel> {
        std::mem::take(&mut *self.loaded.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads a cubin into the context.
    pub(super) fn load(&self, cubin: Vec<u8>) -> Result<Arc<CudaModule>, CudaError> {
        let _relaxed = RelaxedCapture::begin(&self.context)?;
        self.context.load_module(Ptx::from_binary(cubin)).during(|| String::from("loading a compiled kernel"))
    }
}

/// An entry point of a module.
pub(super) fn function(module: &Arc<CudaModule>, name: &str) -> Result<CudaFunction, CudaError> {
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
pub(super) struct PreparedScan {
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
    pub(super) fn new(request: &ScanRequest, kernels: &KernelSet) -> Result<Self, CudaError> {
        let plan = Plan::new(request)?;
        let mut layout = Descriptor::Packed64;
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            if step.uses_descriptors {
                layout = step.config.descriptor;
            }
            // `Plan::new` refuses what a grid cannot hold.
            let grid_blocks = u32::try_from(step.grid_blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32);
            let Some(grid_blocks) = grid_blocks else {
                return Err(crate::strategy::ConfigError::TooManyBlocks { n: step.n, blocks: step.grid_blocks }.into());
            };
            let kernel = kernels.kernel(step.kernel, request.instance, step.config)?;
            steps.push(PreparedStep {
                grid_blocks: grid_blocks.min(kernel.most_blocks),
                kernel,
                block_threads: step.block_threads(),
                input: step.input,
                output: step.output,
                spine: step.spine,
                uses_descriptors: step.uses_descriptors,
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
    pub(super) fn request(&self) -> &ScanRequest {
        &self.request
    }

    /// Kernel launches of one scan.
    pub(super) fn launches(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Widest access of a lane in bytes.
    pub(super) fn access_bytes(&self) -> u32 {
        self.access_bytes
    }

    /// The kernel that does the scan proper: the last over the user's array.
    pub(super) fn main_kernel(&self) -> Option<&LoadedKernel> {
        self.steps.last().map(|step| &step.kernel)
    }

    /// Reserves what the launches need and fills in every address.
    pub(super) fn bind(&mut self, input: u64, output: u64, workspace: &mut Workspace) -> Result<(), CudaError> {
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
    pub(super) unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        for step in &self.steps {
            let shape = LaunchShape {
                grid_blocks: step.grid_blocks,
                block_threads: step.block_threads,
                shared_bytes: step.kernel.shared_bytes,
            };
            // SAFETY: it was made from `cuda/entry.cu`; the rest is what the caller promises.
            unsafe { launch_scan_kernel(&step.kernel.function, shape, step.kernel.architecture, stream, &step.launch) }
                .during(|| String::from("launching a kernel"))?;
        }
        Ok(())
    }
}

/// Whether the stream is being captured into a graph.
pub(super) fn is_capturing(stream: &CudaStream) -> Result<bool, CudaError> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the stream is alive; a valid pointer to the status.
    unsafe { sys::cuStreamIsCapturing(stream.cu_stream(), &raw mut status) }
        .result()
        .during(|| String::from("asking whether the stream is captured"))?;
    Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}
