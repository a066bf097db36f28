// What joining parts of two vectors takes.
#pragma once

#include "../config.cuh"

namespace lookback {

// For `select_bytes`: the four bytes of two words that begin `skipped` bytes behind the first one's.
DEVICE u32 byte_selector(u32 skipped) { return 0x3210 + 0x1111 * skipped; }

}  // namespace lookback
