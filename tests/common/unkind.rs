//! Arrays that are as unkind to compactions, sorts and counts as they get.

/// By name, of `n` numbers each.
pub fn unkind(n: usize) -> Vec<(&'static str, Vec<u32>)> {
    let places = || 0..n as u32;
    let different = |place: u32| place.wrapping_mul(0x9e37_79b1);
    let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE / 2.0, -1.5];
    vec![
        ("all equal", vec![0xabcd_ef01; n]),
        ("all different", places().map(different).collect()),
        ("in order", places().collect()),
        ("in the opposite order", places().rev().collect()),
        ("one outlier", places().map(|place| if place as usize == n / 3 { 0 } else { u32::MAX }).collect()),
        ("long runs", places().map(|place| (place / 1000 % 7) << 29).collect()),
        ("special floats", places().map(|place| special[different(place) as usize >> 7 & 7].to_bits()).collect()),
    ]
}
