#include "app/load_progress.h"

#include <unistd.h>

#include <cstddef>
#include <cstdio>

#include <fmt/format.h>

namespace simile::app {

std::string ProgressText(const std::vector<engine::CollectionStatus>& collections) {
  constexpr std::size_t kBarWidth = 30;
  for (const engine::CollectionStatus& collection : collections) {
    if (collection.state != engine::CollectionState::kLoading || !collection.progress) continue;
    const double share = collection.progress->share;
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    return fmt::format("{} |{}{}| {:.0f} %", collection.name, std::string(filled, '#'),
                       std::string(kBarWidth - filled, '-'), share * 100);
  }
  return "";
}

LoadProgress::LoadProgress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void LoadProgress::Draw(const std::vector<engine::CollectionStatus>& collections) {
  if (!terminal_) return;
  const std::string text = ProgressText(collections);
  const std::lock_guard lock(mutex_);
  Wipe();
  if (text.empty()) return;
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
  drawn_ = true;
}

void LoadProgress::Clear() {
  const std::lock_guard lock(mutex_);
  Wipe();
}

void LoadProgress::Print(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  Wipe();
  fmt::print("{}\n", lines);
  std::fflush(stdout);  // a parent process may wait for these lines on a pipe
}

void LoadProgress::Wipe() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace simile::app
