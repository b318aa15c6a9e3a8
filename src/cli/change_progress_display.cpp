#include "cli/change_progress_display.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

constexpr std::size_t kChangeBarWidth = 20;
constexpr std::chrono::seconds kLineInterval{2};

}  // namespace

ChangeProgressDisplay::ChangeProgressDisplay(std::string label, bool json)
    : label_(std::move(label)),
      json_(json),
      next_line_at_(std::chrono::steady_clock::now() + kLineInterval) {
  if (!json && StandardError().is_terminal) {
    bar_ = std::make_unique<ProgressBar>([this] { return BarLine(); });
  }
}

void ChangeProgressDisplay::Set(const v1::ChangeProgress& progress) {
  if (bar_ != nullptr) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_line_at_) return;
  next_line_at_ = now + kLineInterval;
  base::WriteAll(STDERR_FILENO, json_ ? JsonLine({{"progress", ProgressJson(progress)}})
                                      : ProgressLine(label_, progress) + '\n');
}

std::string ChangeProgressDisplay::BarLine() {
  const std::lock_guard lock(mutex_);
  if (!progress_) return label_ + " ...";
  return fmt::format("{} {}  {}", label_, BarText(progress_->share(), kChangeBarWidth),
                     ProgressText(*progress_));
}

}  // namespace simile::cli
