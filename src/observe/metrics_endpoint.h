#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// Serves `GET /metrics` in Prometheus' text format on a port of its own, so that a scrape neither
// needs nor reaches the RPC port. Stops when destroyed; owned by wiring.
class MetricsEndpoint {
 public:
  // Listens on listen:port; port 0 takes any free one. IPv6 addresses come without brackets.
  // Errors: kUnavailable when the address cannot be listened on, naming it.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& listen, std::uint16_t port,
      std::vector<std::shared_ptr<prometheus::Collectable>> collectables);
  ~MetricsEndpoint();

  std::uint16_t port() const;

 private:
  class Impl;
  explicit MetricsEndpoint(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::observe
