#pragma once

namespace simile {

// How long a search may keep the device before other searches get it. Between two pieces of its
// work the search asks whether the turn is over. A piece takes a few milliseconds at most. When the
// turn is over, the search pauses; its next turn continues at that piece. All methods may be called
// from any thread.
class Turn {
 public:
  virtual ~Turn() = default;
  virtual bool IsOver() const = 0;
  // Whether a search on the host's processors leaves one of its threads idle, so that other work
  // finds a free processor. A search on a GPU ignores it.
  virtual bool LeavesOneThread() const { return false; }
};

// A turn that lasts to the end of the search.
class WholeTurn final : public Turn {
 public:
  bool IsOver() const override { return false; }
};

}  // namespace simile
