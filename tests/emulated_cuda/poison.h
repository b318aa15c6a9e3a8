#pragma once

#include <cstddef>

namespace emulated_cuda {

// Poison(), which fills, is in emulated/execution.h. Two patterns, both NaN in every format: as an
// integer one is huge and one is the largest, so that one may expose what the other hides.
enum class PoisonPattern : unsigned short { kHuge = 0x7FFF, kLargest = 0xFFFF };
void SetPoisonPattern(PoisonPattern pattern);

// The number of leading bytes that still hold what Poison wrote.
std::size_t FirstNotPoison(const void* at, std::size_t bytes);

}  // namespace emulated_cuda
