//! Ranks of several processes: each keeps a connection to rank 0 for as long as it lives. In the process of rank 0 two threads
//! stand for it at the [`Meeting`]: one puts there what comes from it, and one sends it what happens there. A connection that
//! ends, and one on which nothing comes for the length of the time-out, is a lost rank.

use super::error::{Loss, RankError};
use super::meeting::{Gathered, Meeting, News};
use super::message::Message;
use super::place::Place;
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks whether somebody has come.
const PAUSE: Duration = Duration::from_millis(5);
/// For a connection to be made, or to say who it is.
const MOMENT: Duration = Duration::from_secs(2);

/// Between two signs of life: several fit into the time-out.
fn tick(timeout: Duration) -> Duration {
    (timeout / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))
}

/// The loss that an error of a connection shows.
fn loss_by(error: &io::Error, timeout: Duration) -> Loss {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Loss::Silent(timeout),
        _ => Loss::Died,
    }
}

/// The connections of the other ranks, at rank 0.
pub(super) struct Hub {
    connections: Vec<TcpStream>,
    readers: Vec<JoinHandle<()>>,
    writers: Vec<JoinHandle<()>>,
}

impl Hub {
    /// Waits for all other ranks.
    pub(super) fn open(address: &str, meeting: &Arc<Meeting>) -> Result<Self, RankError> {
        let refused = |error: io::Error| RankError::Listen { address: address.to_owned(), reason: error.to_string() };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let mut came: Vec<Option<TcpStream>> = (0..meeting.size()).map(|_| None).collect();
        match Self::admit_all(&listener, &mut came, meeting) {
            Ok(()) => Ok(Self::over(came.into_iter().flatten().collect(), meeting)),
            Err((rank, loss)) => {
                for connection in came.iter().flatten() {
                    let _ = Message::Lost(rank, loss.clone()).write(connection); // It may have gone meanwhile, too.
                }
                Err(RankError::Lost { rank, size: meeting.size(), loss })
            }
        }
    }

    fn admit_all(
        listener: &TcpListener,
        came: &mut [Option<TcpStream>],
        meeting: &Meeting,
    ) -> Result<(), (usize, Loss)> {
        let begin = Instant::now();
        while let Some(missing) = came.iter().skip(1).position(Option::is_none) {
            if begin.elapsed() >= meeting.timeout() {
                return Err((missing + 1, Loss::Absent(meeting.timeout())));
            }
            match listener.accept().and_then(|(connection, _)| Self::greeted(connection)) {
                Ok((connection, rank, size)) => {
                    let why = match came.get(rank) {
                        Some(None) if rank > 0 && size == meeting.size() => {
                            came[rank] = Some(connection);
                            continue;
                        }
                        Some(Some(_)) => String::from("it came twice"),
                        _ => format!("it is one of {size} ranks, and rank 0 one of {}", meeting.size()),
                    };
                    let loss = Loss::Failed(why);
                    let _ = Message::Lost(rank, loss.clone()).write(&connection);
                    return Err((rank, loss));
                }
                // Nobody is there yet, or somebody who is no rank.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        Ok(())
    }

    fn greeted(connection: TcpStream) -> io::Result<(TcpStream, usize, usize)> {
        connection.set_nonblocking(false)?;
        connection.set_read_timeout(Some(MOMENT))?;
        connection.set_nodelay(true)?;
        match Message::read(&connection)? {
            Message::Hello { rank, size } => Ok((connection, rank, size)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The threads of each of the ranks from 1 on.
    fn over(connections: Vec<TcpStream>, meeting: &Arc<Meeting>) -> Self {
        let mut hub = Self { connections, readers: Vec::new(), writers: Vec::new() };
        for (rank, connection) in (1..).zip(&hub.connections) {
            let _ = connection.set_read_timeout(Some(meeting.timeout()));
            // A rank that takes nothing more is as silent as one that sends nothing.
            let _ = connection.set_write_timeout(Some(meeting.timeout()));
            match (connection.try_clone(), connection.try_clone()) {
                (Ok(from), Ok(to)) => {
                    let (put, hand_on) = (Arc::clone(meeting), Arc::clone(meeting));
                    hub.readers.push(std::thread::spawn(move || read_parts(rank, &from, &put)));
                    hub.writers.push(std::thread::spawn(move || write_news(&to, &hand_on)));
                }
                (Err(error), _) | (_, Err(error)) => meeting.lose(rank, Loss::Failed(error.to_string())),
            }
        }
        hub
    }
}

impl Drop for Hub {
    /// Behind `Meeting::leave` of rank 0, or a loss, which end the writers.
    fn drop(&mut self) {
        self.writers.drain(..).for_each(|writer| drop(writer.join()));
        for connection in &self.connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.readers.drain(..).for_each(|reader| drop(reader.join()));
    }
}

fn read_parts(rank: usize, connection: &TcpStream, meeting: &Meeting) {
    loop {
        match Message::read(connection) {
            Ok(Message::Part(part)) => drop(meeting.put(rank, part)),
            Ok(Message::Alive(progress)) => meeting.advance(rank, progress.first().copied().unwrap_or(0)),
            Ok(Message::Leave) => return meeting.leave(rank),
            Ok(Message::Lost(lost, loss)) if lost < meeting.size() => meeting.lose(lost, loss),
            Ok(Message::Lost(..) | Message::Hello { .. } | Message::Welcome) => return meeting.lose(rank, Loss::Died),
            Err(error) => return meeting.lose(rank, loss_by(&error, meeting.timeout())),
        }
    }
}

fn write_news(connection: &TcpStream, meeting: &Meeting) {
    let mut written = Message::Welcome.write(connection);
    let mut seen = 0;
    while written.is_ok() {
        let last = match meeting.news(seen, tick(meeting.timeout())) {
            News::Gathered(parts) => {
                seen += 1;
                written = Message::Part(parts.to_vec()).write(connection);
                continue;
            }
            News::Progress(progress) => {
                written = Message::Alive(progress).write(connection);
                continue;
            }
            News::Lost(rank, loss) => Message::Lost(rank, loss),
            News::Over => Message::Leave,
        };
        // Where it cannot be written the reader knows why.
        let _ = last.write(connection);
        return;
    }
}

/// A rank from 1 on, with its connection to rank 0.
pub(super) struct Remote {
    place: Place,
    timeout: Duration,
    shared: Arc<Shared>,
    connection: TcpStream,
    /// Whole messages are written.
    writing: Arc<Mutex<TcpStream>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    gathered: VecDeque<Gathered>,
    lost: Option<(usize, Loss)>,
    /// Rank 0 has no more to do, so that nobody hears of anybody any more.
    is_over: bool,
    is_closing: bool,
    own_progress: u64,
    progress: Vec<u64>,
}

impl State {
    /// The first loss counts.
    fn lose(&mut self, rank: usize, loss: Loss) {
        self.lost.get_or_insert((rank, loss));
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.locked());
        self.changed.notify_all();
    }
}

impl Remote {
    pub(super) fn join(place: &Place, timeout: Duration) -> Result<Self, RankError> {
        let begin = Instant::now();
        let lost = |rank, loss| RankError::Lost { rank, size: place.size, loss };
        let connection = loop {
            match connected(&place.address) {
                Ok(connection) => break connection,
                Err(_) if begin.elapsed() < timeout => std::thread::sleep(4 * PAUSE),
                Err(_) => return Err(lost(0, Loss::Absent(timeout))),
            }
        };
        let greet = || {
            connection.set_nodelay(true)?;
            // Rank 0 may wait for others for all of the time-out, and is the one to say so.
            connection.set_read_timeout(Some(timeout + MOMENT))?;
            connection.set_write_timeout(Some(timeout))?;
            Message::Hello { rank: place.rank, size: place.size }.write(&connection)?;
            Message::read(&connection)
        };
        match greet() {
            Ok(Message::Welcome) => {}
            Ok(Message::Lost(rank, loss)) => return Err(lost(rank, loss)),
            Ok(_) => return Err(lost(0, Loss::Died)),
            Err(error) => return Err(lost(0, loss_by(&error, timeout))),
        }
        let threads = || {
            connection.set_read_timeout(Some(timeout))?;
            Ok((connection.try_clone()?, connection.try_clone()?))
        };
        let (from, to) = threads().map_err(|error: io::Error| lost(place.rank, Loss::Failed(error.to_string())))?;
        let (shared, writing) = (Arc::new(Shared::default()), Arc::new(Mutex::new(to)));
        let reader = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || read_news(&from, &shared, timeout)
        });
        let beats = std::thread::spawn({
            let (shared, writing) = (Arc::clone(&shared), Arc::clone(&writing));
            move || beat(&shared, &writing, tick(timeout))
        });
        Ok(Self { place: place.clone(), timeout, shared, connection, writing, threads: vec![reader, beats] })
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn all_gather(&self, part: Vec<u8>) -> Result<Gathered, RankError> {
        let over = |state: &State| if state.is_over { Some((0, Loss::Left)) } else { None };
        if let Some((rank, loss)) = self.lost().or_else(|| over(&self.shared.locked())) {
            return Err(self.error(rank, loss));
        }
        // If it cannot be written, the reader hears why.
        let _ = Message::Part(part).write(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        // Rank 0 names who is late, if anybody is; if nothing comes of that either, it is rank 0.
        let most = self.timeout + 2 * tick(self.timeout) + MOMENT;
        let (mut state, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.locked(), most, |state| {
                state.gathered.is_empty() && state.lost.is_none() && !state.is_over
            })
            .unwrap_or_else(PoisonError::into_inner);
        match (state.gathered.pop_front(), state.lost.clone().or_else(|| over(&state))) {
            (Some(gathered), _) => Ok(gathered),
            (None, Some((rank, loss))) => Err(self.error(rank, loss)),
            (None, None) => Err(self.error(0, Loss::Late(self.timeout))),
        }
    }

    pub(super) fn lost(&self) -> Option<(usize, Loss)> {
        self.shared.locked().lost.clone()
    }

    pub(super) fn await_loss(&self, most: Duration) -> Option<(usize, Loss)> {
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.locked(), most, |state| state.lost.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.lost.clone()
    }

    pub(super) fn lose(&self, rank: usize, loss: Loss) {
        let _ =
            Message::Lost(rank, loss.clone()).write(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.change(|state| state.lose(rank, loss));
    }

    pub(super) fn advance(&self, progress: u64) {
        self.shared.locked().own_progress = progress;
    }

    /// As rank 0 has said it last.
    pub(super) fn progress(&self) -> Vec<u64> {
        self.shared.locked().progress.clone()
    }

    fn error(&self, rank: usize, loss: Loss) -> RankError {
        RankError::Lost { rank, size: self.place.size, loss }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.shared.change(|state| state.is_closing = true);
        let _ = Message::Leave.write(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = self.connection.shutdown(Shutdown::Both);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn connected(address: &str) -> io::Result<TcpStream> {
    let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, MOMENT) {
            Ok(connection) => return Ok(connection),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn read_news(connection: &TcpStream, shared: &Shared, timeout: Duration) {
    loop {
        match Message::read(connection) {
            Ok(Message::Part(parts)) => shared.change(|state| state.gathered.push_back(parts.into())),
            Ok(Message::Alive(progress)) => shared.locked().progress = progress,
            Ok(Message::Lost(rank, loss)) => shared.change(|state| state.lose(rank, loss)),
            Ok(Message::Leave) => return shared.change(|state| state.is_over = true),
            Ok(Message::Hello { .. } | Message::Welcome) => {}
            Err(error) => {
                return shared.change(|state| {
                    if !state.is_closing && !state.is_over {
                        state.lose(0, loss_by(&error, timeout));
                    }
                });
            }
        }
    }
}

/// Signs of life, until the rank leaves or nobody listens.
fn beat(shared: &Shared, writing: &Mutex<TcpStream>, tick: Duration) {
    loop {
        let (state, _) = shared
            .changed
            .wait_timeout_while(shared.locked(), tick, |state| !state.is_closing)
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_closing {
            return;
        }
        let progress = vec![state.own_progress];
        drop(state);
        let written = Message::Alive(progress).write(&mut *writing.lock().unwrap_or_else(PoisonError::into_inner));
        if written.is_err() {
            return;
        }
    }
}
