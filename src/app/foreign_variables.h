#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace simile::app {

// Who reads a variable that is no setting.
enum class VariableReader : std::uint8_t { kGpuDriver, kContainerRuntime, kNobody };

// A variable that is often set for servers of this kind and that this program does not read.
struct ForeignVariable {
  std::string_view name;    // "OMP_NUM_THREADS"
  VariableReader reader;    // kNobody: it has no effect here
  std::string_view effect;  // one sentence: what it does, or what to set instead
};
std::span<const ForeignVariable> ForeignVariables();

// With this gRPC would take other ciphers, weak ones too.
inline constexpr char kCipherVariable[] = "GRPC_SSL_CIPHER_SUITES";

}  // namespace simile::app
