#include "app/refused_callers.h"

#include <string_view>

#include <fmt/format.h>

#include "query/existing_items.h"

namespace simile::app {

void RefusedCallers::Look() {
  const std::lock_guard look_lock(look_mutex_);
  const std::shared_ptr<const service::AccessPolicy> policy = access_.policy();
  const std::vector<engine::CollectionStatus> served = store_.List();
  Collections collections;
  for (const engine::CollectionStatus& status : served) {
    if (status.snapshot) collections.emplace_back(status.name, status.snapshot->version);
  }
  if (policy == policy_ && collections == collections_) return;
  std::set<std::string> refusals;
  std::map<std::string, std::uint64_t> counts;
  for (const engine::CollectionStatus& status : served) {
    if (status.snapshot == nullptr) continue;
    std::uint64_t& count = counts[status.name];
    if (policy == nullptr) continue;
    for (const service::PrincipalPtr& principal : policy->principals()) {
      if (principal->required_filter.empty() || !principal->MaySee(status.name)) continue;
      base::LongWork work([] { return absl::OkStatus(); });
      const absl::Status fits =
          query::CheckCallerFilter(*status.snapshot, principal->required_filter, work);
      if (fits.ok()) continue;
      ++count;
      std::string refusal =
          fmt::format("{}\n{}\n{}", principal->name, status.name,
                      std::string_view(fits.message().data(), fits.message().size()));
      const bool is_new = !reported_.contains(refusal);
      refusals.insert(std::move(refusal));
      if (!is_new) continue;
      log_.Warn("a caller is answered nothing: its required filter does not fit the collection",
                {{"principal", principal->name},
                 {"collection", status.name},
                 {"error", std::string_view(fits.message().data(), fits.message().size())}});
    }
  }
  policy_ = policy;
  collections_ = std::move(collections);
  reported_ = std::move(refusals);
  const std::lock_guard lock(mutex_);
  counts_ = std::move(counts);
}

std::vector<observe::ScrapedMetric> RefusedCallers::Metrics() const {
  std::vector<observe::ScrapedMetric> metrics;
  const std::lock_guard lock(mutex_);
  for (const auto& [collection, count] : counts_) {
    metrics.push_back({.name = "simile_refused_callers",
                       .help = "Callers whose required filter does not fit the collection.",
                       .is_counter = false,
                       .labels = {{"collection", collection}},
                       .value = static_cast<double>(count)});
  }
  return metrics;
}

}  // namespace simile::app
