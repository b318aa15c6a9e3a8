#include "app/start_output.h"

#include <unistd.h>

#include <fmt/format.h>

#include "app/first_lines.h"
#include "base/file_descriptor.h"

namespace simile::app {

StartOutput::StartOutput(const observe::Logger::Options& options)
    : json_(options.format == observe::LogFormat::kJson),
      draws_progress_(!json_ && isatty(STDERR_FILENO) == 1),
      log_(options) {}

void StartOutput::DrawProgress(const std::vector<engine::CollectionStatus>& collections) {
  if (!draws_progress_) return;
  const std::string text = ProgressText(collections);
  const std::lock_guard lock(mutex_);
  Wipe();
  if (text.empty()) return;
  base::WriteAll(STDERR_FILENO, text);
  drawn_ = true;
}

void StartOutput::ClearProgress() {
  const std::lock_guard lock(mutex_);
  Wipe();
}

void StartOutput::Starting(const observe::BuildInfo& build, const ServedBy& backend,
                           bool gpu_wanted) {
  if (!json_) return Print(BackendLine(build, backend, gpu_wanted));
  log_.Info("starting", {{"version", build.version},
                         {"backend", backend.info.name},
                         {"engine", backend.info.engine},
                         {"device", backend.info.device},
                         {"reason", backend.reason}});
}

void StartOutput::Loaded(const engine::Snapshot& snapshot, Clock::Duration took) {
  if (!json_) return Print(CollectionLines(snapshot, took));
  const data::Dataset& dataset = *snapshot.dataset;
  const engine::ResidentBytes bytes = engine::BytesOf(snapshot);
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
  if (!json_) return Print(ListeningLine(address, metrics_address));
  log_.Info("listening", {{"address", address}, {"metrics_address", metrics_address.value_or("")}});
}

void StartOutput::Failed(const absl::Status& status) {
  const std::string message(status.message());
  if (json_) return log_.Error(message);
  const std::lock_guard lock(mutex_);
  Wipe();
  base::WriteAll(STDERR_FILENO, fmt::format("error: {}\n", message));
}

void StartOutput::Print(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  Wipe();
  // Not through stdio, which would remember at the end of the program that nobody reads these.
  base::WriteAll(STDOUT_FILENO, fmt::format("{}\n", lines));
}

void StartOutput::Wipe() {
  if (drawn_) base::WriteAll(STDERR_FILENO, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace simile::app
