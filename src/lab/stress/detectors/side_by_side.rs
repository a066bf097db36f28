//! Work on many items by several threads.

use crate::lab::workers::on_threads;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `work` makes of each item, in no particular order, on so many threads.
pub(super) fn side_by_side<T: Copy + Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work_on = || items.get(next.fetch_add(1, Ordering::Relaxed)).map(|&item| work(item));
    on_threads(threads, || std::iter::from_fn(work_on).collect::<Vec<R>>()).into_iter().flatten().collect()
}
