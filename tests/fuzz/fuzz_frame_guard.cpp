// Any bytes of a peer and of gRPC, in any pieces, to the frame guard: it never crashes, says the
// same again, changes bytes only of bodies that it refuses, and gives back all that it counted.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "engine/fake_clock.h"
#include "net/frame_guard.h"

namespace {

using simile::net::FrameGuard;
using simile::net::PeerBudget;
using simile::net::Violation;

struct Outcome {
  Violation violation = Violation::kNone;
  std::vector<std::uint8_t> seen;
  std::uint32_t refused = 0;
};

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The input is pieces: a byte whose low bit says which side sends them, and whose others how many
// bytes follow.
Outcome Play(std::span<const std::uint8_t> input) {
  const simile::engine::FakeClock clock;
  const auto budget = std::make_shared<PeerBudget>(256U << 10, clock);
  Outcome outcome;
  {
    FrameGuard guard({.receive_bytes_max = 200U << 10}, budget, clock);
    std::vector<std::uint8_t> preface(kPreface, kPreface + sizeof kPreface - 1);
    if (guard.Received(preface) != Violation::kNone) std::abort();
    while (input.size() > 1 && outcome.violation == Violation::kNone) {
      const std::size_t count = std::min<std::size_t>(input[0] >> 1, input.size() - 1);
      const std::span<const std::uint8_t> sent = input.subspan(1, count);
      std::vector<std::uint8_t> piece(sent.begin(), sent.end());
      const std::vector<std::uint8_t> before = piece;
      const bool is_received = (input[0] & 1) != 0;
      input = input.subspan(1 + count);
      outcome.violation = is_received ? guard.Received(piece) : guard.Sent(piece);
      outcome.refused += guard.ConsumeRefusedCount();
      if (piece != before && (outcome.refused == 0 || !is_received)) std::abort();
      outcome.seen.insert(outcome.seen.end(), piece.begin(), piece.end());
      if (budget->held() > budget->unfinished_bytes_max()) std::abort();
    }
  }
  if (budget->held() != 0) std::abort();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Outcome first = Play({data, size});
  const Outcome second = Play({data, size});
  if (first.violation != second.violation || first.seen != second.seen) std::abort();
  return 0;
}
