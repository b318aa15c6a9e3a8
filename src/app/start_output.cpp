#include "app/start_output.h"

#include <unistd.h>

#include <chrono>

#include <fmt/format.h>

#include "app/first_lines.h"
#include "base/file_descriptor.h"

namespace simile::app {

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
  // The log's lines came before, and both streams may be one.
  if (!is_unread_) is_unread_ = !log_.Flush(kWait);
  // Not through stdio, which would remember at the end of the program that nobody reads these.
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

}  // namespace simile::app
