#include "app/first_lines.h"

#include <chrono>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::app {

std::string BackendLine(const observe::BuildInfo& build, const ServedBy& backend) {
  return fmt::format("simile {}  {} engine ({} on {}): {}", build.version, backend.info.name,
                     backend.info.engine, backend.info.device, backend.reason);
}

std::string CollectionLines(const engine::Snapshot& snapshot, Clock::Duration took) {
  const data::Dataset& dataset = *snapshot.dataset;
  const std::size_t user_count = dataset.profiles.ids.size();
  const engine::ResidentBytes bytes = engine::BytesOf(snapshot);
  std::string text = fmt::format("{:<8}  {} x {} ({})", snapshot.collection,
                                 base::Counted(snapshot.row_count(), "vector"), snapshot.dim(),
                                 dataset.metric == Metric::kCosine ? "cosine" : "dot");
  if (user_count > 0) text += "  " + base::Counted(user_count, "user");
  text += fmt::format("  {} resident", base::BytesText(bytes.host()));
  if (bytes.device > 0) text += fmt::format("  {} on the device", base::BytesText(bytes.device));
  text += fmt::format("  ready in {:.2f} s", std::chrono::duration<double>(took).count());
  for (const std::string& note : dataset.notes) text += fmt::format("\n{:<8}  {}", "", note);
  return text;
}

std::string ListeningLine(std::string_view address, std::string_view metrics_listen,
                          std::optional<std::uint16_t> metrics_port) {
  if (!metrics_port) return fmt::format("listening on {}, metrics are off", address);
  const bool v6 = metrics_listen.find(':') != std::string_view::npos;
  return fmt::format("listening on {}, metrics on {}{}{}:{}", address, v6 ? "[" : "",
                     metrics_listen, v6 ? "]" : "", *metrics_port);
}

}  // namespace simile::app
