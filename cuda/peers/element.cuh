// Which C++ type the number of an element type stands for. The kernels have the like in ../instances.cuh; here it is
// the fundamental types, because those are what CUB's tuning tables know.
#pragma once

#include <cstdint>

// LOOKBACK_PEER_ELEMENT is a position in `ElementType::ALL` (src/element.rs).
#if LOOKBACK_PEER_ELEMENT == 0
using Element = std::uint8_t;
#elif LOOKBACK_PEER_ELEMENT == 1
using Element = std::uint16_t;
#elif LOOKBACK_PEER_ELEMENT == 2
using Element = std::uint32_t;
#elif LOOKBACK_PEER_ELEMENT == 3
using Element = std::int32_t;
#elif LOOKBACK_PEER_ELEMENT == 4
using Element = std::uint64_t;
#elif LOOKBACK_PEER_ELEMENT == 5
using Element = std::int64_t;
#elif LOOKBACK_PEER_ELEMENT == 6
using Element = float;
#elif LOOKBACK_PEER_ELEMENT == 7
using Element = double;
#else
#error "LOOKBACK_PEER_ELEMENT is no position of a number in ElementType::ALL"
#endif
