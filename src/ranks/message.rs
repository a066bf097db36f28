//! What ranks of several processes say to rank 0, and rank 0 to them: a byte for the kind, the number of bytes in 4, and these.

use super::error::Loss;
use std::io::{self, Read, Write};
use std::time::Duration;

/// What a connection begins with, so that whoever else finds the port is turned away.
const GREETING: [u8; 8] = *b"lookback";

/// No parts of all ranks together, and no list of them, have more.
pub(super) const MOST_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// To rank 0: who is there, and how many are expected to be.
    Hello { rank: usize, size: usize },
    /// From rank 0: all are there.
    Welcome,
    /// To rank 0: a part. From rank 0: those of all.
    Part(Vec<u8>),
    /// A sign of life, and how far the rank is; from rank 0, how far all are.
    Alive(Vec<u64>),
    /// The sender has no more to do with the group.
    Leave,
    /// A rank is lost, the sender perhaps.
    Lost(usize, Loss),
}

impl Message {
    pub(super) fn write(&self, mut to: impl Write) -> io::Result<()> {
        let (kind, bytes) = self.encoded();
        let mut frame = vec![kind];
        frame.extend((bytes.len() as u32).to_le_bytes());
        frame.extend(bytes);
        // At once, so that it is one packet.
        to.write_all(&frame)
    }

    pub(super) fn read(mut from: impl Read) -> io::Result<Self> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        Self::decoded(kind, bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn encoded(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Hello { rank, size } => {
                (0, [&GREETING[..], &(*rank as u64).to_le_bytes(), &(*size as u64).to_le_bytes()].concat())
            }
            Self::Welcome => (1, Vec::new()),
            Self::Part(bytes) => (2, bytes.clone()),
            Self::Alive(progress) => (3, progress.iter().flat_map(|count| count.to_le_bytes()).collect()),
            Self::Leave => (4, Vec::new()),
            Self::Lost(rank, loss) => {
                let (kind, limit, why) = match loss {
                    Loss::Absent(limit) => (0, *limit, ""),
                    Loss::Died => (1, Duration::ZERO, ""),
                    Loss::Silent(limit) => (2, *limit, ""),
                    Loss::Late(limit) => (3, *limit, ""),
                    Loss::Left => (4, Duration::ZERO, ""),
                    Loss::Failed(why) => (5, Duration::ZERO, why.as_str()),
                };
                let numbers = [*rank as u64, limit.as_millis() as u64].map(u64::to_le_bytes).concat();
                // An error's text that is longer than a message is cut.
                let why = &why.as_bytes()[..why.len().min(MOST_BYTES / 2)];
                (5, [&[kind], &numbers[..], why].concat())
            }
        }
    }

    fn decoded(kind: u8, bytes: Vec<u8>) -> Option<Self> {
        let number = |place: usize| Some(u64::from_le_bytes(*bytes.get(place..)?.first_chunk()?));
        Some(match kind {
            0 if bytes.starts_with(&GREETING) => {
                Self::Hello { rank: usize::try_from(number(8)?).ok()?, size: usize::try_from(number(16)?).ok()? }
            }
            1 => Self::Welcome,
            2 => Self::Part(bytes),
            3 => Self::Alive(
                bytes.chunks_exact(8).map(|count| u64::from_le_bytes(count.try_into().expect("8"))).collect(),
            ),
            4 => Self::Leave,
            5 => {
                let limit = Duration::from_millis(number(9)?);
                let loss = match bytes.first()? {
                    0 => Loss::Absent(limit),
                    1 => Loss::Died,
                    2 => Loss::Silent(limit),
                    3 => Loss::Late(limit),
                    4 => Loss::Left,
                    5 => Loss::Failed(String::from_utf8_lossy(bytes.get(17..)?).into_owned()),
                    _ => return None,
                };
                Self::Lost(usize::try_from(number(1)?).ok()?, loss)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let second = Duration::from_secs(1);
        let losses = [
            Loss::Absent(second),
            Loss::Died,
            Loss::Silent(second),
            Loss::Late(second),
            Loss::Left,
            Loss::Failed(String::from("no memory: ½")),
        ];
        let mut messages: Vec<_> = losses.map(|loss| Message::Lost(3, loss)).into();
        messages.extend([
            Message::Hello { rank: 2, size: 7 },
            Message::Welcome,
            Message::Part(vec![1, 2, 3]),
            Message::Alive(vec![1, u64::MAX]),
            Message::Leave,
        ]);
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| message.write(&mut bytes).expect("a vector takes it"));
        let mut rest = &bytes[..];
        for message in messages {
            assert_eq!(Message::read(&mut rest).expect("it is whole"), message);
        }
    }

    #[test]
    fn others_that_find_the_port_are_turned_away() {
        for stranger in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
            &[9, 0, 0, 0, 0],
            &[5, 1, 0, 0, 0, 0],
        ] {
            assert!(Message::read(stranger).is_err());
        }
    }
}
