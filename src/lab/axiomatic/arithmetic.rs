//! What `cuda/arithmetic.cu` computes: its PTX, evaluated for the 32 lanes of a warp. It knows the instructions that
//! NVRTC makes of those kernels, as the PTX ISA defines them; any other, and any branch, is an error and no guess.

use super::ptx::{Instruction, Text, immediate, vector};
use std::collections::HashMap;

const LANES: usize = 32;
/// Words of 64 bits that a lane has of the input, and of the output.
pub const WORDS: usize = 4;

/// What a warp reads or writes: lane by lane.
pub type Words = [[u64; WORDS]; LANES];

/// What keeps a kernel from being evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// There is no such kernel in the text.
    #[error("the PTX has no kernel '{0}'")]
    NoKernel(String),
    /// An instruction of a form that is not known.
    #[error("line {line} of the kernel's PTX, '{text}': not known here")]
    Unknown { line: usize, text: String },
}

/// The output of a kernel of the text on an input; what it does not write is 0.
///
/// # Errors
/// When there is no such kernel, or it has an instruction that is not known.
pub fn evaluate(ptx: &str, kernel: &str, input: &Words) -> Result<Words, EvaluateError> {
    let head = format!(".entry {kernel}(");
    let start = ptx.find(&head).ok_or_else(|| EvaluateError::NoKernel(kernel.to_owned()))?;
    let body = &ptx[start + head.len()..];
    let end = [".entry ", ".section"].iter().filter_map(|end| body.find(end)).min().unwrap_or(body.len());
    let mut warp = Warp { registers: HashMap::new(), memory: [to_bytes(input), vec![0; LANES * WORDS * 8]] };
    for instruction in Text::parse(&body[..end]).instructions {
        let done = if instruction.guard.is_some() { None } else { warp.execute(&instruction) };
        done.ok_or_else(|| EvaluateError::Unknown { line: instruction.line, text: instruction.text() })?;
    }
    let mut output = [[0; WORDS]; LANES];
    for (word, bytes) in output.iter_mut().flatten().zip(warp.memory[1].chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    }
    Ok(output)
}

fn to_bytes(words: &Words) -> Vec<u8> {
    words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

type Lanes = [u128; LANES];

struct Warp {
    registers: HashMap<String, Lanes>,
    /// Of the input and of the output.
    memory: [Vec<u8>; 2],
}

/// Where an array begins: far from the other one.
fn base_of(array: usize) -> u128 {
    (array as u128 + 1) << 40
}

/// Bits of a type: 32 for `u32`.
fn bits(word: &str) -> Option<u32> {
    let digits = word.strip_prefix(['u', 's', 'b'])?;
    digits.parse().ok().filter(|bits| [8, 16, 32, 64, 128].contains(bits))
}

fn cut(value: u128, bits: u32) -> u128 {
    if bits >= 128 { value } else { value & ((1 << bits) - 1) }
}

fn byte(value: u128, index: u32) -> u128 {
    value >> (8 * index) & 0xff
}

/// The part of a value, with a sign or without.
fn part(value: u128, index: u32, bits: u32, is_signed: bool) -> i128 {
    let part = cut(value >> (bits * index), bits).cast_signed();
    if is_signed && part >> (bits - 1) != 0 { part - (1 << bits) } else { part }
}

impl Warp {
    fn get(&self, operand: &str) -> Option<Lanes> {
        if let Some(number) = immediate(operand) {
            return Some([number.cast_unsigned().into(); LANES]);
        }
        if operand == "%tid.x" {
            return Some(std::array::from_fn(|lane| lane as u128));
        }
        self.registers.get(operand).copied()
    }

    fn set(&mut self, operand: &str, bits: u32, value: impl Fn(usize) -> u128) {
        self.registers.insert(operand.to_owned(), std::array::from_fn(|lane| cut(value(lane), bits)));
    }

    /// Nothing if it is not known.
    fn execute(&mut self, instruction: &Instruction) -> Option<()> {
        let opcode: Vec<&str> = instruction.opcode.iter().map(String::as_str).collect();
        let operands: Vec<&str> = instruction.operands.iter().map(String::as_str).collect();
        let width = opcode.last().and_then(|word| bits(word));
        match (&opcode[..], &operands[..]) {
            (["ret"], []) => {}
            (["ld", "param", _], [to, from]) => {
                let name = from.trim_matches(['[', ']']);
                let array = usize::from(name.strip_suffix("_param_0").is_none());
                if array == 1 && !name.ends_with("_param_1") {
                    return None;
                }
                self.set(to, 64, |_| base_of(array));
            }
            // To a place in shared memory, which stands for one of the output: 32 bits, the same in every block.
            (["st", "async", "shared::cluster", .., "b32"], [to, from, _]) => {
                let address = self.get(to.strip_prefix('[')?.strip_suffix(']')?)?;
                self.set("there", 64, |lane| base_of(1) + address[lane]);
                self.store("[there]", from, 32)?;
            }
            (["mapa", "shared::cluster", "u32"], [to, from, _]) => {
                let value = self.get(from)?;
                self.set(to, 32, |lane| value[lane]);
            }
            (["ld", .., _], [to, from]) => self.load(to, from, width?)?,
            (["st", .., _], [to, from]) => self.store(to, from, width?)?,
            (["mov", _], [to, from]) if to.starts_with('{') => {
                let (value, parts) = (self.get(from)?, vector(to));
                let each = width? / parts.len() as u32;
                for (index, part) in parts.iter().enumerate() {
                    self.set(part, each, |lane| value[lane] >> (each * index as u32));
                }
            }
            (["mov", _], [to, from]) if from.starts_with('{') => {
                let parts: Vec<Lanes> = vector(from).iter().map(|part| self.get(part)).collect::<Option<_>>()?;
                let each = width? / parts.len() as u32;
                let joined = |lane: usize| {
                    let shifted =
                        parts.iter().enumerate().map(|(index, part)| cut(part[lane], each) << (each * index as u32));
                    shifted.sum()
                };
                self.set(to, width?, joined);
            }
            (["mov", _] | ["cvta", "to", "global" | "shared", _], [to, from]) => {
                let value = self.get(from)?;
                self.set(to, width?, |lane| value[lane]);
            }
            // Of numbers without sign: what is cut off, or zeros.
            (["cvt", to_type, from_type], [to, from])
                if [to_type, from_type].iter().all(|word| word.starts_with('u')) =>
            {
                let (value, from_bits, to_bits) = (self.get(from)?, bits(from_type)?, bits(to_type)?);
                self.set(to, to_bits, |lane| cut(value[lane], from_bits));
            }
            (["shfl", "sync", kind, "b32"], [to, from, by, clamp, lanes]) => {
                self.is_whole(lanes)?;
                self.shuffle(kind, [to, from, by, clamp])?;
            }
            (["redux", "sync", "add", _], [to, from, lanes]) => {
                self.is_whole(lanes)?;
                let value = self.get(from)?;
                let sum: u128 = value.iter().map(|&value| cut(value, 32)).sum();
                self.set(to, 32, |_| sum);
            }
            (_, [to, arguments @ ..]) => {
                let arguments: Vec<Lanes> = arguments.iter().map(|operand| self.get(operand)).collect::<Option<_>>()?;
                let mut results = [0; LANES];
                for (lane, result) in results.iter_mut().enumerate() {
                    let of_lane: Vec<u128> = arguments.iter().map(|values| values[lane]).collect();
                    *result = calculate(&opcode, width?, &of_lane)?;
                }
                self.set(to, if opcode.contains(&"wide") { 2 * width? } else { width? }, |lane| results[lane]);
            }
            _ => return None,
        }
        Some(())
    }

    /// The mask of a collective, which is that of all lanes.
    fn is_whole(&self, lanes: &str) -> Option<()> {
        self.get(lanes)?.into_iter().all(|mask| cut(mask, 32) == u32::MAX.into()).then_some(())
    }

    fn shuffle(&mut self, kind: &str, [to, from, by, clamp]: [&str; 4]) -> Option<()> {
        let (value, by, clamp) = (self.get(from)?, self.get(by)?, self.get(clamp)?);
        let source = |lane: usize| -> Option<usize> {
            let (delta, limit, segment) =
                ((by[lane] & 31) as usize, (clamp[lane] & 31) as usize, (clamp[lane] >> 8 & 31) as usize);
            let last = lane & segment | limit & !segment;
            let (from, is_inside) = match kind {
                "up" => (lane.wrapping_sub(delta), lane.checked_sub(delta).is_some_and(|from| from >= last)),
                "down" => (lane + delta, lane + delta <= last),
                "bfly" => (lane ^ delta, lane ^ delta <= last),
                "idx" => (lane & segment | delta & !segment, (lane & segment | delta & !segment) <= last),
                _ => return None,
            };
            Some(if is_inside { from } else { lane })
        };
        let sources: Vec<usize> = (0..LANES).map(source).collect::<Option<_>>()?;
        let to = to.split('|').next().unwrap_or(to);
        self.set(to, 32, |lane| value[sources[lane]]);
        Some(())
    }

    /// `[%rd1+8]`: the array and the offset in it, of each lane, for so many bytes.
    fn place(&self, operand: &str, bytes: usize) -> Option<Vec<(usize, usize)>> {
        let address = operand.strip_prefix('[')?.strip_suffix(']')?;
        let (register, offset) = address.split_once('+').unwrap_or((address, "0"));
        let (values, offset) = (self.get(register)?, immediate(offset)?);
        let place = |value: u128| {
            let address = value.checked_add_signed(offset.into())?;
            let array = usize::try_from(address >> 40).ok()?.checked_sub(1)?;
            let at = usize::try_from(address.checked_sub(base_of(array))?).ok()?;
            (at.is_multiple_of(bytes) && at + bytes <= self.memory.get(array)?.len()).then_some((array, at))
        };
        values.into_iter().map(place).collect()
    }

    fn load(&mut self, to: &str, from: &str, width: u32) -> Option<()> {
        let (parts, each) = (vector(to), width as usize / 8);
        let places = self.place(from, each * parts.len())?;
        for (index, part) in parts.iter().enumerate() {
            let mut values = [0; LANES];
            for (value, &(array, at)) in values.iter_mut().zip(&places) {
                let bytes = &self.memory[array][at + index * each..][..each];
                *value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
            }
            self.set(part, width, |lane| values[lane]);
        }
        Some(())
    }

    fn store(&mut self, to: &str, from: &str, width: u32) -> Option<()> {
        let (parts, each) = (vector(from), width as usize / 8);
        let places = self.place(to, each * parts.len())?;
        for (index, part) in parts.iter().enumerate() {
            let values = self.get(part)?;
            for (value, &(array, at)) in values.iter().zip(&places) {
                // The input is not written.
                let bytes = &mut self.memory.get_mut(array).filter(|_| array == 1)?[at + index * each..][..each];
                bytes.copy_from_slice(&value.to_le_bytes()[..each]);
            }
        }
        Some(())
    }
}

/// One lane's result of an instruction that computes, before it is cut to size.
fn calculate(opcode: &[&str], width: u32, arguments: &[u128]) -> Option<u128> {
    let low = |value: u128| cut(value, width);
    Some(match (opcode, arguments) {
        (["add", _], &[a, b]) => low(a).wrapping_add(low(b)),
        (["sub", _], &[a, b]) => low(a).wrapping_sub(low(b)),
        (["mul", "wide", "u32"], &[a, b]) => low(a) * low(b),
        (["and", _], &[a, b]) => a & b,
        (["or", _], &[a, b]) => a | b,
        (["xor", _], &[a, b]) => a ^ b,
        (["not", _], &[a]) => !a,
        // By the width and more nothing is left.
        (["shl", _], &[a, b]) => {
            if b < width.into() {
                low(a) << b
            } else {
                0
            }
        }
        (["shr", "u32" | "u64" | "b32" | "b64"], &[a, b]) => {
            if b < width.into() {
                low(a) >> b
            } else {
                0
            }
        }
        (["brev", "b32"], &[a]) => (a as u32).reverse_bits().into(),
        (["bfind", "shiftamt", "u32"], &[a]) => match a as u32 {
            0 => u32::MAX.into(),
            a => a.leading_zeros().into(),
        },
        (["bfi", _], &[a, b, position, length]) => {
            let (position, length) = (position as u32 & 0xff, length as u32 & 0xff);
            if position >= width {
                low(b)
            } else {
                let length = length.min(width - position);
                let mask = cut(u128::MAX, length) << position;
                low(b) & !mask | (a << position) & mask
            }
        }
        // The byte of each digit; digits of 8 and more repeat its sign.
        (["prmt", "b32"], &[a, b, selector]) => {
            let bytes = cut(b, 32) << 32 | cut(a, 32);
            (0..4)
                .map(|index| {
                    let digit = (selector >> (4 * index) & 0xf) as u32;
                    let selected = byte(bytes, digit & 7);
                    let selected = if digit < 8 {
                        selected
                    } else if selected >> 7 == 1 {
                        0xff
                    } else {
                        0
                    };
                    selected << (8 * index)
                })
                .sum()
        }
        (["dp4a", left, right], &[a, b, c]) => {
            let (left, right) = (left.starts_with('s'), right.starts_with('s'));
            let products = (0..4).map(|index| part(a, index, 8, left) * part(b, index, 8, right));
            (cut(c, 32).cast_signed() + products.sum::<i128>()).cast_unsigned()
        }
        (["dp2a", half @ ("lo" | "hi"), left, right], &[a, b, c]) => {
            let (left, right) = (left.starts_with('s'), right.starts_with('s'));
            let first = if *half == "hi" { 2 } else { 0 };
            let products = (0..2).map(|index| part(a, index, 16, left) * part(b, first + index, 8, right));
            (cut(c, 32).cast_signed() + products.sum::<i128>()).cast_unsigned()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calculated(opcode: &str, arguments: &[u128]) -> Option<u128> {
        let opcode: Vec<&str> = opcode.split('.').collect();
        let width = bits(opcode.last()?)?;
        calculate(&opcode, width, arguments).map(|value| cut(value, width))
    }

    /// Worked by hand from the definitions of the PTX ISA.
    #[test]
    fn instructions_compute_what_the_manual_says() {
        assert_eq!(calculated("prmt.b32", &[0x4433_2211, 0x8877_6655, 0x7210]), Some(0x8833_2211));
        assert_eq!(calculated("prmt.b32", &[0x4433_2280, 0, 0x4418]), Some(0x22ff));
        assert_eq!(calculated("dp4a.u32.u32", &[0xff02_0304, 0x0101_0101, 10]), Some(255 + 2 + 3 + 4 + 10));
        assert_eq!(calculated("dp4a.s32.s32", &[0xff00_0000, 0x0101_0101, 10]), Some(9));
        assert_eq!(calculated("dp2a.lo.u32.u32", &[0x0003_0002, 0x0705_0101, 1]), Some(6));
        assert_eq!(calculated("dp2a.hi.u32.u32", &[0x0003_0002, 0x0705_0101, 1]), Some(2 * 5 + 3 * 7 + 1));
        assert_eq!(calculated("bfind.shiftamt.u32", &[0x0000_8000]), Some(16));
        assert_eq!(calculated("bfind.shiftamt.u32", &[0]), Some(0xffff_ffff));
        assert_eq!(calculated("bfi.b64", &[0xabcd, 0x1111_2222_3333_4444, 32, 32]), Some(0xabcd_3333_4444));
        assert_eq!(calculated("add.s32", &[0xffff_ffff, 2]), Some(1));
        assert_eq!(calculated("shl.b32", &[1, 32]), Some(0));
        assert_eq!(calculated("popc.b32", &[1]), None);
    }

    #[test]
    fn lanes_exchange_what_the_manual_says() {
        let input: Words = std::array::from_fn(|lane| [lane as u64; WORDS]);
        let kernel = |line: &str| {
            format!(
                ".entry k(\n)\n{{\nld.param.u64 %rd1, [k_param_0];\nld.param.u64 %rd2, [k_param_1];\n\
                 mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 32;\nadd.s64 %rd4, %rd2, %rd3;\n{line}\n\
                 st.global.u32 [%rd4], %r2;\nret;\n}}\n"
            )
        };
        let first = |line: &str| evaluate(&kernel(line), "k", &input).map(|words| words.map(|lane| lane[0]));
        let expected = |from: fn(u64) -> u64| Ok(std::array::from_fn(|lane| from(lane as u64)));
        assert_eq!(first("shfl.sync.up.b32 %r2|%p1, %r1, 4, 0, -1;"), expected(|l| if l < 4 { l } else { l - 4 }));
        assert_eq!(first("shfl.sync.down.b32 %r2, %r1, 4, 31, -1;"), expected(|l| if l > 27 { l } else { l + 4 }));
        assert_eq!(first("shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;"), expected(|l| l ^ 16));
        assert_eq!(first("shfl.sync.idx.b32 %r2, %r1, 7, 31, -1;"), expected(|_| 7));
        assert_eq!(first("redux.sync.add.u32 %r2, %r1, -1;"), expected(|_| 496));
        // Some lanes, a guard, a branch, an array's end: no guesses.
        for unknown in
            ["redux.sync.add.u32 %r2, %r1, 1;", "@%p1 mov.u32 %r2, 1;", "bra k;", "ld.global.u32 %r2, [%rd2+2000];"]
        {
            assert!(matches!(first(unknown), Err(EvaluateError::Unknown { .. })), "{unknown}");
        }
        assert!(matches!(evaluate("", "k", &input), Err(EvaluateError::NoKernel(_))));
    }
}
