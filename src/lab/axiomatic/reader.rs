//! What is read of any instruction of a kernel's PTX, whichever part of the protocol it belongs to.

use super::program::{Scope, Semantics};
use super::ptx::{Instruction, Text};
use super::sequences::{Layout, Protocol};

/// What keeps a kernel's text from being understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// No `.loc` with a function name: compiled without `--generate-line-info`, or no PTX.
    #[error("the PTX names no source functions: compile with --generate-line-info")]
    NoLineInfo,
    /// Part of the protocol is not there.
    #[error("the PTX has no {what}: not a single-pass scan kernel, or one in a form that is not understood")]
    Missing { what: &'static str },
    /// An instruction of the protocol is of no known form.
    #[error("line {line} of the PTX, '{text}': {reason}")]
    Instruction { line: usize, text: String, reason: &'static str },
}

/// A kernel whose protocol is read.
pub(super) struct Extraction<'a> {
    pub text: &'a Text,
    pub protocol: Protocol,
    pub layout: Layout,
}

impl Extraction<'_> {
    /// What an access, a fence or a block barrier orders, and whom it reaches.
    pub fn order_of(&self, instruction: &Instruction) -> (Semantics, Scope) {
        let base = instruction.base();
        let is_strong = instruction
            .opcode
            .iter()
            .any(|word| matches!(word.as_str(), "relaxed" | "acquire" | "release" | "acq_rel" | "volatile"));
        let semantics = if instruction.has("acq_rel") {
            Semantics::AcquireRelease
        } else if instruction.has("acquire") {
            Semantics::Acquire
        } else if instruction.has("release") {
            Semantics::Release
        } else if matches!(base, "fence" | "membar") {
            Semantics::AcquireRelease
        } else if is_strong || matches!(base, "atom" | "red") {
            Semantics::Relaxed
        } else {
            Semantics::Weak
        };
        let scope = if instruction.has("cta") {
            Scope::Cta
        } else if instruction.has("cluster") {
            Scope::Cluster
        } else if instruction.has("sys") || instruction.has("volatile") {
            Scope::System
        } else {
            Scope::Gpu
        };
        (semantics, scope)
    }

    /// Where an instruction stands in the source, outermost call first.
    pub fn source(&self, instruction: &Instruction) -> String {
        instruction
            .frames
            .iter()
            .rev()
            .map(|frame| {
                let file = self.text.files.get(&frame.location.file).map_or("?", String::as_str);
                let name = file.rsplit('/').next().unwrap_or(file);
                let function = frame.function.iter().skip(1).cloned().collect::<Vec<_>>().join("::");
                format!("{function} ({name}:{})", frame.location.line)
            })
            .collect::<Vec<_>>()
            .join(" > ")
    }
}

/// Says what is wrong with an instruction.
pub(super) fn error(instruction: &Instruction, reason: &'static str) -> ExtractError {
    ExtractError::Instruction { line: instruction.line, text: instruction.text(), reason }
}

/// Bytes of one element, and the number of elements.
pub(super) fn width(instruction: &Instruction) -> Result<(u32, u32), ExtractError> {
    let elements = if instruction.has("v2") {
        2
    } else if instruction.has("v4") {
        4
    } else {
        1
    };
    let bits = instruction.opcode.iter().rev().find_map(|word| {
        let digits = word.strip_prefix(['b', 'u', 's', 'f'])?;
        digits.parse::<u32>().ok()
    });
    bits.map(|bits| (bits / 8, elements)).ok_or_else(|| error(instruction, "no width"))
}
