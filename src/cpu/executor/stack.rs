//! Stacks for coroutines, kept between launches: mapping one costs more than a small launch.

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use std::cell::RefCell;

/// Address space of a stack without its guard page. Only pages that a kernel touches take memory: usually
/// one or two. It has room for a kernel's arrays (64 values of 16 bytes, several times) and for a memory
/// back end in Rust below it.
const STACK_BYTES: usize = 128 * 1024;

/// Stacks that an OS thread keeps after a launch. Each takes two of the 65,530 mappings that Linux grants a
/// process by default, so several OS threads must have room beside each other.
const KEPT_STACKS: usize = 4096;

/// Distance between the tops of neighbouring stacks within their pages. Without it the frames of all
/// coroutines would compete for the same few sets of the first-level cache.
const COLOUR_BYTES: usize = 128;
const COLOURS: usize = 32;

thread_local! {
    static KEPT: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A stack whose top is shifted by the colour of its user.
pub(super) struct ColouredStack {
    stack: DefaultStack,
    base: StackPointer,
}

impl ColouredStack {
    /// A kept stack, or a new one.
    ///
    /// # Errors
    /// When the system has no memory or no mapping left.
    pub fn reuse_or_map(user: usize) -> std::io::Result<Self> {
        let stack = match KEPT.with_borrow_mut(Vec::pop) {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES)?,
        };
        let shift = (user % COLOURS) * COLOUR_BYTES;
        let base = StackPointer::new(stack.base().get() - shift).unwrap_or_else(|| stack.base());
        Ok(Self { stack, base })
    }

    /// Keeps the stack for the next launch on this OS thread.
    pub fn keep(self) {
        KEPT.with_borrow_mut(|kept| {
            if kept.len() < KEPT_STACKS {
                kept.push(self.stack);
            }
        });
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
