//! Threads that do the same work side by side.

use std::thread::{self, Builder};

/// Runs `work` on so many threads until each has come to its end, and returns what each came to. The system may grant
/// fewer threads than are asked for; the one that calls is there in any case.
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    on_threads_of(Builder::new, threads, &work)
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
    fn who_is_granted_no_thread_works_alone() {
        let this = || thread::current().id();
        let others = on_threads(3, this);
        assert!((1..=3).contains(&others.len()) && !others.contains(&this()), "{others:?}");
        // No address space has room for such a stack.
        let too_large = || Builder::new().stack_size(usize::MAX / 4);
        assert_eq!(on_threads_of(too_large, 3, &this), [this()]);
    }
}
