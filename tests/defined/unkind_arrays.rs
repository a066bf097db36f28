//! What is compacted, sorted and counted of arrays that are as unkind as they get, over vectors on the CPU device.

use super::unkind::{check_all, unkind};
use super::{is_made, scanner};
use lookback::element::Definition;
use lookback::run::AnyScanner;
use lookback::strategy::Strategy;

#[test]
fn unkind_arrays_are_compacted_sorted_counted_and_shared_out_rightly() {
    let (any, mut kept) = (Definition::select::<u32>("return x < 0x60000000;").define().expect("a selection"), [0_u32]);
    if !is_made(scanner(Strategy::Lookback, 5).run(any).input(&[7_u32]).output(&mut kept).compact()) {
        return;
    }
    for n in [1, 2, 511, 3001] {
        for (name, x) in unkind(n) {
            check_all(&mut scanner(Strategy::Lookback, 5), &x).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
        }
    }
}
