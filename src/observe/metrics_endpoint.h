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

// Serves `GET /metrics` in Prometheus' text format on its own port, so that a scraper needs no
// access to the RPC port. Stops when destroyed; owned by wiring.
class MetricsEndpoint {
 public:
  // Listens on listen:port; port 0 takes any free one. IPv6 addresses have no brackets.
  // Errors: kUnavailable with the address if it cannot be listened on.
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
