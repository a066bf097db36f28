//! The record of a run: which thread was resumed, and which protocol accesses it made.
//!
//! Equal traces mean equal runs, so nothing that differs between equal runs may enter: addresses are
//! written as the number of distinct addresses seen before.

use std::collections::HashMap;

const RESUMED: u8 = 0;
const FIRST_ACCESS: u8 = 1;

/// Numbers in LEB128: `0, block, thread` for a switch; `1 + kind of access, block, thread, line, number of
/// the address` for a protocol access.
#[derive(Debug, Default)]
pub(super) struct Trace {
    bytes: Vec<u8>,
    addresses: HashMap<usize, u64>,
}

impl Trace {
    pub fn resumed(&mut self, block: u64, thread: u32) {
        self.bytes.push(RESUMED);
        self.number(block);
        self.number(u64::from(thread));
    }

    pub fn access(&mut self, block: u64, thread: u32, kind: u32, line: u32, address: usize) {
        let seen = self.addresses.len() as u64;
        let address_number = *self.addresses.entry(address).or_insert(seen);
        self.bytes.push(FIRST_ACCESS + kind as u8);
        self.number(block);
        self.number(u64::from(thread));
        self.number(u64::from(line));
        self.number(address_number);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
