#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "data/file_descriptor.h"

namespace simile::integration {

// Relays one TCP connection to a server, and on demand keeps back what the server sends: then a
// reply larger than the flow-control window stays in flight for as long as a test likes.
class StallingRelay {
 public:
  explicit StallingRelay(std::uint16_t server_port);
  ~StallingRelay();
  StallingRelay(const StallingRelay&) = delete;
  StallingRelay& operator=(const StallingRelay&) = delete;

  std::string address() const;
  void Stall() { Turn(true); }
  void Flow() { Turn(false); }

 private:
  void Turn(bool stalled);
  void Relay();

  const std::uint16_t server_port_;
  data::FileDescriptor listener_;
  std::uint16_t port_ = 0;
  data::FileDescriptor wake_;  // an eventfd: the thread looks at the flags again
  std::atomic<bool> stalled_ = false;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace simile::integration
