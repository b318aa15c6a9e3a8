#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <absl/status/statusor.h>
#include <grpcpp/support/slice.h>

#include "cli/bench/call_kinds.h"

namespace simile::cli::bench {

// Requests of one kind, serialized before the run so that sending one costs no building.
struct PreparedKind {
  std::string name;  // the kind's; with a number when a mix has several of one kind
  CallMethod method = CallMethod::kSearch;
  double weight = 1;
  std::uint32_t queries = 1;  // in each call
  std::vector<grpc::Slice> requests;
};

// Every request of a run. Immutable once built; safe to share.
class RequestPool {
 public:
  static constexpr std::uint32_t kRequestsMax = 4'096;

  // Draws requests of every spec: up to requests_max of each spec, fewer when the requests are
  // large. Errors: those of CheckSamples.
  static absl::StatusOr<RequestPool> Make(std::span<const CallSpec> specs,
                                          const QuerySamples& samples, std::uint64_t seed,
                                          std::uint32_t requests_max = kRequestsMax);

  struct Choice {
    std::uint32_t kind = 0;
    std::uint32_t request = 0;
  };
  // A kind by its weight and one of its requests.
  Choice Choose(RandomDraw& random) const;

  std::span<const PreparedKind> kinds() const { return kinds_; }
  const grpc::Slice& Request(const Choice& choice) const {
    return kinds_[choice.kind].requests[choice.request];
  }

 private:
  std::vector<PreparedKind> kinds_;
  double weight_ = 0;
};

}  // namespace simile::cli::bench
