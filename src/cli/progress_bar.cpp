#include "cli/progress_bar.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "cli/output_text.h"

namespace simile::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawInterval{200};
constexpr const char* kEraseLine = "\r\x1b[K";

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

}  // namespace simile::cli
