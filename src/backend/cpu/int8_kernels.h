#pragma once

#include <span>
#include <string_view>

#include "backend/cpu/int8_kernel.h"

namespace simile::backend::cpu {

// The kernels that this processor and its system can run. The fastest for large batches comes
// first; the last is always "portable". Asks the system once for permission to use AMX tiles (8 KiB
// a thread).
std::span<const Int8Kernel* const> SupportedInt8Kernels();

// The kernel with this name, or nullptr when there is none or it cannot run here.
const Int8Kernel* FindInt8Kernel(std::string_view isa);

// The instruction set of canonical scores to use with an int8 kernel: "avx512" with "amx", "neon"
// with "neondot".
std::string_view ToCanonicalIsa(std::string_view int8_isa);

// Why AMX is not supported: "the processor has no AMX" or "the system refuses AMX tiles"; "" when
// it is.
std::string_view WhyNoAmx();

}  // namespace simile::backend::cpu
