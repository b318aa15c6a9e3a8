#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "engine/snapshot_store.h"

namespace simile::app {

// `films |############--------| 60 %` for the collection whose first load is under way; empty when
// none is. Pure.
std::string ProgressText(const std::vector<engine::CollectionStatus>& collections);

// Shows that line on standard error while collections load; on anything but a terminal it shows
// nothing. All methods may be called from any thread.
class LoadProgress {
 public:
  LoadProgress();
  ~LoadProgress() { Clear(); }
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  bool shown() const { return terminal_; }
  void Draw(const std::vector<engine::CollectionStatus>& collections);
  void Clear();
  // Prints to standard output, on a clean line.
  void Say(const std::string& lines);

 private:
  void Wipe();  // REQUIRES: mutex_ is held

  const bool terminal_;
  std::mutex mutex_;  // guards drawn_ and the terminal's last line
  bool drawn_ = false;
};

}  // namespace simile::app
