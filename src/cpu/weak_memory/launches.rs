//! What is each launch's own where several are taken together: what it hands over to the one behind it, and the barrier of
//! its cluster.

use super::knowledge::{Message, Phase, ThreadState, join_messages};

/// The launches of a run.
#[derive(Debug, Default)]
pub(super) struct Launches {
    all: Vec<One>,
    /// Streams that they are on in turn: each follows the one so many before.
    streams: usize,
}

#[derive(Debug)]
struct One {
    /// The number behind that of its last block, counted through all launches.
    end_block: u64,
    /// What its threads have handed over that have returned, until somebody waits for it.
    ended: Vec<Message>,
    /// The same, joined.
    released: Option<Phase>,
    /// What arrived at the barrier of its cluster and released, in this phase, and what those in the phase before did.
    cluster_arrivals: Vec<Message>,
    cluster_released: Phase,
}

impl Launches {
    pub fn of(grids: &[u64], streams: usize) -> Self {
        let mut end_block = 0;
        let one = |&blocks: &u64| {
            end_block += blocks;
            let (ended, cluster_arrivals) = (Vec::new(), Vec::new());
            One { end_block, ended, released: None, cluster_arrivals, cluster_released: Phase::default() }
        };
        Self { all: grids.iter().map(one).collect(), streams }
    }

    /// Which launch a block is of, from 0.
    pub fn of_block(&self, block: u64) -> usize {
        self.all.iter().take_while(|one| one.end_block <= block).count()
    }

    /// A block by its launch and its index there, as people are told of it.
    pub fn name(&self, block: u64) -> String {
        match self.of_block(block) {
            0 => format!("block {block}"),
            at => format!("launch {} block {}", at + 1, block - self.all[at - 1].end_block),
        }
    }

    /// Whether somebody may wait for the launch of this block.
    pub fn is_awaited(&self, block: u64) -> bool {
        self.of_block(block) + self.streams < self.all.len()
    }

    fn launch_of(&mut self, block: u64) -> Option<&mut One> {
        let at = self.of_block(block);
        self.all.get_mut(at)
    }

    /// All threads of a block have returned, and hand this over.
    pub fn block_ends(&mut self, block: u64, messages: impl Iterator<Item = Message>) {
        if let Some(one) = self.launch_of(block) {
            one.ended.extend(messages);
        }
    }

    /// A thread of a block has arrived at the barrier of its cluster and hands this over.
    pub fn arrive_at_cluster(&mut self, block: u64, message: Message) {
        if let Some(one) = self.launch_of(block) {
            one.cluster_arrivals.push(message);
        }
    }

    /// All threads of the cluster of a block have arrived.
    pub fn end_cluster_phase(&mut self, block: u64) {
        if let Some(one) = self.launch_of(block) {
            one.cluster_released = Phase::of(Some(join_messages(std::mem::take(&mut one.cluster_arrivals))));
        }
    }

    /// Thread `me` of a block has waited for that.
    pub fn wait_for_cluster(&mut self, block: u64, me: u32, waiting: &mut ThreadState) {
        if let Some(one) = self.launch_of(block) {
            one.cluster_released.wait(me, waiting);
        }
    }

    /// Thread `me` of a block has waited until the launch before was over.
    pub fn wait(&mut self, block: u64, me: u32, waiting: &mut ThreadState) {
        let Some(before) = self.of_block(block).checked_sub(self.streams) else { return };
        let One { ended, released, .. } = &mut self.all[before];
        let released = released.get_or_insert_with(|| Phase::of(Some(join_messages(std::mem::take(ended)))));
        released.wait(me, waiting);
    }
}
