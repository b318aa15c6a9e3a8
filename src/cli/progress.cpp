#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{200};
constexpr const char* kEraseLine = "\r\x1b[K";

constexpr std::size_t kChangeBarWidth = 20;
constexpr std::chrono::seconds kLineInterval{2};

}  // namespace

std::string BarText(double fraction, std::size_t width) {
  const double bounded = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(bounded * static_cast<double>(width));
  return fmt::format("|{}{}| {:.0f} %", std::string(filled, '#'), std::string(width - filled, '-'),
                     bounded * 100);
}

ProgressBar::ProgressBar(std::function<std::string()> line)
    : line_(std::move(line)), terminal_(StandardError()) {
  if (terminal_.is_terminal) thread_ = std::thread([this] { Draw(); });
}

ProgressBar::~ProgressBar() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_one();
  thread_.join();
  fmt::print(stderr, "{}", kEraseLine);
}

void ProgressBar::Draw() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kRedrawInterval, [this] { return stopped_; })) {
    lock.unlock();
    fmt::print(stderr, "\r{}\x1b[K", Shortened(Printable(line_()), terminal_.width - 1));
    std::fflush(stderr);
    lock.lock();
  }
}

std::string ProgressText(const v1::ChangeProgress& progress) {
  if (progress.stage() == v1::ChangeProgress::STAGE_UNSPECIFIED) return "";
  if (progress.stage() == v1::ChangeProgress::STAGE_WAITING) return "waiting for other changes";
  std::string text = StageName(progress.stage());
  if (progress.stage() != v1::ChangeProgress::STAGE_READING) return text;
  const bool known = progress.bytes_total() > 0;
  if (known) {
    text += fmt::format(" {} of {}", base::BytesText(progress.bytes_read()),
                        base::BytesText(progress.bytes_total()));
  }
  // The file comes last, because a line that is too long is cut at its end.
  if (!progress.file().empty()) text += (known ? ", " : " ") + progress.file();
  return text;
}

std::string ProgressLine(const std::string& label, const v1::ChangeProgress& progress) {
  const std::string text = ProgressText(progress);
  return fmt::format("{}: {:.0f} %{}{}", label, progress.share() * 100, text.empty() ? "" : ", ",
                     text);
}

nlohmann::ordered_json ProgressJson(const v1::ChangeProgress& progress) {
  return {{"stage", StageName(progress.stage())},
          {"file", progress.file()},
          {"share", progress.share()},
          {"bytes_read", progress.bytes_read()},
          {"bytes_total", progress.bytes_total()}};
}

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
