#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>
#include <grpcpp/channel.h>
#include <grpcpp/support/slice.h>

#include "cli/bench/call_outcome.h"
#include "cli/client_security.h"

namespace simile::cli::bench {

enum class CallMethod : std::uint8_t { kSearch, kRecommend };

// Sends requests that are serialized already and returns answers as bytes, over connections and a
// completion queue of its own: a client thread's part of the load.
class CallSender {
 public:
  using Report = std::function<void(std::uint32_t slot, CallOutcome& outcome)>;

  virtual ~CallSender() = default;

  // Starts a call. Thread-safe.
  //   slot  the caller's number for the call, until its outcome is reported
  virtual void Start(std::uint32_t slot, CallMethod method, const grpc::Slice& request) = 0;
  // Reports outcomes, on the thread that calls it, until Stop.
  virtual void Run(const Report& report) = 0;
  // REQUIRES: no call is under way, and none is started afterwards. Thread-safe.
  virtual void Stop() = 0;
};

using Channels = std::vector<std::shared_ptr<grpc::Channel>>;

// Opens so many connections, each with a channel to itself.
// Errors: kUnavailable when one is not ready within `timeout`.
absl::StatusOr<Channels> OpenChannels(const std::string& address, const ClientSecurity& security,
                                      std::size_t count, std::chrono::milliseconds timeout);

// Each request a call of its own, with this deadline.
//   slot_count  calls under way at most
std::unique_ptr<CallSender> MakeUnaryCalls(const Channels& channels, std::uint32_t slot_count,
                                           std::chrono::milliseconds timeout);

// Requests as messages of SearchStream, answered as they complete: one stream for each connection,
// more when the slots are more than a stream takes. A stream that ends fails its requests and is
// opened again by the next one.
//   end_by  no stream lasts longer
std::unique_ptr<CallSender> MakeStreamCalls(const Channels& channels, std::uint32_t slot_count,
                                            std::chrono::milliseconds timeout,
                                            std::chrono::system_clock::time_point end_by);

}  // namespace simile::cli::bench
