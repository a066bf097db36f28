// Which C++ types the numbers of the host stand for: the one table that the CUDA device (`entry.cu`) and
// the CPU device (`host/`) share. LOOKBACK_ELEMENT and LOOKBACK_OPERATOR are the positions in
// `ElementType::ALL` and `Operator::ALL` (src/element.rs); both come from the compiler's command line.
// Defines LOOKBACK_ELEMENT_TYPE and LOOKBACK_OPERATOR_TYPE.
#pragma once

#include "operators.cuh"

#if !defined(LOOKBACK_ELEMENT) || !defined(LOOKBACK_OPERATOR)
#error "define LOOKBACK_ELEMENT and LOOKBACK_OPERATOR: positions in ElementType::ALL and Operator::ALL"
#endif

#if LOOKBACK_ELEMENT == 0
#define LOOKBACK_ELEMENT_TYPE ::lookback::u8
#elif LOOKBACK_ELEMENT == 1
#define LOOKBACK_ELEMENT_TYPE ::lookback::u16
#elif LOOKBACK_ELEMENT == 2
#define LOOKBACK_ELEMENT_TYPE ::lookback::u32
#elif LOOKBACK_ELEMENT == 3
#define LOOKBACK_ELEMENT_TYPE int
#elif LOOKBACK_ELEMENT == 4
#define LOOKBACK_ELEMENT_TYPE ::lookback::u64
#elif LOOKBACK_ELEMENT == 5
#define LOOKBACK_ELEMENT_TYPE long long
#elif LOOKBACK_ELEMENT == 6
#define LOOKBACK_ELEMENT_TYPE float
#elif LOOKBACK_ELEMENT == 7
#define LOOKBACK_ELEMENT_TYPE double
#elif LOOKBACK_ELEMENT == 8
#define LOOKBACK_ELEMENT_TYPE ::lookback::affine_map
#elif LOOKBACK_ELEMENT == 9
#define LOOKBACK_ELEMENT_TYPE ::lookback::bicyclic_pair
#elif LOOKBACK_ELEMENT == 10
#define LOOKBACK_ELEMENT_TYPE ::lookback::index_interval
#else
#error "LOOKBACK_ELEMENT is no position in ElementType::ALL"
#endif

#if LOOKBACK_OPERATOR == 0
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::sum<LOOKBACK_ELEMENT_TYPE>
#elif LOOKBACK_OPERATOR == 1
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::minimum<LOOKBACK_ELEMENT_TYPE>
#elif LOOKBACK_OPERATOR == 2
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::maximum<LOOKBACK_ELEMENT_TYPE>
#elif LOOKBACK_OPERATOR == 3
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::bit_and<LOOKBACK_ELEMENT_TYPE>
#elif LOOKBACK_OPERATOR == 4
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::bit_or<LOOKBACK_ELEMENT_TYPE>
#elif LOOKBACK_OPERATOR == 5
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::bit_xor<LOOKBACK_ELEMENT_TYPE>
#elif LOOKBACK_OPERATOR == 6
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::affine
#elif LOOKBACK_OPERATOR == 7
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::bicyclic
#elif LOOKBACK_OPERATOR == 8
#define LOOKBACK_OPERATOR_TYPE ::lookback::operators::intervals
#else
#error "LOOKBACK_OPERATOR is no position in Operator::ALL"
#endif
