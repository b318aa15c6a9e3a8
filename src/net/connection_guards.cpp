#include "net/connection_guards.h"

#include <array>
#include <cstddef>
#include <new>
#include <string>
#include <utility>

namespace simile::net {
namespace {

constexpr Pace kLines{10, 10};

}  // namespace

std::string_view ViolationText(Violation violation) {
  constexpr std::array<std::string_view, 12> kTexts = {
      "nothing",
      "does not speak HTTP/2, or speaks TLS to a port without it",
      "begins and resets calls too often",
      "sends metadata without end",
      "sends PING frames too often",
      "sends SETTINGS frames too often",
      "sends PRIORITY frames too often",
      "sends WINDOW_UPDATE frames too often",
      "sends empty DATA frames too often",
      "sends frames of other types too often",
      "breaks the rules of HTTP/2",
      "makes the connection take more memory than there is for it",
  };
  static_assert(kTexts.size() == static_cast<std::size_t>(Violation::kMemory) + 1);
  return kTexts.at(static_cast<std::size_t>(violation));
}

CutReports::CutReports(const Clock& clock, observe::Metrics& metrics, const observe::Logger& log)
    : clock_(clock), metrics_(metrics), log_(log), lines_(kLines, clock.Now()) {}

void CutReports::Report(Violation violation) noexcept {
  metrics_.CountRejected(observe::Rejection::kFrameGuard);
  std::uint64_t left_out = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!lines_.Spend(clock_)) {
      ++lines_left_out_;
      return;
    }
    left_out = std::exchange(lines_left_out_, 0);
  }
  try {
    log_.Warn("connection cut: the peer " + std::string(ViolationText(violation)),
              {{"cut_without_a_line", left_out}});
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    lines_left_out_ += left_out + 1;
  }
}

}  // namespace simile::net
