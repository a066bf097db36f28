//! Arrays that are dealt to ranks in turn.

use super::RankError;
use std::ops::Range;

/// An array of `n` elements whose chunks of so many are dealt to ranks in turn, as cards are: of p ranks, rank r has the chunks r,
/// r + p, r + 2p, … one behind the other. The last chunk may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deal {
    n: u64,
    chunk: u64,
}

impl Deal {
    /// Of `n` elements in chunks of so many.
    ///
    /// # Errors
    /// When a chunk has no elements.
    pub fn new(n: u64, chunk: u64) -> Result<Self, RankError> {
        if chunk == 0 { Err(RankError::EmptyChunk) } else { Ok(Self { n, chunk }) }
    }

    /// Elements of all ranks.
    pub fn n(self) -> u64 {
        self.n
    }

    /// Elements of a chunk.
    pub fn chunk(self) -> u64 {
        self.chunk
    }

    /// What one of `ranks` ranks has.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn hand(self, rank: usize, ranks: usize) -> Hand {
        assert!(rank < ranks, "rank {rank} of {ranks}");
        Hand { deal: self, rank: rank as u64, ranks: ranks as u64 }
    }
}

/// What a rank has of a [`Deal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hand {
    deal: Deal,
    rank: u64,
    ranks: u64,
}

impl Hand {
    /// The deal.
    pub fn deal(self) -> Deal {
        self.deal
    }

    /// The rank, from 0.
    pub fn rank(self) -> u64 {
        self.rank
    }

    /// Ranks that the array is dealt to.
    pub fn ranks(self) -> u64 {
        self.ranks
    }

    /// How many elements the rank has.
    pub fn elements(self) -> u64 {
        let Deal { n, chunk } = self.deal;
        let (chunks, rest) = (n / chunk, n % chunk);
        let whole = chunks / self.ranks + u64::from(self.rank < chunks % self.ranks);
        whole * chunk + if chunks % self.ranks == self.rank { rest } else { 0 }
    }

    /// Where one of the rank's elements stands in the whole array.
    pub fn place(self, index: u64) -> u64 {
        let chunk = self.deal.chunk;
        (index / chunk * self.ranks + self.rank) * chunk + index % chunk
    }

    /// Where the rank's chunks stand in the whole array, in order.
    pub fn chunks(self) -> impl Iterator<Item = Range<u64>> {
        let chunk = self.deal.chunk;
        let elements = self.elements();
        (0..elements.div_ceil(chunk)).map(move |index| {
            let first = self.place(index * chunk);
            first..first + chunk.min(elements - index * chunk)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_is_dealt_to_one_rank_in_turn() {
        for (n, chunk, ranks) in [(0, 1, 1), (1, 3, 2), (10, 3, 2), (12, 3, 2), (13, 3, 4), (100, 7, 3), (6, 10, 3)] {
            let deal = Deal::new(n, chunk).expect("chunks have elements");
            let mut owners = vec![None; n as usize];
            for rank in 0..ranks {
                let hand = deal.hand(rank, ranks);
                let places: Vec<u64> = (0..hand.elements()).map(|index| hand.place(index)).collect();
                assert_eq!(hand.chunks().flatten().collect::<Vec<_>>(), places, "{n} by {chunk} to {ranks}");
                for place in places {
                    assert_eq!(owners[place as usize].replace(rank), None);
                }
            }
            let in_turn = |place: u64| Some((place / chunk) as usize % ranks);
            assert_eq!(owners, (0..n).map(in_turn).collect::<Vec<_>>(), "{n} by {chunk} to {ranks}");
        }
        assert_eq!(Deal::new(5, 0), Err(RankError::EmptyChunk));
    }
}
