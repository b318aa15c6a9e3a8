#pragma once

// The peak of an instruction: products from registers alone, without loads or stores. One file for
// each instruction set, with its own compile options; like the kernels of backend/cpu/int8_kernel.h
// they include nothing but this and the intrinsics.

#include <cstddef>
#include <cstdint>

namespace simile::bench {

struct RegisterPeak {
  const char* isa;
  std::uint64_t products_a_turn;  // multiplications of two bytes
  // Loops `turns` times over operands in registers. Returns a sum that depends on every product.
  //   operands  kOperandBytes of random bytes, 64-byte aligned
  std::uint64_t (*run)(const std::uint8_t* operands, std::size_t turns);
};

inline constexpr std::size_t kOperandBytes = 4'096;

#if defined(__x86_64__)
// Four tiles of sums, as many as hide the instruction's latency.
extern const RegisterPeak kAmxPeak;
// Twelve registers of sums, for the same reason.
extern const RegisterPeak kAvx512VnniPeak;
#endif

}  // namespace simile::bench
