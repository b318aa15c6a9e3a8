#include "cli/bench/load_pace.h"

#include <cassert>
#include <cmath>

namespace simile::cli::bench {

LoadPace::LoadPace(const Load& load, std::uint64_t seed) : load_(load), random_(seed) {
  if (load_.rate) DrawArrival();
}

void LoadPace::DrawArrival() { arrival_ns_ += -std::log(random_.Uniform()) / *load_.rate * 1e9; }

std::optional<Nanoseconds> LoadPace::NextDue(Nanoseconds now) const {
  if (in_flight_ >= load_.in_flight) return std::nullopt;
  if (!load_.rate) return now;
  return Nanoseconds(std::llround(arrival_ns_));
}

Nanoseconds LoadPace::Send(Nanoseconds now) {
  assert(NextDue(now) && *NextDue(now) <= now);
  ++in_flight_;
  if (!load_.rate) return now;
  const Nanoseconds intended(std::llround(arrival_ns_));
  DrawArrival();
  return intended;
}

void LoadPace::Complete() {
  assert(in_flight_ > 0);
  --in_flight_;
}

std::optional<Nanoseconds> LoadPace::SkipBefore(Nanoseconds end) {
  if (!load_.rate || arrival_ns_ >= static_cast<double>(end.count())) return std::nullopt;
  const Nanoseconds skipped(std::llround(arrival_ns_));
  DrawArrival();
  return skipped;
}

}  // namespace simile::cli::bench
