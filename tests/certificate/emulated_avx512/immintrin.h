// Replaces the compiler's <immintrin.h> when canonical_score_avx512.cpp is compiled for the
// emulated check: the 512-bit intrinsics are SIMD Everywhere's portable versions, which run two
// 256-bit operations each, and the narrower ones are the processor's own.
#pragma once
#pragma GCC system_header

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
