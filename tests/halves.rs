//! The conversions of `cuda/halves.cuh` as the host's compiler makes them, against crate `half`, bit for bit.
#![cfg(feature = "cpu")]

use half::{bf16, f16};
use lookback as _; // The functions are linked with it.
use proptest::prelude::*;

// SAFETY: they have these types in `cuda/host/test_kernels.cpp`, and touch no memory.
unsafe extern "C" {
    safe fn lookback_test_f16_of_float(value: f32) -> u16;
    safe fn lookback_test_bf16_of_float(value: f32) -> u16;
    safe fn lookback_test_float_of_f16(bits: u16) -> f32;
    safe fn lookback_test_float_of_bf16(bits: u16) -> f32;
}

fn is_same(left: f32, right: f32) -> bool {
    left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
}

fn check(bits: u32) {
    let value = f32::from_bits(bits);
    assert_eq!(lookback_test_f16_of_float(value), f16::from_f32(value).to_bits(), "f16 of {value:e}, {bits:#x}");
    assert_eq!(lookback_test_bf16_of_float(value), bf16::from_f32(value).to_bits(), "bf16 of {value:e}, {bits:#x}");
}

#[test]
fn every_half_becomes_its_float_and_comes_back() {
    for bits in 0..=u16::MAX {
        let (found, wanted) = (lookback_test_float_of_f16(bits), f16::from_bits(bits).to_f32());
        assert!(is_same(found, wanted), "{bits:#x}: {found:e} for {wanted:e}");
        assert!(found.is_nan() || lookback_test_f16_of_float(found) == bits, "{bits:#x}");
        let (found, wanted) = (lookback_test_float_of_bf16(bits), bf16::from_bits(bits).to_f32());
        assert!(is_same(found, wanted), "{bits:#x}: {found:e} for {wanted:e}");
        assert!(found.is_nan() || lookback_test_bf16_of_float(found) == bits, "{bits:#x}");
    }
}

/// Where a step of the half ends, in the middle between two, and beside both: below each other there is no other case.
#[test]
fn floats_are_rounded_to_the_nearest_half_and_to_even() {
    for bits in 0..=u16::MAX {
        for float in [f16::from_bits(bits).to_f32(), bf16::from_bits(bits).to_f32()] {
            let all = float.to_bits();
            // The middle behind a normal f16, behind the least subnormal ones of it, and behind a bf16.
            for distance in [0, 1 << 12, 1 << 13, 1 << 15, 1 << 16, 1 << 21, 1 << 22] {
                for near in [all.wrapping_add(distance), all.wrapping_sub(distance)] {
                    (-1..=1).for_each(|step| check(near.wrapping_add_signed(step)));
                }
            }
        }
    }
    // Middles of subnormal numbers are odd multiples of 2^-25.
    for odd in (1..2048_u32).step_by(2) {
        let middle = (odd as f32 * 2_f32.powi(-25)).to_bits();
        (-1..=1).for_each(|step| check(middle.wrapping_add_signed(step)));
    }
    (0..=u32::MAX).step_by(4099).for_each(check);
}

proptest! {
    #[test]
    fn any_float_becomes_the_half_that_is_nearest(bits: u32) {
        check(bits);
    }
}
