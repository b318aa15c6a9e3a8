#include "app/first_lines.h"

#include <chrono>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/message_text.h"
#include "data/collection_files.h"

namespace simile::app {
namespace {

// Null when none is.
const engine::CollectionStatus* FirstLoading(
    const std::vector<engine::CollectionStatus>& collections) {
  for (const engine::CollectionStatus& collection : collections) {
    const bool loading = collection.state == engine::CollectionState::kLoading;
    if (loading && collection.progress) return &collection;
  }
  return nullptr;
}

}  // namespace

std::string BackendLine(const observe::BuildInfo& build, const ServedBy& backend, bool gpu_wanted) {
  const bool gpu_is_missed = gpu_wanted && backend.info.name == "cpu";
  return fmt::format("simile {}  {} engine ({} on {}): {}{}", build.version, backend.info.name,
                     backend.info.engine, backend.info.device, backend.reason,
                     gpu_is_missed ? "; `simile doctor` explains" : "");
}

std::string CollectionLines(const engine::Snapshot& snapshot, Clock::Duration took) {
  const data::Dataset& dataset = *snapshot.dataset;
  const std::size_t user_count = dataset.profiles.ids.size();
  const engine::ResidentBytes bytes = engine::BytesOf(snapshot);
  std::string text = fmt::format("{:<8}  {} x {} ({})", snapshot.collection,
                                 base::Counted(snapshot.row_count(), "vector"), snapshot.dim(),
                                 data::NameOf(dataset.metric));
  if (user_count > 0) text += "  " + base::Counted(user_count, "user");
  text += fmt::format("  {} resident", base::BytesText(bytes.host()));
  if (bytes.device > 0) text += fmt::format("  {} on the device", base::BytesText(bytes.device));
  text += fmt::format("  ready in {:.2f} s", std::chrono::duration<double>(took).count());
  for (const std::string& note : dataset.notes) text += fmt::format("\n{:<8}  {}", "", note);
  return text;
}

std::string ListeningLine(std::string_view address,
                          const std::optional<std::string>& metrics_address) {
  return metrics_address ? fmt::format("listening on {}, metrics on {}", address, *metrics_address)
                         : fmt::format("listening on {}, metrics are off", address);
}

std::string LoadingText(const std::vector<engine::CollectionStatus>& collections) {
  const engine::CollectionStatus* const loading = FirstLoading(collections);
  if (loading == nullptr) return "";
  return fmt::format("loading {}, {:.0f} %", loading->name, loading->progress->share * 100);
}

std::string FailedCollections(const std::vector<engine::CollectionStatus>& collections) {
  std::vector<std::string> failed;
  for (const engine::CollectionStatus& collection : collections) {
    if (collection.state == engine::CollectionState::kFailed) failed.push_back(collection.name);
  }
  return fmt::format("{}", fmt::join(failed, ", "));
}

std::string ProgressText(const std::vector<engine::CollectionStatus>& collections) {
  constexpr std::size_t kBarWidth = 30;
  const engine::CollectionStatus* const loading = FirstLoading(collections);
  if (loading == nullptr) return "";
  const double share = loading->progress->share;
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  return fmt::format("{} |{}{}| {:.0f} %", loading->name, std::string(filled, '#'),
                     std::string(kBarWidth - filled, '-'), share * 100);
}

}  // namespace simile::app
