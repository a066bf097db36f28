//! Work on many items by several threads.

use crate::lab::stress::detector::Limits;
use crate::lab::workers::on_threads;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does `work` with each item, in no particular order, on as many threads as the limits say, until somebody asks to stop.
pub(super) fn side_by_side<T: Copy + Sync>(items: &[T], limits: &Limits, work: impl Fn(T) + Sync) {
    let next = AtomicUsize::new(0);
    let rest = || items.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !limits.is_stopped());
    on_threads(limits.threads, || std::iter::from_fn(rest).for_each(|&item| work(item)));
}
