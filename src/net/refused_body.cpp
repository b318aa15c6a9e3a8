#include "net/refused_body.h"

#include <algorithm>
#include <random>

namespace simile::net {
namespace {

using Secret = std::array<std::uint8_t, 16>;

const Secret& ProcessSecret() {
  static const Secret secret = [] {
    std::random_device device;
    Secret drawn;
    for (std::uint8_t& byte : drawn) byte = static_cast<std::uint8_t>(device());
    return drawn;
  }();
  return secret;
}

}  // namespace

RefusalMark MarkOf(const RefusedBody& refused) {
  RefusalMark mark{};
  auto out = std::ranges::copy(ProcessSecret(), mark.begin()).out;
  *out++ = static_cast<std::uint8_t>(refused.why);
  for (int shift = 24; shift >= 0; shift -= 8) {
    *out++ = static_cast<std::uint8_t>(refused.declared_bytes >> shift);
  }
  return mark;
}

std::optional<RefusedBody> ReadMark(std::span<const std::uint8_t> message) {
  if (message.size() != kRefusalMarkBytes) return std::nullopt;
  const Secret& secret = ProcessSecret();
  if (!std::ranges::equal(message.first(secret.size()), secret)) return std::nullopt;
  RefusedBody refused;
  refused.why = static_cast<RefusedBody::Why>(message[secret.size()]);
  for (const std::uint8_t byte : message.subspan(secret.size() + 1)) {
    refused.declared_bytes = (refused.declared_bytes << 8) | byte;
  }
  return refused;
}

}  // namespace simile::net
