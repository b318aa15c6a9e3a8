#include "service/calls/caller_shares.h"

#include <functional>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::service {

CallerKey HashPeer(const net::PeerKey& peer) {
  return static_cast<CallerKey>(std::hash<std::string_view>{}(peer.bytes()));
}

CallerKey HashPrincipalName(std::string_view name) {
  return static_cast<CallerKey>(std::hash<std::string_view>{}(name));
}

std::string CallerShares::Shortage(CallerKey caller, std::uint64_t amount) const {
  return fmt::format(
      "{} of {} {} are taken, {} of them by this caller; one caller gets at most half{}",
      base::Grouped(held()), base::Grouped(amount_max_), of_places_ ? "places" : "bytes",
      base::Grouped(HeldBy(caller)),
      of_places_ ? ", and some are kept for callers that hold none"
                 : fmt::format(": {} more do not fit", base::Grouped(amount)));
}

}  // namespace simile::service
