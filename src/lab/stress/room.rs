//! Room for the coroutine stacks of all workers of a search: who needs more than is free waits for the others.

use std::sync::{Condvar, Mutex, PoisonError};

/// Stacks that may be in use at one time.
pub(super) struct Room {
    most: usize,
    used: Mutex<usize>,
    freed: Condvar,
}

/// What one worker has of it until this is dropped.
pub(super) struct Taken<'a> {
    room: &'a Room,
    stacks: usize,
}

impl Room {
    pub fn new(most: usize) -> Self {
        Self { most, used: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until so many stacks are free. Who needs more than there are has all of them and runs alone.
    pub fn take(&self, stacks: usize) -> Taken<'_> {
        let stacks = stacks.min(self.most);
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.freed.wait_while(used, |used| *used + stacks > self.most);
        *wait.unwrap_or_else(PoisonError::into_inner) += stacks;
        Taken { room: self, stacks }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.room.used.lock().unwrap_or_else(PoisonError::into_inner) -= self.stacks;
        self.room.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn no_more_stacks_are_in_use_than_there_are_and_everybody_gets_some() {
        const MOST: usize = 10;
        let (room, used, served) = (Room::new(MOST), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for stacks in [1, 4, 7, 10, 1000] {
                let (room, used, served) = (&room, &used, &served);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let _taken = room.take(stacks);
                        let stacks = stacks.min(MOST);
                        assert!(used.fetch_add(stacks, Ordering::Relaxed) + stacks <= MOST);
                        std::thread::sleep(Duration::from_micros(50));
                        used.fetch_sub(stacks, Ordering::Relaxed);
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(served.into_inner(), 100);
    }
}
