#include "net/cut_reports.h"

#include <new>
#include <string>
#include <utility>

namespace simile::net {
namespace {

constexpr Pace kLines{10, 10};

}  // namespace

std::string_view TextOf(Violation violation) {
  switch (violation) {
    case Violation::kNone:
      return "nothing";
    case Violation::kNotHttp2:
      return "does not speak HTTP/2, or speaks TLS to a port without it";
    case Violation::kResets:
      return "begins and resets calls too often";
    case Violation::kHeaderBytes:
      return "sends metadata without end";
    case Violation::kPings:
      return "sends PING frames too often";
    case Violation::kSettings:
      return "sends SETTINGS frames too often";
    case Violation::kPriorities:
      return "sends PRIORITY frames too often";
    case Violation::kWindowUpdates:
      return "sends WINDOW_UPDATE frames too often";
    case Violation::kEmptyData:
      return "sends empty DATA frames too often";
    case Violation::kUnknownFrames:
      return "sends frames of other types too often";
    case Violation::kProtocol:
      return "breaks the rules of HTTP/2";
    case Violation::kMemory:
      return "makes the connection take more memory than there is for it";
  }
  return "";
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
    log_.Warn("connection cut: the peer " + std::string(TextOf(violation)),
              {{"cut_without_a_line", left_out}});
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    lines_left_out_ += left_out + 1;
  }
}

}  // namespace simile::net
