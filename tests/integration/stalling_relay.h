#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "base/file_descriptor.h"

namespace simile::integration {

// Relays one TCP connection to a server. While stalled it does not relay what the server sends, so
// a reply larger than the flow-control window stays in flight.
class StallingRelay {
 public:
  explicit StallingRelay(std::uint16_t server_port);
  ~StallingRelay();
  StallingRelay(const StallingRelay&) = delete;
  StallingRelay& operator=(const StallingRelay&) = delete;

  std::string address() const;
  void Stall() { SetStalled(true); }
  void Flow() { SetStalled(false); }

 private:
  void SetStalled(bool stalled);
  void Relay();

  const std::uint16_t server_port_;
  base::FileDescriptor listener_;
  std::uint16_t port_ = 0;
  base::FileDescriptor wake_;  // an eventfd: the thread reads the flags again
  std::atomic<bool> stalled_ = false;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace simile::integration
