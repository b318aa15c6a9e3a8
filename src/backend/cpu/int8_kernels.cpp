#include "backend/cpu/int8_kernels.h"

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace simile::backend::cpu {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports of GCC 12 does not know these two features.
bool ProcessorHasAmxInt8() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kAmxTile = 1U << 24;
  constexpr unsigned kAmxInt8 = 1U << 25;
  return (edx & kAmxTile) != 0 && (edx & kAmxInt8) != 0;
}
bool ProcessorHasAvxVnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kAvxVnni = 1U << 4;
  return (eax & kAvxVnni) != 0;
}

// Linux saves tile state only for processes that requested it (arch_prctl(2)).
bool SystemAllowsAmx() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}
#elif defined(__aarch64__)
bool HasNeonDot() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
#endif

struct KernelTable {
  std::array<const Int8Kernel*, 5> kernels{};
  std::size_t count = 0;
  std::string_view why_no_amx = "the processor has no AMX";

  KernelTable() {
#if defined(__x86_64__)
    if (ProcessorHasAmxInt8() && HasAvx512()) {
      const bool allowed = SystemAllowsAmx();
      if (allowed) kernels[count++] = &kInt8Amx;
      why_no_amx = allowed ? "" : "the system refuses AMX tiles";
    }
    if (HasAvx512() && __builtin_cpu_supports("avx512vnni") != 0) {
      kernels[count++] = &kInt8Avx512Vnni;
    }
    if (HasAvx2() && ProcessorHasAvxVnni()) kernels[count++] = &kInt8AvxVnni;
    if (HasAvx2()) kernels[count++] = &kInt8Avx2;
#elif defined(__aarch64__)
    if (HasNeonDot()) kernels[count++] = &kInt8NeonDot;
#endif
    kernels[count++] = &kInt8Portable;
  }
};

const KernelTable& Table() {
  static const KernelTable table;
  return table;
}

}  // namespace

std::span<const Int8Kernel* const> SupportedInt8Kernels() {
  return {Table().kernels.data(), Table().count};
}

const Int8Kernel* FindInt8Kernel(std::string_view isa) {
  for (const Int8Kernel* kernel : SupportedInt8Kernels()) {
    if (kernel->isa == isa) return kernel;
  }
  return nullptr;
}

std::string_view ToCanonicalIsa(std::string_view int8_isa) {
  if (int8_isa == "amx" || int8_isa == "avx512vnni") return "avx512";
  if (int8_isa == "neondot") return "neon";
  return int8_isa == "avxvnni" ? "avx2" : int8_isa;
}

std::string_view WhyNoAmx() { return Table().why_no_amx; }

}  // namespace simile::backend::cpu
