//! Small concurrent programs.
//!
//! A program has threads at places of a machine (GPU, cluster, block), memory objects made of cells, and
//! registers. Registers are the program's, not a thread's: a thread that uses the register of another one
//! gets its value by a shuffle, which carries data and orders no memory.
//!
//! A cell is what accesses of different widths share: an object of two cells is a 64-bit word whose halves
//! are also stored and loaded alone. A vector access is as many scalar accesses, in no order.

/// A register of the program. Each is written once.
pub type Register = usize;

/// An object in memory: an index into [`Program::objects`].
pub type Object = usize;

/// Whom a strong operation reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The threads of the block.
    Cta,
    /// The threads of the cluster of blocks.
    Cluster,
    /// The threads of the GPU.
    Gpu,
    /// All threads.
    System,
}

/// Where a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// The GPU.
    pub gpu: u16,
    /// The cluster, within the GPU.
    pub cluster: u16,
    /// The block, within the GPU.
    pub cta: u16,
}

impl Place {
    /// Whether an operation of a thread here, with that scope, reaches a thread there.
    pub fn reaches(self, scope: Scope, other: Self) -> bool {
        match scope {
            Scope::Cta => self.gpu == other.gpu && self.cta == other.cta,
            Scope::Cluster => self.gpu == other.gpu && (self.cluster == other.cluster || self.cta == other.cta),
            Scope::Gpu => self.gpu == other.gpu,
            Scope::System => true,
        }
    }
}

/// What an access orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Semantics {
    /// No qualifier, or `.weak`: no synchronisation.
    Weak,
    /// `.relaxed`, and `.volatile`, which is relaxed at system scope.
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`, for read-modify-write operations.
    AcquireRelease,
}

impl Semantics {
    /// Whether the read of such an access is an acquire operation.
    pub fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireRelease)
    }

    /// Whether the write of such an access is a release operation.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcquireRelease)
    }
}

/// The memory part of a load, store or read-modify-write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The object.
    pub object: Object,
    /// The first cell of the object that is touched.
    pub first: u8,
    /// How many cells.
    pub cells: u8,
    /// 1 for a scalar access; the number of elements of a vector access, which divides `cells`.
    pub elements: u8,
    /// What it orders.
    pub semantics: Semantics,
    /// Whom it reaches. Of no meaning for weak accesses.
    pub scope: Scope,
}

/// A value computed from registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A number.
    Constant(u64),
    /// What the register holds.
    Register(Register),
    /// The sum, modulo 2⁶⁴.
    Add(Box<Expression>, Box<Expression>),
    /// Left before right, each a sequence in the coding of [`concatenate`].
    Concatenate(Box<Expression>, Box<Expression>),
    /// 1 or 0.
    Equal(Box<Expression>, Box<Expression>),
    /// What both are; poison if they differ.
    Same(Box<Expression>, Box<Expression>),
    /// 1 if both are not 0.
    And(Box<Expression>, Box<Expression>),
}

impl Expression {
    /// `register == value`.
    pub fn register_is(register: Register, value: u64) -> Self {
        Self::Equal(Box::new(Self::Register(register)), Box::new(Self::Constant(value)))
    }

    /// Left before right.
    pub fn then(self, right: Self) -> Self {
        Self::Concatenate(Box::new(self), Box::new(right))
    }

    /// What both are, parts of one value.
    pub fn same(self, right: Self) -> Self {
        Self::Same(Box::new(self), Box::new(right))
    }

    /// Both are not 0.
    pub fn and(self, right: Self) -> Self {
        Self::And(Box::new(self), Box::new(right))
    }

    /// The value, if every register in it has one.
    pub fn evaluate(&self, register: &mut dyn FnMut(Register) -> Option<u64>) -> Option<u64> {
        Some(match self {
            Self::Constant(value) => *value,
            Self::Register(index) => register(*index)?,
            Self::Add(left, right) => left.evaluate(register)?.wrapping_add(right.evaluate(register)?),
            Self::Concatenate(left, right) => concatenate(left.evaluate(register)?, right.evaluate(register)?),
            Self::Equal(left, right) => u64::from(left.evaluate(register)? == right.evaluate(register)?),
            Self::Same(left, right) => {
                let (left, right) = (left.evaluate(register)?, right.evaluate(register)?);
                if left == right { left } else { POISON }
            }
            Self::And(left, right) => match left.evaluate(register) {
                Some(0) => 0,
                left => {
                    let right = right.evaluate(register);
                    if right == Some(0) { 0 } else { u64::from(left? != 0 && right? != 0) }
                }
            },
        })
    }

    /// Adds the registers that occur.
    pub(super) fn registers(&self, into: &mut Vec<Register>) {
        match self {
            Self::Constant(_) => {}
            Self::Register(register) => into.push(*register),
            Self::Add(left, right)
            | Self::Concatenate(left, right)
            | Self::Equal(left, right)
            | Self::Same(left, right)
            | Self::And(left, right) => {
                left.registers(into);
                right.registers(into);
            }
        }
    }
}

/// The first number of a barrier that is none of the block's 16: one for each warp.
pub const WARP_BARRIERS: u32 = 16;

/// A value that nothing right is ever made of: memory before anything is written, and all that comes of it.
pub const POISON: u64 = u64::MAX;

/// The sequence with the one tile. Sequences of up to 15 tiles stand in a number, a hexadecimal digit each,
/// the last tile in the lowest digit; 0 is the empty one. They are the values of the checks: an operator that
/// forgets nothing, so a prefix tells which tiles it is made of, how often and in which order.
pub fn sequence_of(tile: usize) -> u64 {
    if tile < 14 { tile as u64 + 1 } else { POISON }
}

/// The sequence of the tiles 0 to `count` − 1.
pub fn sequence_up_to(count: usize) -> u64 {
    (0..count).fold(0, |sequence, tile| concatenate(sequence, sequence_of(tile)))
}

/// One sequence before another; poison if either is, or if it gets too long.
pub fn concatenate(left: u64, right: u64) -> u64 {
    let digits = right.checked_ilog2().map_or(0, |log| log / 4 + 1);
    let length = digits + left.checked_ilog2().map_or(0, |log| log / 4 + 1);
    if left == POISON || right == POISON || length > 15 {
        return POISON;
    }
    if left == 0 { right } else { (left << (4 * digits)) | right }
}

/// A sequence as text: `0·1·2`.
pub fn describe_sequence(sequence: u64) -> String {
    if sequence == POISON {
        return String::from("poison");
    }
    let digits: Vec<String> = (0..16)
        .rev()
        .map(|digit| (sequence >> (4 * digit)) & 15)
        .filter(|&digit| digit != 0)
        .map(|digit| (digit - 1).to_string())
        .collect();
    if digits.is_empty() { String::from("nothing") } else { digits.join("·") }
}

/// What a read-modify-write makes of the value it read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// The sum of both.
    Add(Expression),
    /// The operand.
    Exchange(Expression),
    /// The second if the first was read; otherwise nothing is written.
    CompareExchange(Expression, Expression),
}

/// One phase of one mbarrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phase {
    /// Which barrier, by a number of the program's choice.
    pub barrier: usize,
    /// Which of its phases, from 0.
    pub number: usize,
}

/// One step of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// A load; a register for each cell. `address` are the registers that the address is computed from, and `label`
    /// is the access's name in a counterexample, here and below.
    Load { access: Access, into: Vec<Register>, address: Vec<Register>, label: String },
    /// A store; a value for each cell.
    Store { access: Access, values: Vec<Expression>, address: Vec<Register>, label: String },
    /// `atom`, or `red` where nothing receives the value before. Of one cell.
    Update { access: Access, into: Option<Register>, operation: Operation, label: String },
    /// `fence.sc` if it is `sequential`, else `fence.acq_rel`.
    Fence { sequential: bool, scope: Scope },
    /// `bar.sync`, or from [`WARP_BARRIERS`] on `bar.warp.sync`: all threads of the block that execute one with this
    /// number meet, each time.
    Barrier { number: u32 },
    /// An arrival at a barrier in shared memory (mbarrier), which counts in that phase of it.
    Arrive { phase: Phase, semantics: Semantics, scope: Scope, label: String },
    /// A wait that ends because that phase is over: all arrivals that count in it have come.
    Wait { phase: Phase, semantics: Semantics, scope: Scope, label: String },
    /// A register computed from others.
    Set { register: Register, value: Expression },
    /// One way if the condition is not 0, or the other.
    If { condition: Expression, then: Vec<Statement>, otherwise: Vec<Statement> },
    /// Executions in which this is 0 are not looked at: the way out of a loop that waits.
    Await(Expression),
}

/// An object in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryObject {
    /// Its name.
    pub name: String,
    /// The values of its cells before the program runs.
    pub initial: Vec<u64>,
    /// Whether the object is shared memory of a block. For reading; the rules are the same.
    pub shared: bool,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub place: Place,
    /// What it does.
    pub body: Vec<Statement>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Memory.
    pub objects: Vec<MemoryObject>,
    /// The threads. A thread that uses registers of another one in a condition comes after it.
    pub threads: Vec<Thread>,
    /// How many registers there are.
    pub registers: usize,
}

impl Program {
    /// A new object of one cell a value.
    pub fn object(&mut self, name: impl Into<String>, initial: Vec<u64>, shared: bool) -> Object {
        self.objects.push(MemoryObject { name: name.into(), initial, shared });
        self.objects.len() - 1
    }

    /// A new register.
    pub fn register(&mut self) -> Register {
        self.registers += 1;
        self.registers - 1
    }

    /// Program-wide number of an object's first cell.
    pub fn first_cell(&self, object: Object) -> usize {
        self.objects[..object].iter().map(|object| object.initial.len()).sum()
    }

    /// The initial values of all cells.
    pub fn initial_values(&self) -> Vec<u64> {
        self.objects.iter().flat_map(|object| object.initial.iter().copied()).collect()
    }

    /// The name of a program-wide cell.
    pub fn cell_name(&self, cell: usize) -> String {
        let mut first = 0;
        for object in &self.objects {
            let cells = object.initial.len();
            if cell < first + cells {
                return if cells == 1 { object.name.clone() } else { format!("{}[{}]", object.name, cell - first) };
            }
            first += cells;
        }
        format!("cell {cell}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_keep_order_and_count() {
        let two = concatenate(sequence_of(0), sequence_of(1));
        assert_eq!(two, sequence_up_to(2));
        assert_ne!(two, concatenate(sequence_of(1), sequence_of(0)));
        assert_ne!(two, concatenate(two, sequence_of(1)));
        assert_eq!(concatenate(0, two), two);
        assert_eq!(concatenate(two, 0), two);
        assert_eq!(concatenate(POISON, two), POISON);
        assert_eq!(describe_sequence(sequence_up_to(3)), "0·1·2");
        assert_eq!(concatenate(sequence_up_to(8), sequence_up_to(8)), POISON);
    }

    #[test]
    fn scopes_reach_what_they_name() {
        let here = Place { gpu: 0, cluster: 0, cta: 0 };
        let neighbour = Place { gpu: 0, cluster: 0, cta: 1 };
        let far = Place { gpu: 0, cluster: 1, cta: 2 };
        let elsewhere = Place { gpu: 1, cluster: 0, cta: 0 };
        let reached = |scope| [here, neighbour, far, elsewhere].map(|there| here.reaches(scope, there));
        assert_eq!(reached(Scope::Cta), [true, false, false, false]);
        assert_eq!(reached(Scope::Cluster), [true, true, false, false]);
        assert_eq!(reached(Scope::Gpu), [true, true, true, false]);
        assert_eq!(reached(Scope::System), [true; 4]);
    }
}
