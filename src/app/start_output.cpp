#include "app/start_output.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file_descriptor.h"
#include "base/message_text.h"
#include "data/load/collection_files.h"

namespace simile::app {
namespace {

// The first collection that is loading and has progress. Null for none.
const engine::CollectionStatus* FirstLoading(
    const std::vector<engine::CollectionStatus>& collections) {
  for (const engine::CollectionStatus& collection : collections) {
    const bool loading = collection.state == engine::CollectionState::kLoading;
    if (loading && collection.progress) return &collection;
  }
  return nullptr;
}

}  // namespace

StartOutput::StartOutput(observe::LogFormat format, const observe::Logger& log)
    : json_(format == observe::LogFormat::kJson),
      draws_progress_(!json_ && isatty(STDERR_FILENO) == 1),
      log_(log) {}

void StartOutput::DrawProgress(const std::vector<engine::CollectionStatus>& collections) {
  if (!draws_progress_) return;
  const std::string text = ProgressText(collections);
  const std::lock_guard lock(mutex_);
  Wipe();
  if (text.empty()) return;
  if (is_bar_unread_) return;
  DrawOver(text);
  drawn_ = true;
}

void StartOutput::ClearProgress() {
  const std::lock_guard lock(mutex_);
  Wipe();
}

void StartOutput::Starting(const observe::BuildInfo& build, const ServedBy& backend,
                           bool gpu_wanted) {
  if (!json_) return PrintLines(BackendLine(build, backend, gpu_wanted));
  log_.Info("starting", {{"version", build.version},
                         {"backend", backend.info.name},
                         {"engine", backend.info.engine},
                         {"device", backend.info.device},
                         {"reason", backend.reason}});
}

void StartOutput::Loaded(const engine::Snapshot& snapshot, Clock::Duration took) {
  if (!json_) return PrintLines(CollectionLines(snapshot, took));
  const data::Dataset& dataset = *snapshot.dataset;
  const engine::ResidentBytes bytes = engine::SumBytes(snapshot);
  log_.Info("collection ready", {{"collection", snapshot.collection},
                                 {"rows", snapshot.row_count()},
                                 {"users", dataset.profiles.ids.size()},
                                 {"resident_bytes", bytes.host()},
                                 {"device_bytes", bytes.device},
                                 {"duration_us", Microseconds(took)}});
  for (const std::string& note : dataset.notes) {
    log_.Info("note on a collection", {{"collection", snapshot.collection}, {"note", note}});
  }
}

void StartOutput::Listening(const std::string& address,
                            const std::optional<std::string>& metrics_address) {
  if (!json_) return PrintLines(ListeningLine(address, metrics_address));
  log_.Info("listening", {{"address", address}, {"metrics_address", metrics_address.value_or("")}});
}

void StartOutput::Failed(const absl::Status& status) {
  const std::string message(status.message());
  if (json_) return log_.Error(message);
  const std::lock_guard lock(mutex_);
  Print(STDERR_FILENO, fmt::format("error: {}\n", message));
}

void StartOutput::PrintLines(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  Print(STDOUT_FILENO, fmt::format("{}\n", lines));
}

void StartOutput::Print(int stream, const std::string& text) {
  constexpr std::chrono::seconds kWait{1};
  Wipe();
  // The log goes first: its lines are older, and both may be written to one stream.
  if (!is_unread_) is_unread_ = !log_.Flush(kWait);
  // Not through stdio, which would try again at the end of the program to write the text.
  const base::BoundedWrite result =
      base::WriteWithin(stream, text, is_unread_ ? std::chrono::seconds(0) : kWait);
  if (result.written_bytes < text.size() && !result.failed) is_unread_ = true;
}

void StartOutput::Wipe() {
  if (drawn_ && !is_bar_unread_) DrawOver("\r\x1b[K");
  drawn_ = false;
}

void StartOutput::DrawOver(std::string_view text) {
  const base::BoundedWrite result = base::WriteWithin(STDERR_FILENO, text, std::chrono::seconds(0));
  if (result.written_bytes < text.size()) is_bar_unread_ = true;
}

std::string BackendLine(const observe::BuildInfo& build, const ServedBy& backend, bool gpu_wanted) {
  const bool gpu_is_missed = gpu_wanted && backend.info.name == "cpu";
  return fmt::format("simile {}  {} engine ({} on {}): {}{}", build.version, backend.info.name,
                     backend.info.engine, backend.info.device, backend.reason,
                     gpu_is_missed ? "; `simile doctor` explains" : "");
}

std::string CollectionLines(const engine::Snapshot& snapshot, Clock::Duration took) {
  const data::Dataset& dataset = *snapshot.dataset;
  const std::size_t user_count = dataset.profiles.ids.size();
  const engine::ResidentBytes bytes = engine::SumBytes(snapshot);
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
