//! Work on many items by several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What `work` makes of each item, in no particular order, on so many threads.
pub(super) fn side_by_side<T: Copy + Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
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
