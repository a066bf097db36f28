//! The litmus tests, each with the verdict that was published.

use super::test::{Litmus, Origin, Verdict};

macro_rules! tests {
    ($($name:literal $verdict:ident $origin:ident $source:literal { $($thread:literal)* } $outcome:literal)*) => {
        &[$(Litmus {
            name: $name,
            threads: concat!($($thread, "\n"),*),
            outcome: $outcome,
            verdict: Verdict::$verdict,
            origin: Origin::$origin,
            source: $source,
        }),*]
    };
}

/// All tests.
pub const TESTS: &[Litmus] = tests! {
    // Message passing.
    "MP+weak" Allowed Axioms "PTX ISA, Causality Order: without a synchronises edge nothing is ordered" {
        "cta 0: st.weak [x], 1; st.weak [y], 1"
        "cta 1: ld.weak r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+relaxed" Allowed Compound "MP" {
        "cta 0: st.relaxed.sys [x], 1; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.cta+acquire.cta, same block" Forbidden MixedProxy "tests/MP_cta.test, first row" {
        "cta 0: st.weak [x], 2; st.release.cta [flag], 1"
        "cta 0: ld.acquire.cta r0, [flag]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.gpu+acquire.gpu, other block" Forbidden MixedProxy "tests/MP_gpu.test, first row" {
        "cta 0: st.weak [x], 2; st.release.gpu [flag], 1"
        "cta 1: ld.acquire.gpu r0, [flag]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.cta+acquire.gpu, same block" Forbidden MixedProxy "tests/Manual/MP-cta-gpu.test" {
        "cta 0: st.weak [x], 1; st.release.cta [y], 1"
        "cta 0: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "MP+release.cta+acquire.cta, other block" Allowed Axioms
        "PTX ISA, Morally strong operations: a scope must include the other thread" {
        "cta 0: st.weak [x], 1; st.release.cta [y], 1"
        "cta 1: ld.acquire.cta r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.gpu+acquire.cta, other block" Allowed Axioms
        "PTX ISA, Morally strong operations: both scopes must include the other thread" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: ld.acquire.cta r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.gpu+acquire.gpu, other GPU" Allowed Axioms
        "PTX ISA, Scope: the gpu scope ends at the GPU" {
        "gpu 0 cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "gpu 1 cta 0: ld.acquire.gpu r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release+acquire, flag read relaxed" Allowed MixedProxy "tests/Manual/MP-relaxed.test" {
        "cta 0: st.release.sys [x], 1; st.release.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; ld.acquire.gpu r2, [x]"
    } "r1 == 1 && r2 == 0"
    "MP+fence.acq_rel.sys" Forbidden Dat3m "Manual/MP-sys-fence.litmus" {
        "cta 0: st.weak [x], 1; fence.acq_rel.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; fence.acq_rel.sys; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "MP+fence.acq_rel.sys, other block" Forbidden PtxIsa "Axioms, Causality, litmus test Message Passing" {
        "cta 0: st.weak [data], 1; fence.acq_rel.sys; st.relaxed.sys [flag], 1"
        "cta 1: ld.relaxed.sys r0, [flag]; fence.acq_rel.sys; ld.weak r1, [data]"
    } "r0 == 1 && r1 == 0"
    "MP+fence.sc" Forbidden Compound "MP_fence" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; fence.sc.sys; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fence in the writer alone" Allowed Compound "MP_fence1" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fence in the reader alone" Allowed Compound "MP_fence2" {
        "cta 0: st.relaxed.sys [x], 1; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; fence.sc.sys; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fences.cta, other block" Allowed Compound "MP_fence_cta" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.cta; st.relaxed.sys [y], 1"
        "cta 1: ld.relaxed.sys r0, [y]; fence.sc.cta; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fence.sys+fence.cta, other block" Allowed Compound "MP_fence_cta_1fence" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 1: ld.relaxed.sys r0, [y]; fence.sc.cta; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fences around weak flags" Allowed Axioms
        "PTX ISA, Release and Acquire Patterns: the write and the read of the flag must be strong" {
        "cta 0: st.weak [x], 1; fence.acq_rel.sys; st.weak [y], 1"
        "cta 1: ld.weak r0, [y]; fence.acq_rel.sys; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release+later strong write" Forbidden Compound "MP_rel_seq" {
        "cta 0: st.relaxed.sys [x], 1; st.release.sys [y], 1; st.relaxed.sys [y], 2"
        "cta 0: ld.acquire.sys r0, [y]; ld.relaxed.sys r1, [x]"
    } "r0 == 2 && r1 == 0"
    "MP+release, later write, fence" Forbidden Dat3m
        "Nvidia/Release-acquire-pattern.litmus; mixedproxy permits it because its Alloy text leaves out acquire fences" {
        "cta 0: st.weak [y], 1; st.release.sys [x], 1; st.relaxed.sys [x], 2"
        "cta 1: ld.relaxed.sys r1, [x]; fence.acq_rel.sys; ld.weak r2, [y]"
    } "r1 == 2 && r2 == 0"
    "MP+flag read relaxed, then acquired from a later write" Forbidden Axioms
        "PTX ISA, Release and Acquire Patterns: a strong read with a later acquire of the location" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: st.relaxed.gpu [y], 2"
        "cta 2: ld.relaxed.gpu r0, [y]; ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+flag advanced by an atom" Forbidden Axioms "PTX ISA, Observation Order: through read-modify-write operations" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: atom.relaxed.gpu.add r0, [y], 1"
        "cta 2: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+flag advanced by an atom of another scope" Allowed Axioms
        "PTX ISA, Observation Order: the first step must be morally strong" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: atom.relaxed.cta.add r0, [y], 1"
        "cta 2: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+flag overwritten by a store" Allowed Axioms "PTX ISA, Observation Order: a plain store ends it" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: ld.relaxed.gpu r0, [y]; st.relaxed.gpu [y], 2"
        "cta 2: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+atom.acq_rel on the flag" Forbidden Axioms "PTX ISA, Release and Acquire Patterns: an atom is both" {
        "cta 0: st.weak [x], 1; atom.acq_rel.gpu.add r0, [y], 1"
        "cta 1: atom.acq_rel.gpu.add r1, [y], 1; ld.weak r2, [x]"
    } "r0 == 0 && r1 == 1 && r2 == 0"
    "MP+atom.relaxed on the flag" Allowed Axioms "PTX ISA, Release and Acquire Patterns: a relaxed atom is neither" {
        "cta 0: st.weak [x], 1; atom.relaxed.gpu.add r0, [y], 1"
        "cta 1: atom.relaxed.gpu.add r1, [y], 1; ld.weak r2, [x]"
    } "r0 == 0 && r1 == 1 && r2 == 0"
    "MP+red and a fence in the reader" Allowed PtxIsa
        "Special Cases, Reductions do not form Acquire Patterns" {
        "cta 0: st.weak [x], 42; fence.acq_rel.gpu; st.relaxed.gpu [flag], 1"
        "cta 1: red.relaxed.gpu.add [flag], 1; fence.acq_rel.gpu; ld.weak r0, [x]"
    } "[flag] == 2 && r0 == 0"
    "MP+atom and a fence in the reader" Forbidden PtxIsa
        "Special Cases, Reductions do not form Acquire Patterns, the same with atom" {
        "cta 0: st.weak [x], 42; fence.acq_rel.gpu; st.relaxed.gpu [flag], 1"
        "cta 1: atom.relaxed.gpu.add r1, [flag], 1; fence.acq_rel.gpu; ld.weak r0, [x]"
    } "r1 == 1 && r0 == 0"
    "MP+deque of Sorensen et al." Forbidden Dat3m
        "Manual/MP-dlb.litmus, after figure 7 of GPU Concurrency (ASPLOS 2015)" {
        "cta 0: st.relaxed.gpu [d], 1; fence.sc.gpu; ld.weak r2, [t]; st.weak [t], r2+1"
        "cta 1: ld.weak r0, [t]; if r0 == 1 then fence.sc.gpu; ld.relaxed.gpu r1, [d]"
    } "r0 == 1 && r1 == 0"
    "MP+deque without its writer's fence" Allowed Dat3m "Manual/MP-dlb-no-fence-1.litmus" {
        "cta 0: st.relaxed.gpu [d], 1; ld.weak r2, [t]; st.weak [t], r2+1"
        "cta 1: ld.weak r0, [t]; fence.sc.gpu; ld.relaxed.gpu r1, [d]"
    } "r0 == 1 && r1 == 0"
    "MP+volatile" Allowed MixedProxy "tests/CoMP_volatile.test" {
        "cta 0: st.weak [x], 1; st.volatile [x], 2"
        "cta 1: ld.weak r0, [x]; ld.volatile r1, [x]"
    } "r0 == 2 && r1 == 1"
    "MP+bar.sync" Forbidden Axioms "PTX ISA, Synchronizes: barriers of a block" {
        "cta 0: st.weak [x], 1; bar.sync 0"
        "cta 0: bar.sync 0; ld.weak r0, [x]"
    } "r0 == 0"
    "MP+bar.sync, then release" Forbidden Axioms "PTX ISA, Base causality order: release is cumulative behind a barrier" {
        "cta 0: st.weak [x], 1; bar.sync 0"
        "cta 0: bar.sync 0; st.release.gpu [y], 1"
        "cta 1: ld.acquire.gpu r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    // Three threads in a chain.
    "ISA2+release.cta, release.gpu" Forbidden MixedProxy "tests/ISA2.test" {
        "cta 0: st.weak [x], 42; st.release.cta [flag1], 1"
        "cta 0: ld.acquire.cta r0, [flag1]; st.release.gpu [flag2], 1"
        "cta 1: ld.acquire.gpu r1, [flag2]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "ISA2+release.cta to another block" Allowed Compound "MP3_scoped" {
        "cta 0: st.release.cta [x], 1; st.release.cta [y], 1"
        "cta 1: ld.acquire.cta r0, [y]; st.release.cta [z], 1"
        "cta 1: ld.acquire.cta r1, [z]; ld.acquire.cta r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "ISA2+fences" Forbidden Compound "MP3_fences'" {
        "cta 0: st.relaxed.sys [x], 1; fence.acq_rel.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; fence.acq_rel.sys; st.relaxed.sys [z], 1"
        "cta 0: ld.relaxed.sys r1, [z]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "ISA2+relaxed" Allowed Compound "MP3" {
        "cta 0: st.relaxed.sys [x], 1; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; st.relaxed.sys [z], 1"
        "cta 0: ld.relaxed.sys r1, [z]; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+release+acquire" Forbidden Compound "WRC_acqrel" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.acquire.sys r0, [x]; st.release.sys [y], 1"
        "cta 0: ld.acquire.sys r1, [y]; ld.acquire.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+acquire in the middle alone" Allowed Compound "WRC_acq_mid" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.acquire.sys r0, [x]; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+release in the middle, fence" Forbidden Compound "WRC_rel_mid_no_fence" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; st.release.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+flag of cta scope within the block" Forbidden Compound "WRC_cta_1_2_acqrel" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.acq_rel.sys; st.relaxed.cta [y], 1"
        "cta 1: ld.relaxed.cta r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+flag of cta scope between blocks" Allowed Compound "WRC_cta_1_1_1_cta_rf_right" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.acq_rel.sys; st.relaxed.cta [y], 1"
        "cta 2: ld.relaxed.cta r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+first write of cta scope" Allowed Compound "WRC_cta_1_1_1_cta_rf_left_sc" {
        "cta 0: st.relaxed.cta [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 2: ld.relaxed.sys r1, [y]; fence.sc.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "MP in three steps, one thread twice" Forbidden MixedProxy "tests/Manual/MP-3-transitive.test" {
        "cta 0: st.weak [x], 1; st.release.cta [y], 1"
        "cta 0: ld.acquire.cta r0, [y]; st.release.gpu [z], 1"
        "cta 1: ld.acquire.gpu r1, [z]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    // Store buffering.
    "SB+weak" Allowed MixedProxy "tests/Manual/SB-weak.test" {
        "cta 0: st.weak [x], 1; ld.weak r1, [y]"
        "cta 1: st.weak [y], 1; ld.weak r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+release+acquire" Allowed Compound "dekkers_acqrel" {
        "cta 0: st.release.sys [x], 1; ld.acquire.sys r1, [y]"
        "cta 0: st.release.sys [y], 1; ld.acquire.sys r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+fence.acq_rel" Allowed Compound "dekkers_acqrelfence" {
        "cta 0: st.relaxed.sys [x], 1; fence.acq_rel.sys; ld.relaxed.sys r1, [y]"
        "cta 0: st.relaxed.sys [y], 1; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+fence.acq_rel.cta, one side seen" Allowed MixedProxy "tests/Manual/SB+acq_rel-cta.test" {
        "cta 0: st.release.cta [x], 1; fence.acq_rel.cta; ld.acquire.cta r1, [y]"
        "cta 0: st.release.cta [y], 1; fence.acq_rel.cta; ld.acquire.cta r2, [x]"
    } "r1 == 1 && r2 == 0"
    "SB+fence.sc.cta, same block" Forbidden MixedProxy "tests/SB_cta.test" {
        "cta 0: st.weak [x], 1; fence.sc.cta; ld.weak r0, [y]"
        "cta 0: st.weak [y], 2; fence.sc.cta; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+fence.sc.cta, other block" Allowed Axioms
        "PTX ISA, Fence-SC: fences out of each other's scope are in no order; mixedproxy SB+sc-cta-outScope.test asks for more" {
        "cta 0: st.weak [x], 1; fence.sc.cta; ld.weak r0, [y]"
        "cta 1: st.weak [y], 1; fence.sc.cta; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+fence.sc.sys+fence.sc.gpu" Forbidden Dat3m "Manual/SB+sc-sys-gpu.litmus" {
        "cta 0: st.weak [x], 1; fence.sc.sys; ld.weak r1, [y]"
        "cta 1: st.weak [y], 1; fence.sc.gpu; ld.weak r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+two fences each" Forbidden MixedProxy "tests/Manual/SB+sc-gpu-multipleFence.test" {
        "cta 0: st.weak [x], 1; fence.sc.gpu; st.weak [x], 2; fence.sc.gpu; ld.weak r1, [y]"
        "cta 1: st.weak [y], 1; fence.sc.gpu; st.weak [y], 2; fence.sc.gpu; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 1"
    "SB+atoms" Forbidden MixedProxy "tests/SB_rmw.test" {
        "cta 0: atom.acq_rel.gpu.add r1, [x], 1; atom.acq_rel.gpu.add r2, [y], 1"
        "cta 1: atom.acq_rel.gpu.add r3, [y], 1; atom.acq_rel.gpu.add r4, [x], 1"
    } "r2 == 0 && r4 == 0"
    "SB+atoms against a load" Allowed MixedProxy "tests/SB_rmw_2.test" {
        "cta 0: atom.acq_rel.gpu.add r1, [x], 1; atom.acq_rel.gpu.add r2, [y], 1"
        "cta 1: st.relaxed.gpu [y], 1; ld.relaxed.gpu r3, [x]"
    } "r2 == 0 && r3 == 0"
    "SB+bar.sync" Forbidden Dat3m "Manual/SB+bar-const-equal.litmus" {
        "cta 0: st.weak [x], 1; bar.sync 0; ld.weak r0, [y]"
        "cta 0: st.weak [y], 1; bar.sync 0; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+bar.sync of two numbers" Allowed Dat3m "Manual/SB+bar-const-diff.litmus" {
        "cta 0: st.weak [x], 1; bar.sync 0; ld.weak r0, [y]"
        "cta 0: st.weak [y], 1; bar.sync 1; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+bar.sync of two blocks" Allowed Dat3m "Manual/SB+bar-diff-cta.litmus" {
        "cta 0: st.weak [x], 1; bar.sync 0; ld.weak r0, [y]"
        "cta 1: st.weak [y], 1; bar.sync 0; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "R+fence.sc" Forbidden Axioms "PTX ISA, Fence-SC and Causality" {
        "cta 0: st.relaxed.gpu [x], 1; fence.sc.gpu; st.relaxed.gpu [y], 1"
        "cta 1: st.relaxed.gpu [y], 2; fence.sc.gpu; ld.relaxed.gpu r0, [x]"
    } "[y] == 2 && r0 == 0"
    "R+fence.acq_rel" Allowed Axioms "PTX ISA, Coherence: without synchronisation the order of the writes is open" {
        "cta 0: st.relaxed.gpu [x], 1; fence.acq_rel.gpu; st.relaxed.gpu [y], 1"
        "cta 1: st.relaxed.gpu [y], 2; fence.acq_rel.gpu; ld.relaxed.gpu r0, [x]"
    } "[y] == 2 && r0 == 0"
    "RWC+fence.sc" Forbidden Axioms "PTX ISA, Fence-SC and Causality through observation" {
        "cta 0: st.relaxed.gpu [x], 1"
        "cta 1: ld.relaxed.gpu r0, [x]; fence.sc.gpu; ld.relaxed.gpu r1, [y]"
        "cta 2: st.relaxed.gpu [y], 1; fence.sc.gpu; ld.relaxed.gpu r2, [x]"
    } "r0 == 1 && r1 == 0 && r2 == 0"
    // Load buffering.
    "LB+relaxed" Allowed Axioms "PTX ISA, No Thin Air: only dependencies count" {
        "cta 0: ld.relaxed.gpu r0, [x]; st.relaxed.gpu [y], 1"
        "cta 1: ld.relaxed.gpu r1, [y]; st.relaxed.gpu [x], 1"
    } "r0 == 1 && r1 == 1"
    "LB+true dependencies" Forbidden PtxIsa "Axioms, No Thin Air, litmus test Load Buffering; Dat3M LB+NoThinAir-register" {
        "cta 0: ld.weak r0, [x]; st.weak [y], r0"
        "cta 1: ld.weak r1, [y]; st.weak [x], r1"
    } "r0 == 1 && r1 == 1"
    "LB+one dependency" Allowed Axioms "PTX ISA, No Thin Air: the chain must be whole" {
        "cta 0: ld.weak r0, [x]; st.weak [y], r0"
        "cta 1: ld.weak r1, [y]; st.weak [x], 1"
    } "r0 == 1 && r1 == 1"
    "LB+acquire, release" Forbidden Axioms "PTX ISA, Causality: a read cannot see a write that it causes" {
        "cta 0: ld.acquire.gpu r0, [x]; st.release.gpu [y], 1"
        "cta 1: ld.acquire.gpu r1, [y]; st.release.gpu [x], 1"
    } "r0 == 1 && r1 == 1"
    "LB+deque of Sorensen et al." Forbidden Dat3m
        "Manual/LB-dlb.litmus, after figure 8 of GPU Concurrency (ASPLOS 2015)" {
        "cta 0: atom.relaxed.gpu.cas r0, [h], 0, 1; fence.sc.gpu; st.weak [t], 1"
        "cta 1: ld.weak r1, [t]; fence.sc.gpu; atom.relaxed.gpu.cas r3, [h], 0, 1"
    } "r0 == 1 && r1 == 1"
    "LB+deque without its first fence" Allowed Dat3m "Manual/LB-dlb-no-fence-1.litmus" {
        "cta 0: atom.relaxed.gpu.cas r0, [h], 0, 1; st.relaxed.gpu [t], 1"
        "cta 1: ld.relaxed.gpu r1, [t]; fence.sc.gpu; atom.relaxed.gpu.cas r3, [h], 0, 1"
    } "r0 == 1 && r1 == 1"
    "LB+bar.sync" Forbidden Dat3m "Manual/PC-bar-sync-sync-1.litmus" {
        "cta 0: ld.weak r0, [x]; bar.sync 0; bar.sync 1"
        "cta 0: bar.sync 0; st.weak [x], 1; bar.sync 1"
    } "r0 == 1"
    // Independent reads of independent writes.
    "IRIW+relaxed" Allowed Compound "IRIW" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; ld.relaxed.sys r3, [x]"
        "cta 0: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+release+acquire" Allowed Compound "IRIW_relacq" {
        "cta 0: st.release.sys [x], 1"
        "cta 0: ld.acquire.sys r0, [x]; ld.acquire.sys r1, [y]"
        "cta 0: ld.acquire.sys r2, [y]; ld.acquire.sys r3, [x]"
        "cta 0: st.release.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc" Forbidden Compound "IRIW_fences" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; fence.sc.sys; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; fence.sc.sys; ld.relaxed.sys r3, [x]"
        "cta 0: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc and fence.acq_rel" Allowed Compound "IRIW_sc_acqrel_fence" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; fence.sc.sys; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; fence.acq_rel.sys; ld.relaxed.sys r3, [x]"
        "cta 0: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.cta, readers in one block" Forbidden Compound "IRIW_3ctas" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.cta; ld.relaxed.sys r1, [y]"
        "cta 1: ld.relaxed.sys r2, [y]; fence.sc.cta; ld.relaxed.sys r3, [x]"
        "cta 2: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.cta, a write of cta scope" Allowed Compound "IRIW_3ctas_1scoped_w" {
        "cta 0: st.relaxed.cta [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.cta; ld.relaxed.sys r1, [y]"
        "cta 1: ld.relaxed.sys r2, [y]; fence.sc.cta; ld.relaxed.sys r3, [x]"
        "cta 2: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.cta, readers in two blocks" Allowed Compound "IRIW_2ctas" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.cta; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; fence.sc.cta; ld.relaxed.sys r3, [x]"
        "cta 1: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.sys, reads of cta scope" Allowed Compound "IRIW_4ctas" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.cta r0, [x]; fence.sc.sys; ld.relaxed.cta r1, [y]"
        "cta 2: ld.relaxed.cta r2, [y]; fence.sc.sys; ld.relaxed.sys r3, [x]"
        "cta 3: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    // One location.
    "CoRR+relaxed" Forbidden PtxIsa "Axioms, Sequential Consistency Per Location, litmus test CoRR" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "CoRR+acquire, then weak" Forbidden MixedProxy "tests/Manual/CoRR-acquire-weak.test" {
        "cta 0: st.release.gpu [x], 1"
        "cta 1: ld.acquire.gpu r1, [x]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "CoRR+weak" Allowed Dat3m "Manual/CoRR-weak-weak.litmus" {
        "gpu 0 cta 0: st.release.gpu [x], 1"
        "gpu 1 cta 1: ld.weak r1, [x]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "CoRR+four threads" Forbidden MixedProxy "tests/Manual/Coherence.test" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: st.relaxed.sys [x], 2"
        "cta 0: ld.acquire.sys r0, [x]; ld.acquire.sys r1, [x]"
        "cta 0: ld.acquire.sys r2, [x]; ld.acquire.sys r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoRR+four threads, weak writes" Allowed MixedProxy "tests/Manual/Coherence-weak.test" {
        "cta 0: st.weak [x], 1"
        "cta 0: st.weak [x], 2"
        "cta 0: ld.acquire.sys r0, [x]; ld.acquire.sys r1, [x]"
        "cta 0: ld.acquire.sys r2, [x]; ld.acquire.sys r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoRR+cta scope, other block" Allowed Compound "write_serialization" {
        "cta 0: st.relaxed.cta [x], 1; st.relaxed.cta [x], 2"
        "cta 0: ld.relaxed.cta r0, [x]; ld.relaxed.cta r1, [x]"
        "cta 1: ld.relaxed.cta r2, [x]; ld.relaxed.cta r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoRR+cta scope, same block" Forbidden Compound "write_serialization_unscoped" {
        "cta 0: st.relaxed.cta [x], 1; st.relaxed.cta [x], 2"
        "cta 0: ld.relaxed.cta r0, [x]; ld.relaxed.cta r1, [x]"
        "cta 0: ld.relaxed.cta r2, [x]; ld.relaxed.cta r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoWW" Forbidden Dat3m "Manual/CoWW_.litmus" {
        "cta 0: st.weak [x], 1; st.weak [x], 2"
    } "[x] == 1"
    "CoWW+weak reads" Allowed MixedProxy "tests/Manual/CoWW-RR.test" {
        "cta 0: st.weak [x], 1; st.weak [x], 2"
        "cta 0: ld.weak r0, [x]; ld.weak r1, [x]"
    } "r0 == 2 && r1 == 1"
    "CoWW+own acquire" Forbidden MixedProxy "tests/Manual/CoWW-R.test" {
        "cta 0: st.weak [x], 1; st.weak [x], 2; ld.acquire.sys r1, [x]"
    } "r1 == 1"
    "CoWR" Forbidden MixedProxy "tests/CoWR.test, first row" {
        "cta 0: st.weak [x], 1; ld.weak r0, [x]"
    } "r0 == 0"
    "CoWR+another's write" Allowed MixedProxy "tests/Manual/CoWR-R.test" {
        "cta 0: st.release.gpu [x], 1"
        "cta 1: st.release.sys [x], 2; ld.weak r1, [x]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 1"
    "CoRW" Forbidden MixedProxy "tests/Manual/CoRW-R.test" {
        "cta 0: st.release.sys [x], 1"
        "cta 1: ld.acquire.sys r1, [x]; st.weak [x], 2; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 1"
    "CoRW+two threads" Forbidden Compound "co_two_thread" {
        "cta 0: st.relaxed.sys [x], 1; ld.relaxed.sys r0, [x]"
        "cta 0: st.relaxed.sys [x], 2; ld.relaxed.sys r1, [x]"
    } "r0 == 2 && r1 == 1"
    "CoRW, observed" Forbidden MixedProxy "tests/Manual/Cause-base-strong.test" {
        "cta 0: st.release.gpu [x], 1; st.release.sys [f1], 1"
        "cta 1: ld.acquire.gpu r1, [x]; st.weak [x], 2; st.release.sys [f2], 1"
        "cta 2: ld.acquire.sys r2, [f2]; ld.acquire.sys r3, [f2]; ld.weak r4, [x]"
    } "r1 == 1 && r2 == 1 && r3 == 1 && r4 == 1"
    "CoRW, not observed" Allowed MixedProxy "tests/Manual/Cause-base-weak.test" {
        "cta 0: st.weak [x], 1; st.release.sys [f1], 1"
        "cta 1: ld.acquire.gpu r1, [x]; st.weak [x], 2; st.release.sys [f2], 1"
        "cta 2: ld.acquire.sys r2, [f2]; ld.acquire.sys r3, [f2]; ld.weak r4, [x]"
    } "r1 == 1 && r2 == 1 && r3 == 1 && r4 == 1"
    "Coherence is partial" Allowed MixedProxy "tests/Manual/Co-Total-4-threads.test" {
        "cta 0: st.weak [x], 1; st.release.sys [f1], 1"
        "cta 0: st.weak [x], 2; st.release.sys [f2], 1"
        "cta 0: ld.acquire.sys r0, [f1]; ld.acquire.sys r1, [f2]; ld.weak r2, [x]"
        "cta 0: ld.acquire.sys r3, [f1]; ld.acquire.sys r4, [f2]; ld.weak r5, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 1 && r3 == 1 && r4 == 1 && r5 == 2"
    // Writes alone.
    "2+2W+relaxed" Allowed Axioms "PTX ISA, Coherence Order: orders of two locations are independent" {
        "cta 0: st.relaxed.gpu [x], 1; st.relaxed.gpu [y], 2"
        "cta 1: st.relaxed.gpu [y], 1; st.relaxed.gpu [x], 2"
    } "[x] == 1 && [y] == 1"
    "2+2W+release, seen by acquire" Allowed Compound "two_plus_two2" {
        "cta 0: st.release.sys [x], 1; st.release.sys [y], 2; ld.acquire.sys r0, [y]"
        "cta 0: st.release.sys [y], 1; st.release.sys [x], 2; ld.acquire.sys r1, [x]"
    } "r0 == 1 && r1 == 1"
    "2+2W+fence.sc" Forbidden Axioms "PTX ISA, Fence-SC and Coherence" {
        "cta 0: st.relaxed.gpu [x], 1; fence.sc.gpu; st.relaxed.gpu [y], 2"
        "cta 1: st.relaxed.gpu [y], 1; fence.sc.gpu; st.relaxed.gpu [x], 2"
    } "[x] == 1 && [y] == 1"
    "S+release+acquire" Forbidden Axioms "PTX ISA, Coherence: causality order of writes is their coherence order" {
        "cta 0: st.relaxed.gpu [x], 2; st.release.gpu [y], 1"
        "cta 1: ld.acquire.gpu r0, [y]; st.relaxed.gpu [x], 1"
    } "r0 == 1 && [x] == 2"
    "S+relaxed" Allowed Axioms "PTX ISA, Coherence: without causality order the order is open" {
        "cta 0: st.relaxed.gpu [x], 2; st.relaxed.gpu [y], 1"
        "cta 1: ld.relaxed.gpu r0, [y]; st.relaxed.gpu [x], 1"
    } "r0 == 1 && [x] == 2"
    // Atomicity.
    "Atomicity of atoms" Forbidden PtxIsa "Axioms, Atomicity, litmus test 1; Dat3M Nvidia/Atom-plus-location_" {
        "cta 0: atom.relaxed.sys.add r0, [x], 1"
        "cta 1: atom.relaxed.sys.add r1, [x], 1"
    } "[x] == 1"
    "Atomicity of atoms of cta scope" Allowed PtxIsa "Axioms, Atomicity, litmus test 2; Dat3M Manual/Atom-plus-location-weak_" {
        "cta 0: atom.acq_rel.cta.add r0, [x], 1"
        "cta 1: atom.acq_rel.cta.add r1, [x], 1"
    } "[x] == 1"
    "Atomicity of reductions" Forbidden Dat3m "Nvidia/Red-plus-location_.litmus" {
        "cta 0: red.acq_rel.sys.add [x], 1"
        "cta 1: red.acq_rel.sys.add [x], 1"
    } "[x] == 1"
    "Two atoms take one number" Forbidden Axioms "PTX ISA, Atomicity: one would come between the other's read and write" {
        "cta 0: atom.relaxed.gpu.add r0, [x], 1"
        "cta 1: atom.relaxed.gpu.add r1, [x], 1"
        "cta 2: atom.relaxed.gpu.add r2, [x], 1"
    } "r0 == 1 && r1 == 1"
    // Width.
    "A 64-bit scalar in halves" Forbidden PtxIsa "Axioms, Atomicity, Single-Copy Atomicity" {
        "cta 0: st.relaxed.gpu.b64 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 1 && r1 == 0"
    "A 64-bit scalar in halves, weak" Allowed Axioms
        "PTX ISA, Single-Copy Atomicity: of morally strong operations only" {
        "cta 0: st.weak.b64 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 1 && r1 == 0"
    "A vector of two words" Allowed PtxIsa "Vector Data-types: as many scalar accesses, in no order" {
        "cta 0: st.relaxed.gpu.v2.b32 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.v2.b32 r0, r1, [x]"
    } "r0 == 1 && r1 == 0"
    "A vector store against a scalar load" Allowed PtxIsa
        "Vector Data-types, and Mixed-size Data-races: the axioms promise nothing" {
        "cta 0: st.relaxed.gpu.v2.b32 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 0 && r1 == 1"
    "Two halves stored one after the other" Allowed PtxIsa "Mixed-size Data-races: the axioms promise nothing" {
        "cta 0: st.relaxed.gpu.b32 [x], 1; st.relaxed.gpu.b32 [x+4], 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 0 && r1 == 1"
    "A 128-bit scalar in halves" Forbidden Axioms "PTX ISA, ld and st with .b128: one scalar; the chapter's text names 64 bits" {
        "cta 0: st.relaxed.gpu.b128 [x], 1, 1, 1, 1"
        "cta 1: ld.relaxed.gpu.b128 r0, r1, r2, r3, [x]"
    } "r0 == 1 && r3 == 0"
};
