#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <absl/status/statusor.h>
#include <grpcpp/support/slice.h>

#include "cli/bench/call_kinds.h"

namespace simile::cli::bench {

// Requests of one kind, serialized before the run so that sending a request does not build it.
struct PreparedKind {
  std::string name;  // the kind's name, with a number if the mix has several entries of this kind
  CallMethod method = CallMethod::kSearch;
  double weight = 1;
  std::uint32_t queries = 1;  // in each call
  std::vector<grpc::Slice> requests;
};

// Every request of a run. Immutable once built; safe to share between threads.
class RequestPool {
 public:
  static constexpr std::uint32_t kRequestsMax = 4'096;

  // Draws up to requests_max requests of each spec, fewer if the requests are large. Errors:
  // CheckSamples's.
  static absl::StatusOr<RequestPool> Make(std::span<const CallSpec> specs,
                                          const QuerySamples& samples, std::uint64_t seed,
                                          std::uint32_t requests_max = kRequestsMax);

  struct Choice {
    std::uint32_t kind = 0;
    std::uint32_t request = 0;
  };
  // Draws a kind by its weight, then one of its requests uniformly.
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
