#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "net/token_bucket.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"

namespace simile::net {

// Why a connection is cut.
enum class Violation : std::uint8_t {
  kNone,
  kNotHttp2,
  kResets,
  kHeaderBytes,
  kPings,
  kSettings,
  kPriorities,
  kWindowUpdates,
  kEmptyData,
  kUnknownFrames,
  kProtocol,
  kMemory,
};
// "begins and resets calls too often"
std::string_view TextOf(Violation violation);

// Counts and logs connections that are cut: at most ten lines a second. Any thread.
class CutReports {
 public:
  CutReports(const Clock& clock, observe::Metrics& metrics, const observe::Logger& log);
  void Report(Violation violation) noexcept;

 private:
  const Clock& clock_;
  observe::Metrics& metrics_;
  const observe::Logger& log_;
  std::mutex mutex_;  // guards the members below
  TokenBucket lines_;
  std::uint64_t lines_left_out_ = 0;
};

}  // namespace simile::net
