//! Where ranks of one process meet: each puts its part, and all get the parts of all.

use super::error::{Loss, RankError};
#[cfg(all(feature = "cpu", feature = "lab"))]
use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The parts of all ranks, one behind the other.
pub(super) type Gathered = Arc<[u8]>;

pub(super) struct Meeting {
    size: usize,
    timeout: Duration,
    state: Mutex<State>,
    changed: Condvar,
    /// What ranks have laid here for the first one.
    #[cfg(all(feature = "cpu", feature = "lab"))]
    laid: Mutex<Vec<Option<Laid>>>,
}

/// Of a type that the ranks know.
#[cfg(all(feature = "cpu", feature = "lab"))]
type Laid = Box<dyn Any + Send>;

struct State {
    /// Of the gathering that is going on.
    parts: Vec<Option<Vec<u8>>>,
    /// When its first part came.
    begun: Option<Instant>,
    /// Gatherings that are over.
    rounds: u64,
    /// What the last of them gave. The next one needs a part of each rank, which comes once that rank has this.
    gathered: Gathered,
    lost: Option<(usize, Loss)>,
    left: Vec<bool>,
    /// What each rank says of how far it is.
    progress: Vec<u64>,
}

/// What somebody waits for who hands on what happens here.
pub(super) enum News {
    Gathered(Gathered),
    Lost(usize, Loss),
    /// Rank 0, where all meet, has no more to do.
    Over,
    /// Nothing else, and how far each rank is.
    Progress(Vec<u64>),
}

impl Meeting {
    pub(super) fn new(size: usize, timeout: Duration) -> Self {
        let state = State {
            parts: vec![None; size],
            begun: None,
            rounds: 0,
            gathered: Arc::default(),
            lost: None,
            left: vec![false; size],
            progress: vec![0; size],
        };
        Self {
            size,
            timeout,
            state: Mutex::new(state),
            changed: Condvar::new(),
            #[cfg(all(feature = "cpu", feature = "lab"))]
            laid: Mutex::new((0..size).map(|_| None).collect()),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Puts a rank's part, and returns the number of the gathering that it is a part of.
    pub(super) fn put(&self, rank: usize, part: Vec<u8>) -> u64 {
        let mut state = self.locked();
        state.parts[rank] = Some(part);
        state.begun.get_or_insert_with(Instant::now);
        let round = state.rounds;
        self.settle(&mut state);
        round
    }

    /// Waits for the end of a gathering.
    pub(super) fn wait(&self, round: u64) -> Result<Gathered, RankError> {
        let mut state = self.locked();
        loop {
            if state.rounds > round {
                return Ok(Arc::clone(&state.gathered));
            }
            self.expire(&mut state);
            if let Some((rank, loss)) = state.lost.clone() {
                return Err(RankError::Lost { rank, size: self.size, loss });
            }
            let left = state.begun.map_or(self.timeout, |begun| self.timeout.saturating_sub(begun.elapsed()));
            state = self.sleep(state, left);
        }
    }

    /// Waits for what one who has seen so many gatherings does not know, at most for `most`.
    pub(super) fn news(&self, seen: u64, most: Duration) -> News {
        let until = Instant::now() + most;
        let mut state = self.locked();
        loop {
            if state.rounds > seen {
                return News::Gathered(Arc::clone(&state.gathered));
            }
            self.expire(&mut state);
            if let Some((rank, loss)) = state.lost.clone() {
                return News::Lost(rank, loss);
            }
            if state.left[0] {
                return News::Over;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return News::Progress(state.progress.clone());
            }
            state = self.sleep(state, left);
        }
    }

    /// Waits until a rank is lost, at most for `most`.
    pub(super) fn await_loss(&self, most: Duration) -> Option<(usize, Loss)> {
        let state = self.locked();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, most, |state| state.lost.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.lost.clone()
    }

    /// The first loss counts: what comes behind it follows from it.
    pub(super) fn lose(&self, rank: usize, loss: Loss) {
        let mut state = self.locked();
        state.lost.get_or_insert((rank, loss));
        self.changed.notify_all();
    }

    /// The rank has no more to do here. That is a loss only where its part is needed.
    pub(super) fn leave(&self, rank: usize) {
        let mut state = self.locked();
        state.left[rank] = true;
        self.settle(&mut state);
    }

    pub(super) fn advance(&self, rank: usize, progress: u64) {
        let mut state = self.locked();
        state.progress[rank] = state.progress[rank].max(progress);
    }

    pub(super) fn progress(&self) -> Vec<u64> {
        self.locked().progress.clone()
    }

    /// Ends the gathering if all parts are there, or the group if one never comes.
    fn settle(&self, state: &mut State) {
        if let Some(bytes) = state.parts.iter().flatten().map(Vec::len).next() {
            let is_other = |part: &Option<Vec<u8>>| part.as_ref().is_some_and(|part| part.len() != bytes);
            if let Some(rank) = state.parts.iter().position(is_other) {
                let why = String::from(
                    "its part of a gathering has other bytes than the others', as that of another scan has",
                );
                state.lost.get_or_insert((rank, Loss::Failed(why)));
            } else if state.parts.iter().all(Option::is_some) {
                state.gathered = state.parts.iter_mut().filter_map(Option::take).flatten().collect();
                state.begun = None;
                state.rounds += 1;
            } else if let Some(rank) = (0..self.size).find(|&rank| state.left[rank] && state.parts[rank].is_none()) {
                state.lost.get_or_insert((rank, Loss::Left));
            }
        }
        self.changed.notify_all();
    }

    /// Names the first rank that lets the others wait for too long.
    fn expire(&self, state: &mut State) {
        if state.begun.is_some_and(|begun| begun.elapsed() >= self.timeout) {
            let missing = state.parts.iter().position(Option::is_none).unwrap_or(0);
            state.lost.get_or_insert((missing, Loss::Late(self.timeout)));
            self.changed.notify_all();
        }
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        let (state, _) = self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner);
        state
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What ranks lay here for each other.
#[cfg(all(feature = "cpu", feature = "lab"))]
impl Meeting {
    /// Lays something where the others find it.
    pub(super) fn lay<T: Send + 'static>(&self, rank: usize, what: T) {
        self.laid()[rank] = Some(Box::new(what));
    }

    /// Takes what a rank has laid, if it is there and such a thing.
    pub(super) fn take<T: 'static>(&self, rank: usize) -> Option<T> {
        self.laid()[rank].take()?.downcast().ok().map(|laid| *laid)
    }

    fn laid(&self) -> MutexGuard<'_, Vec<Option<Laid>>> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
