//! Graphs of launches, captured from a stream.

use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::memory::DeviceMemory;
use cudarc::driver::{CudaStream, result, sys};
use std::sync::Arc;

/// An instantiated graph.
pub(crate) struct Graph {
    memory: Arc<DeviceMemory>,
    executable: sys::CUgraphExec,
}

impl Graph {
    /// Captures what `enqueue` puts onto the stream, which nothing else uses and which is not captured yet. The inner error
    /// is that of the capture: what was put onto the stream cannot stand in a graph.
    pub(crate) fn capture(
        memory: &Arc<DeviceMemory>,
        stream: &CudaStream,
        mode: sys::CUstreamCaptureMode,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Result<Self, CudaError>, CudaError> {
        // SAFETY: the stream is alive, and nothing else uses it.
        unsafe { result::stream::begin_capture(stream.cu_stream(), mode) }
            .during(|| String::from("beginning a capture"))?;
        let enqueued = enqueue();
        // Also after an error: only this takes the stream out of capture.
        // SAFETY: the capture was begun right above on this thread.
        let graph = unsafe { result::stream::end_capture(stream.cu_stream()) };
        let graph = match enqueued.and_then(|()| graph.during(|| String::from("ending a capture"))) {
            Ok(graph) if !graph.is_null() => graph,
            Ok(_) => return Ok(Err(CudaError::unexpected("ending a capture", "no graph", "the graph is empty"))),
            Err(error) => return Ok(Err(error)),
        };
        // SAFETY: a graph that the capture has just made.
        let executable = unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) };
        // SAFETY: the executable graph is a copy; this one is destroyed here alone.
        let destroyed = unsafe { result::graph::destroy(graph) };
        let executable = executable.during(|| String::from("instantiating a graph"))?;
        let graph = Self { memory: Arc::clone(memory), executable };
        destroyed.during(|| String::from("destroying a graph"))?;
        Ok(Ok(graph))
    }

    /// Brings the graph to the device, so that its first launch need not.
    pub(crate) fn upload(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive.
        unsafe { result::graph::upload(self.executable, stream.cu_stream()) }
            .during(|| String::from("uploading a graph"))
    }

    /// Puts the graph's launches onto the stream.
    ///
    /// # Safety
    /// All that the launches use lives until the stream has done the work.
    pub(crate) unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive; the rest is what the caller promises.
        unsafe { result::graph::launch(self.executable, stream.cu_stream()) }
            .during(|| String::from("launching a graph"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.memory.is_abandoned() {
            // SAFETY: instantiated once, destroyed here alone; every launch of it was waited for.
            self.memory.context().record_err(unsafe { result::graph::exec_destroy(self.executable) });
        }
    }
}
