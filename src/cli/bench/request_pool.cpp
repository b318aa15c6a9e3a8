#include "cli/bench/request_pool.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace simile::cli::bench {
namespace {

constexpr std::size_t kRequestsMin = 16;  // even if the requests are large
constexpr std::size_t kRequestBytesMax = 64U << 20;

std::string Serialize(const CallSpec& spec, const QuerySamples& samples, RandomDraw& random) {
  return spec.kind->method == CallMethod::kSearch
             ? MakeSearch(spec, samples, random).SerializeAsString()
             : MakeRecommend(spec, samples, random).SerializeAsString();
}

}  // namespace

absl::StatusOr<RequestPool> RequestPool::Make(std::span<const CallSpec> specs,
                                              const QuerySamples& samples, std::uint64_t seed,
                                              std::uint32_t requests_max) {
  RequestPool pool;
  std::map<std::string_view, int> named;
  RandomDraw random(seed);
  for (const CallSpec& spec : specs) {
    if (absl::Status status = CheckSamples(spec, samples); !status.ok()) return status;
    const int number = ++named[spec.kind->name];
    PreparedKind& kind = pool.kinds_.emplace_back();
    kind.name =
        number == 1 ? std::string(spec.kind->name) : fmt::format("{} {}", spec.kind->name, number);
    kind.method = spec.kind->method;
    kind.weight = spec.weight;
    kind.queries = spec.batch;
    std::size_t bytes = 0;
    while (kind.requests.size() < requests_max &&
           (kind.requests.size() < kRequestsMin || bytes < kRequestBytesMax)) {
      kind.requests.emplace_back(Serialize(spec, samples, random));
      bytes += kind.requests.back().size();
    }
    pool.weight_ += spec.weight;
  }
  return pool;
}

RequestPool::Choice RequestPool::Choose(RandomDraw& random) const {
  std::uint32_t kind = 0;
  if (kinds_.size() > 1) {
    double left = random.Uniform() * weight_;
    while (kind + 1 < kinds_.size() && left > kinds_[kind].weight) left -= kinds_[kind++].weight;
  }
  return {kind, static_cast<std::uint32_t>(random.Below(kinds_[kind].requests.size()))};
}

}  // namespace simile::cli::bench
