//! Peers on a stream.

use super::entry::{Entry, Size, describe_error};
use super::{Peer, PeerError};
use crate::cuda::ScanElement;
use crate::cuda::error::{Context as _, CudaError};
use crate::lab::workload::Workload;
use crate::strategy::plan::ScanRequest;
use crate::strategy::{Mode, ScanConfig, Strategy};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A peer with its temporary memory, for one workload, mode and n on one stream. A launch enqueues one run, and
/// allocates and waits for nothing, unless the peer's very point is that it does (see [`Peer::is_capturable`]).
///
/// The first launch in a process also loads the kernel: launch once before timing or capturing. A captured graph
/// holds the address of the temporary memory, so this has to outlive its replays.
#[derive(Debug)]
pub struct PreparedPeer {
    peer: &'static Peer,
    entry: &'static Entry,
    workload: Workload,
    mode: Mode,
    n: u64,
    size: Size,
    inputs: usize,
    // Freed in the stream's order, so after the launches that use it.
    temporary: Option<CudaSlice<u8>>,
    temporary_address: u64,
    temporary_bytes: usize,
    stream: Arc<CudaStream>,
}

impl Peer {
    /// Asks how much temporary memory a run takes and allocates it.
    ///
    /// The stream may be any stream of a cudarc context: cudarc works in the device's primary context, and so does
    /// the CUDA runtime that the peers are written for.
    ///
    /// # Errors
    /// When the peer has no such scan, when its count cannot hold n or n does not fill rows, when the driver is too old for
    /// the CUDA runtime inside, or when the memory is not to be had.
    pub fn prepare(
        &'static self,
        stream: &Arc<CudaStream>,
        workload: impl Into<Workload>,
        mode: Mode,
        n: u64,
    ) -> Result<PreparedPeer, PeerError> {
        let workload = workload.into();
        let entry = self.entry(workload, mode, n)?;
        let size = Size { n: n * self.counted_bytes(workload), segments: workload.segments(n).unwrap_or(0) };
        bind(stream.context())?;
        let mut temporary_bytes = 0;
        // SAFETY: a valid size and a valid place for the number; the context is current.
        let code = unsafe { (entry.temporary_bytes)(&raw const size, &raw mut temporary_bytes) };
        check(code, || format!("asking {} for its temporary memory", self.name()))?;
        let mut temporary = None;
        let mut temporary_address = 0;
        if temporary_bytes > 0 {
            // SAFETY: the peers write to it before they read it.
            let memory = unsafe { stream.alloc::<u8>(temporary_bytes) }
                .during(|| format!("allocating {temporary_bytes} bytes for {}", self.name()))?;
            temporary_address = memory.device_ptr(stream).0;
            temporary = Some(memory);
        }
        Ok(PreparedPeer {
            peer: self,
            entry,
            workload,
            mode,
            n,
            size,
            inputs: workload.inputs(n).count(),
            temporary,
            temporary_address,
            temporary_bytes,
            stream: Arc::clone(stream),
        })
    }
}

impl PreparedPeer {
    /// The peer.
    pub fn peer(&self) -> &'static Peer {
        self.peer
    }

    /// What is scanned.
    pub fn workload(&self) -> Workload {
        self.workload
    }

    /// What is computed; for a copy what it is the floor of.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Elements.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The stream that launches go to.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Bytes of temporary memory.
    pub fn temporary_bytes(&self) -> usize {
        self.temporary.as_ref().map_or(0, |_| self.temporary_bytes)
    }

    /// A request that asks for the same scan, for [`crate::lab::verify::verify`]. Its bound for sums of floats covers the
    /// peers: it stands for a look-back over tiles of 512 elements, fewer than any peer's tile has, with 64 additions
    /// one after the other inside a tile, more than any peer's thread does.
    pub fn verification_request(&self) -> ScanRequest {
        let config = ScanConfig { vt: 64, block_threads: 8, ..ScanConfig::default() };
        let request = ScanRequest::aligned(self.workload.instance(), Strategy::Lookback, self.mode, config, self.n);
        ScanRequest { problem: self.workload.problem(self.n), ..request }
    }

    /// Puts one run over one array onto the stream.
    ///
    /// # Errors
    /// Arrays of another number, length, type or context than was prepared for: nothing was launched then. And what CUDA
    /// reports: a launch that failed, or an earlier one's failure.
    pub fn launch<I: ScanElement, O: ScanElement>(
        &mut self,
        input: &impl DevicePtr<I>,
        output: &mut impl DevicePtrMut<O>,
    ) -> Result<(), PeerError> {
        self.check_inputs(1)?;
        for (array, found, expected) in
            [("input", I::ELEMENT, self.workload.input()), ("output", O::ELEMENT, self.workload.element())]
        {
            if found != expected {
                return Err(PeerError::ElementMismatch { array, found, expected });
            }
        }
        for (array, found, expected, context) in [
            ("input", input.len() as u64, self.n, input.stream().context()),
            ("output", output.len() as u64, self.workload.output_elements(self.n), output.stream().context()),
        ] {
            if found != expected {
                return Err(PeerError::LengthMismatch { array, found, expected });
            }
            if context != self.stream.context() {
                return Err(PeerError::WrongContext { array });
            }
        }
        bind(self.stream.context())?;
        let stream = Arc::clone(&self.stream);
        let (input, _read) = input.device_ptr(&stream);
        let (output, _written) = output.device_ptr_mut(&stream);
        // SAFETY: as many elements as the workload has, by the checks above; they are borrowed, one for writing, so they do not overlap;
        // the guards order later uses of the arrays behind this run. The context was made current.
        unsafe { self.launch_addresses(&[input], output) }
    }

    /// Puts one run onto the stream, for a caller that keeps its arrays itself, such as a timer. Nothing is done but the
    /// peer's own call.
    ///
    /// # Safety
    /// `inputs` and `output` are device addresses in the stream's context: of the arrays that [`Workload::inputs`] lists, in
    /// its order and of its lengths, and of as many of the workload's element as [`Workload::output_elements`] says. They are aligned to their element
    /// types, no input overlaps the output, offsets rise from 0 to n, all live until the stream has done the work, and
    /// that context is current on this thread.
    ///
    /// # Errors
    /// Another number of inputs than the workload has, and what CUDA reports. `copy-16-byte` refuses addresses that are no
    /// multiples of 16, a reading those that are none of 4.
    pub unsafe fn launch_addresses(&mut self, inputs: &[u64], output: u64) -> Result<(), PeerError> {
        self.check_inputs(inputs.len())?;
        // SAFETY: there are as many inputs as the entry reads, and an address of 64 bits is a pointer. The temporary memory
        // is as large as the entry asked for, and in use on this stream alone; the rest is what the caller promises.
        let code = unsafe {
            (self.entry.launch)(
                self.temporary_address as *mut c_void,
                self.temporary_bytes,
                inputs.as_ptr().cast(),
                output as *mut c_void,
                &raw const self.size,
                self.stream.cu_stream().cast(),
            )
        };
        Ok(check(code, || format!("launching {}", self.peer.name()))?)
    }

    fn check_inputs(&self, found: usize) -> Result<(), PeerError> {
        let (workload, expected) = (self.workload, self.inputs);
        if found == expected { Ok(()) } else { Err(PeerError::WrongInputs { workload, found, expected }) }
    }
}

// An array of addresses is handed over as one of pointers.
const _: () = assert!(size_of::<u64>() == size_of::<*const c_void>());

fn check(code: c_int, action: impl FnOnce() -> String) -> Result<(), CudaError> {
    if code == 0 {
        return Ok(());
    }
    let (name, message) = describe_error(code);
    Err(CudaError::Driver { action: action(), name, message })
}

fn bind(context: &CudaContext) -> Result<(), CudaError> {
    context.bind_to_thread().during(|| String::from("making the context current"))
}

#[cfg(all(test, feature = "peers"))]
mod tests {
    use super::*;
    use crate::cuda::toolkit::probe_driver;

    #[test]
    fn without_a_driver_every_peer_that_asks_cuda_answers_with_an_error_that_has_a_name() {
        if probe_driver().is_ok() {
            println!("skipped: there is a driver");
            return;
        }
        for peer in crate::lab::peers::all().iter().filter(|peer| peer.is_scan() && peer.is_capturable()) {
            for scan in peer.scans() {
                let workload = scan.workload(10).expect("a workload");
                let entry = peer.entry(workload, scan.mode, 1000).expect("listed");
                let size = Size { n: 1000, segments: 100 };
                let mut bytes = 0;
                // SAFETY: a valid size and a valid place for the number. Without a driver no context can be current, and the
                // runtime says so.
                let code = unsafe { (entry.temporary_bytes)(&raw const size, &raw mut bytes) };
                let error = check(code, || String::from("asking")).expect_err("there is no driver").to_string();
                assert!(error.contains("cudaError"), "{}, {scan}: {error}", peer.name());
            }
        }
    }
}
