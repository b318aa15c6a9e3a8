#pragma once

#include <cstddef>

namespace emulated_cuda {

// Poison(), which fills, is in emulated/execution.h. Two patterns, both NaN in every format, as
// what one of them hides the other may show: as an integer, one is huge and one is the largest.
enum class PoisonPattern : unsigned short { kHuge = 0x7FFF, kLargest = 0xFFFF };
void SetPoisonPattern(PoisonPattern pattern);

// How far the memory still holds what Poison wrote there; `bytes` when all of it does.
std::size_t FirstNotPoison(const void* at, std::size_t bytes);

}  // namespace emulated_cuda
