#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "engine/snapshots/snapshot_store.h"

namespace simile::app {

// `films |############--------| 60 %` for the first collection that is loading; else empty. Pure.
std::string ProgressText(const std::vector<engine::CollectionStatus>& collections);

// Draws that line on standard error while collections load, if it is a terminal. All methods may be
// called from any thread.
class LoadProgress {
 public:
  LoadProgress();
  ~LoadProgress() { Clear(); }
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  bool is_drawn() const { return terminal_; }
  void Draw(const std::vector<engine::CollectionStatus>& collections);
  void Clear();
  // Clears the progress line and prints to standard output.
  void Print(const std::string& lines);

 private:
  void Wipe();  // REQUIRES: mutex_ is held

  const bool terminal_;
  std::mutex mutex_;  // guards drawn_ and the terminal's last line
  bool drawn_ = false;
};

}  // namespace simile::app
