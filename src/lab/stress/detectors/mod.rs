//! The detectors of the kill table behind one interface.

mod cpu;
#[cfg(feature = "cuda")]
pub mod gpu;
#[cfg(feature = "cuda")]
mod models;
#[cfg(feature = "cuda")]
mod sanitizer;
pub mod thread_sanitizer;

use super::search::Limits;
use super::table::{Cell, DetectorName};
use super::{Memory, Mutant};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a detector ran on: name and value.
pub type Facts = Vec<(String, String)>;

/// Looks for faults.
pub trait Detector {
    /// Looks at the kernels with a fault, or as they are.
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell;

    /// What is better done for all mutants at once, before the first of them is examined.
    ///
    /// # Errors
    /// When the detector cannot examine anything, with the reason.
    fn prepare(&mut self, _: &[&'static Mutant], _: &Limits) -> Result<(), String> {
        Ok(())
    }

    /// What it ran on.
    fn facts(&self) -> Facts {
        Vec::new()
    }
}

impl dyn Detector {
    /// The detector of this name.
    ///
    /// # Errors
    /// When this machine or this build has it not, with the reason.
    pub fn named(name: DetectorName) -> Result<Box<Self>, String> {
        match name {
            DetectorName::CpuSchedules => Ok(Box::new(cpu::OnCpu { memory: Memory::Strong })),
            DetectorName::WeakMemory => Ok(Box::new(cpu::OnCpu { memory: Memory::Weak })),
            DetectorName::ThreadSanitizer => Ok(Box::new(thread_sanitizer::Sanitized::new()?)),
            #[cfg(feature = "cuda")]
            DetectorName::Loom => Ok(Box::new(models::OnModel::new(models::Model::Loom)?)),
            #[cfg(feature = "cuda")]
            DetectorName::PtxEnumerator => Ok(Box::new(models::OnModel::new(models::Model::Ptx)?)),
            #[cfg(feature = "cuda")]
            DetectorName::GpuStress => Ok(Box::new(gpu::OnGpu::new()?)),
            #[cfg(feature = "cuda")]
            DetectorName::ComputeSanitizer => Ok(Box::new(sanitizer::UnderSanitizer::new()?)),
            #[cfg(not(feature = "cuda"))]
            _ => Err("not part of this build".to_owned()),
        }
    }
}

/// What `work` makes of each item, in no particular order, on so many threads.
fn side_by_side<T: Copy + Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(&item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
