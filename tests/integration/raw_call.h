#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "google/rpc/status.pb.h"
#include "integration/client.h"

namespace simile::integration {

inline constexpr char kSearchMethod[] = "/simile.v1.SearchService/Search";
inline constexpr char kSearchStreamMethod[] = "/simile.v1.SearchService/SearchStream";

// A call of any method as bytes, on a connection of its own: the caller decides what is sent, and
// when it reads. Each function blocks until it is done; one thread at a time.
class RawCall {
 public:
  //   method  "/simile.v1.SearchService/Search"
  RawCall(const std::string& address, const std::string& method,
          const std::map<std::string, std::string>& metadata = {});
  ~RawCall();  // cancels a call that has not ended
  RawCall(RawCall&&) noexcept;

  // False when the call has ended.
  bool Send(const std::string& message);
  // Says that no further message follows.
  void HalfClose();
  // The next message; nothing when the call has ended.
  std::optional<std::string> Read();
  void Cancel();
  // The end of the call. REQUIRES: all of its messages have been read.
  Outcome AwaitEnd();
  // What AwaitEnd found in grpc-status-details-bin.
  const google::rpc::Status& details() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::integration
