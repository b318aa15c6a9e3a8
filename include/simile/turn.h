#pragma once

namespace simile {

// How long a search may keep the device before others get it. A search asks between two pieces of
// its work, each of which takes a few milliseconds at most; when the turn is over it stops there,
// and goes on in its next turn. All methods may be called from any thread.
class Turn {
 public:
  virtual ~Turn() = default;
  virtual bool IsOver() const = 0;
};

// A turn that lasts to the end of the search.
class WholeTurn final : public Turn {
 public:
  bool IsOver() const override { return false; }
};

}  // namespace simile
