//! Threads that do the same work side by side.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// Runs `work` on so many threads until each has come to its end, and returns what each came to. The system may grant
/// fewer threads than are asked for; the one that calls is there in any case.
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    on_threads_of(Builder::new, threads, &work)
}

/// Does every job on all cores, in no particular order, and returns what each came to. One job alone is done right here.
pub(crate) fn each<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    if jobs.len() <= 1 {
        return jobs.into_iter().map(work).collect();
    }
    let threads = cores().min(jobs.len());
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work_off = || std::iter::from_fn(&next).map(&work).collect::<Vec<R>>();
    on_threads(threads, work_off).into_iter().flatten().collect()
}

/// How many threads the machine runs at once.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Fewer elements of an array are not worth a thread.
pub(crate) const LEAST_PART: usize = 1 << 16;

/// How many elements of `n` a core is given at once: a few parts each, because some take longer than others.
pub(crate) fn part_elements(n: usize) -> usize {
    n.div_ceil(4 * cores()).max(LEAST_PART)
}

/// The same in ranges of their places.
pub(crate) fn part_ranges(n: usize) -> Vec<Range<usize>> {
    let elements = part_elements(n);
    (0..n).step_by(elements).map(|start| start..(start + elements).min(n)).collect()
}

fn on_threads_of<R: Send>(builder: fn() -> Builder, threads: usize, work: &(impl Fn() -> R + Sync)) -> Vec<R> {
    thread::scope(|scope| {
        let start_one = |_| builder().spawn_scoped(scope, work).ok();
        let workers: Vec<_> = (0..threads.max(1)).map_while(start_one).collect();
        if workers.is_empty() {
            return vec![work()];
        }
        let end = |worker: thread::ScopedJoinHandle<'_, R>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(end).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once() {
        for jobs in [0, 1, 1000] {
            let mut done = each((0..jobs).collect(), |job: u32| job * 2);
            done.sort_unstable();
            assert_eq!(done, (0..jobs).map(|job| job * 2).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn who_is_granted_no_thread_works_alone() {
        let this = || thread::current().id();
        let others = on_threads(3, this);
        assert!((1..=3).contains(&others.len()) && !others.contains(&this()), "{others:?}");
        // No address space has room for such a stack.
        let too_large = || Builder::new().stack_size(usize::MAX / 4);
        assert_eq!(on_threads_of(too_large, 3, &this), [this()]);
    }
}
