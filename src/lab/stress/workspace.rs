//! What the descriptors of a workspace hold before its first launch.

use super::draw::Draw;
use crate::abi;
use crate::names::named;
use crate::strategy::Descriptor;

named! {
    /// What the descriptors hold before the first launch. No tag is of an epoch that is about to run, and the control
    /// block is always valid.
    pub enum WorkspaceStart as "start of a workspace" {
        /// Zeros, as a workspace is made.
        Zeros = "zeros",
        /// Random words.
        Random = "random",
        /// All bits set.
        Ones = "ones",
        /// Descriptors as launches of earlier epochs left them.
        Earlier = "earlier",
    }
}

/// How many tags the descriptors of so many tiles have: one a tile, or one a word.
pub(super) const fn tags(descriptors: &[u8], layout: Descriptor, tiles: u64) -> u64 {
    match layout {
        Descriptor::Packed64 | Descriptor::Split => tiles,
        Descriptor::Packed128 => descriptors.len() as u64 / 16,
    }
}

/// Where a tag lies, in bytes from the first descriptor.
pub(super) const fn tag_offset(layout: Descriptor, number: u64) -> usize {
    let number = number as usize;
    match layout {
        Descriptor::Packed64 => 8 * number + 4,
        Descriptor::Packed128 => 16 * number + 8,
        Descriptor::Split => 4 * number,
    }
}

/// The tag of that number.
pub(super) fn tag(descriptors: &[u8], layout: Descriptor, number: u64) -> u32 {
    bytemuck::pod_read_unaligned(&descriptors[tag_offset(layout, number)..][..4])
}

/// Fills `tiles` descriptors, all zero, with what must not matter to launches from epoch `completed` + 1 on.
pub(super) fn fill(
    descriptors: &mut [u8],
    (layout, tiles): (Descriptor, u64),
    start: WorkspaceStart,
    completed: u32,
    launches: u64,
    draw: &mut Draw,
) {
    match start {
        WorkspaceStart::Zeros => return,
        WorkspaceStart::Ones => descriptors.fill(0xff),
        WorkspaceStart::Random | WorkspaceStart::Earlier => {
            for chunk in descriptors.chunks_exact_mut(8) {
                chunk.copy_from_slice(&draw.word().to_ne_bytes());
            }
        }
    }
    // From here to the wrap, where the kernels clear everything, no tag of the launches to come may be there.
    let coming = u64::from(completed) + 1..=u64::from(completed) + launches;
    for number in 0..tags(descriptors, layout, tiles) {
        let mut tag = tag(descriptors, layout, number);
        if start == WorkspaceStart::Earlier {
            // The first few epochs, which come again after the wrap, or those just before.
            let back = draw.below(4) as u32;
            let epoch = if draw.percent(50) { (1 + back).min(completed) } else { completed.saturating_sub(back) };
            tag = epoch << abi::LOOKBACK_STATUS_BITS | draw.below(3) as u32;
        }
        if coming.contains(&u64::from(tag >> abi::LOOKBACK_STATUS_BITS)) {
            tag &= (1 << abi::LOOKBACK_STATUS_BITS) - 1;
        }
        let offset = tag_offset(layout, number);
        descriptors[offset..offset + 4].copy_from_slice(&tag.to_ne_bytes());
    }
}
