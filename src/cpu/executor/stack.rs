//! Stacks for coroutines, kept between launches: mapping one costs more than a small launch.

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Address space of a stack without its guard page. Only pages that a kernel touches take memory: usually one or two. It has room for
/// the arrays of a kernel that no compiler has optimised (64 values of 16 bytes, many times) and for a memory back end in Rust
/// below it.
const STACK_BYTES: usize = 256 * 1024;

/// Stacks that the process keeps after launches, for all its OS threads: were they each thread's own, as many as each
/// thread's largest launch took would stay mapped, although few launches are that large at one time.
const KEPT_STACKS: usize = 8192;

/// Mappings that Linux grants a process where nobody changed it, and where nobody says.
const MAPPINGS_BY_DEFAULT: usize = 65_530;
/// Address space that stacks leave to all else: an ordinary allocation that fails ends the process.
const LEFT_BYTES: usize = 16 << 20;
/// One for the stack, one for its guard page.
const MAPPINGS_A_STACK: usize = 2;
/// An OS thread's own: its stacks, its heap, and the arrays of what it runs.
const MAPPINGS_A_THREAD: usize = 32;

/// Coroutine stacks that the process can map beside so many OS threads; an eighth of its mappings stays for all else.
pub fn most_stacks(threads: usize) -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let mappings = text.trim().parse().unwrap_or(MAPPINGS_BY_DEFAULT);
    stacks_in(mappings, threads)
}

fn stacks_in(mappings: usize, threads: usize) -> usize {
    (mappings / 8 * 7).saturating_sub(threads.saturating_mul(MAPPINGS_A_THREAD)) / MAPPINGS_A_STACK
}

/// Distance between the tops of neighbouring stacks within their pages. Without it the frames of all
/// coroutines would compete for the same few sets of the first-level cache.
const COLOUR_BYTES: usize = 128;
const COLOURS: usize = 32;

static KEPT: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<DefaultStack>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many stacks: kept ones as far as they go, and new ones.
///
/// # Errors
/// When the system has no memory or no mapping left.
pub(super) fn reuse_or_map(count: usize) -> std::io::Result<Vec<DefaultStack>> {
    let mut stacks = {
        let mut kept = kept();
        let rest = kept.len().saturating_sub(count);
        kept.split_off(rest)
    };
    let are_enough = stacks.len() >= count;
    while stacks.len() < count {
        // Those that there are go back to the system on an error: whoever tells of it needs memory, too.
        stacks.push(DefaultStack::new(STACK_BYTES)?);
    }
    if !are_enough {
        // Held for a moment: it is there for what this launch allocates besides.
        let mut left = Vec::<u8>::new();
        std::hint::black_box(&mut left).try_reserve_exact(LEFT_BYTES).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    }
    Ok(stacks)
}

/// Keeps stacks for the launches to come, as many as there is room for.
pub(super) fn keep(mut stacks: Vec<DefaultStack>) {
    let mut kept = kept();
    let room = KEPT_STACKS.saturating_sub(kept.len());
    let surplus = stacks.split_off(room.min(stacks.len()));
    kept.append(&mut stacks);
    // Unmapping takes longer than others should wait.
    drop(kept);
    drop(surplus);
}

/// A stack whose top is shifted by the colour of its user.
pub(super) struct ColouredStack {
    stack: DefaultStack,
    base: StackPointer,
}

impl ColouredStack {
    pub fn new(stack: DefaultStack, user: usize) -> Self {
        let shift = (user % COLOURS) * COLOUR_BYTES;
        let base = StackPointer::new(stack.base().get() - shift).unwrap_or_else(|| stack.base());
        Self { stack, base }
    }

    /// The stack as it was mapped.
    pub fn into_inner(self) -> DefaultStack {
        self.stack
    }
}

// SAFETY: the stack is the part of a mapped, guarded stack below `base`; `base` is at most 4 KiB lower than
// the mapped top, so more than the minimum remains, and stays a multiple of 128, more than the alignment asked.
unsafe impl Stack for ColouredStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_leave_mappings_for_threads_and_for_all_else() {
        for mappings in [0, 1000, MAPPINGS_BY_DEFAULT, 1 << 20] {
            for threads in [1, 32, 1024, usize::MAX] {
                let stacks = stacks_in(mappings, threads);
                let taken = stacks * MAPPINGS_A_STACK + threads.min(mappings / MAPPINGS_A_THREAD) * MAPPINGS_A_THREAD;
                assert!(stacks == 0 || taken <= mappings / 8 * 7, "{stacks} stacks of {mappings}, {threads} threads");
            }
        }
        // As many threads as `stress` takes have room for the largest case and the launch in the middle of it.
        assert!(stacks_in(MAPPINGS_BY_DEFAULT, 1024) >= 2 * 4096);
    }

    #[test]
    fn stacks_of_one_thread_are_kept_for_all() {
        // More than other tests of this process have in use and give back meanwhile.
        const MANY: usize = KEPT_STACKS;
        std::thread::scope(|scope| scope.spawn(|| keep(reuse_or_map(MANY).expect("there is memory"))).join())
            .expect("no panic");
        assert!(kept().len() > MANY / 2, "{} are kept", kept().len());
        drop(std::mem::take(&mut *kept()));
    }
}
