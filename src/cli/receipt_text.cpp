#include "cli/receipt_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kUnusualWaitUs = 1'000;

// 94 us, 12.3 ms, 1.50 s
std::string DurationText(std::uint64_t microseconds) {
  const auto number = static_cast<double>(microseconds);
  if (microseconds < 10'000) return base::Grouped(microseconds) + " us";
  if (microseconds < 1'000'000) return fmt::format("{:.1f} ms", number / 1e3);
  return fmt::format("{:.2f} s", number / 1e6);
}

std::string Queries(std::uint64_t count) {
  return count == 1 ? "1 query" : fmt::format("{} queries", base::Grouped(count));
}

}  // namespace

std::string ReceiptLine(const v1::Receipt& receipt, const std::string& usual_reason,
                        std::optional<std::uint64_t> rows_passing) {
  std::string line = receipt.exact() ? "exact" : "not exact";
  line += fmt::format(" · {}", BackendName(receipt.backend()));
  if (receipt.reason() != usual_reason && !receipt.reason().empty()) {
    line += fmt::format(": {}", receipt.reason());
  }
  line += fmt::format(" · {} in the engine", DurationText(receipt.compute_us()));
  if (receipt.batch_size() > 1) {
    line += fmt::format(" for a batch of {}", base::Grouped(receipt.batch_size()));
  }
  if (receipt.queue_us() >= kUnusualWaitUs) {
    line += fmt::format(" after {} in the queue", DurationText(receipt.queue_us()));
  }
  if (rows_passing) {
    const bool gathered = std::ranges::any_of(
        receipt.engines(), [](const std::string& engine) { return engine.starts_with("gather"); });
    line += fmt::format(
        " · {} the filter{}",
        *rows_passing == 1 ? "1 row passes" : base::Counted(*rows_passing, "row") + " pass",
        gathered ? ", gathered" : "");
  }
  line += fmt::format(" · {} scanned", base::Counted(receipt.rows_scanned(), "row"));
  if (receipt.rows_rescored() > 0) {
    line += fmt::format(", {} re-scored", base::Grouped(receipt.rows_rescored()));
  }
  return line + " · snapshot " + SnapshotText(receipt.snapshot_version(), receipt.snapshot_id());
}

std::string ReceiptTable(const v1::Receipt& receipt, const Terminal& terminal) {
  Table facts({{}, {}});
  facts.AddRow({"backend", BackendName(receipt.backend())});
  facts.AddRow({"device", receipt.device()});
  facts.AddRow({"engines", fmt::format("{}", fmt::join(receipt.engines(), ", "))});
  facts.AddRow({"reason", receipt.reason()});
  facts.AddRow({"snapshot_id", receipt.snapshot_id()});
  facts.AddRow({"snapshot_version", base::Grouped(receipt.snapshot_version())});
  std::vector<std::string> of_items;
  for (const v1::ItemSnapshot& one : receipt.item_snapshots()) {
    of_items.push_back(fmt::format("{} {}", one.collection(),
                                   SnapshotText(one.snapshot_version(), one.snapshot_id())));
  }
  facts.AddRow({"item_snapshots", fmt::format("{}", fmt::join(of_items, ", "))});
  facts.AddRow({"batch_size", Queries(receipt.batch_size())});
  facts.AddRow({"queue_us", DurationText(receipt.queue_us())});
  facts.AddRow({"compute_us", DurationText(receipt.compute_us())});
  facts.AddRow(
      {"device_us", receipt.has_device_us() ? DurationText(receipt.device_us()) : "not timed"});
  facts.AddRow({"total_us", DurationText(receipt.total_us())});
  facts.AddRow({"rows_scanned", base::Counted(receipt.rows_scanned(), "row")});
  facts.AddRow({"rows_rescored", base::Counted(receipt.rows_rescored(), "row")});
  facts.AddRow({"rescans", base::Grouped(receipt.rescans())});
  facts.AddRow({"rounds", base::Grouped(receipt.rounds())});
  facts.AddRow({"device_memory_bytes", base::BytesText(receipt.device_memory_bytes())});
  facts.AddRow({"device_memory_peak_bytes", base::BytesText(receipt.device_memory_peak_bytes())});
  facts.AddRow({"exact", receipt.exact() ? "yes" : "no"});
  facts.AddRow({"request_id", receipt.request_id()});
  return facts.Render(terminal, 2);
}

nlohmann::ordered_json ReceiptJson(const v1::Receipt& receipt) {
  Json of_items = Json::array();
  for (const v1::ItemSnapshot& one : receipt.item_snapshots()) {
    of_items.push_back({{"collection", one.collection()},
                        {"snapshot_id", one.snapshot_id()},
                        {"snapshot_version", one.snapshot_version()}});
  }
  return {{"backend", BackendName(receipt.backend())},
          {"device", receipt.device()},
          {"engines", receipt.engines()},
          {"reason", receipt.reason()},
          {"snapshot_id", receipt.snapshot_id()},
          {"snapshot_version", receipt.snapshot_version()},
          {"item_snapshots", std::move(of_items)},
          {"batch_size", receipt.batch_size()},
          {"queue_us", receipt.queue_us()},
          {"compute_us", receipt.compute_us()},
          {"device_us", receipt.has_device_us() ? Json(receipt.device_us()) : Json(nullptr)},
          {"total_us", receipt.total_us()},
          {"rows_scanned", receipt.rows_scanned()},
          {"rows_rescored", receipt.rows_rescored()},
          {"rescans", receipt.rescans()},
          {"rounds", receipt.rounds()},
          {"device_memory_bytes", receipt.device_memory_bytes()},
          {"device_memory_peak_bytes", receipt.device_memory_peak_bytes()},
          {"exact", receipt.exact()},
          {"request_id", receipt.request_id()}};
}

}  // namespace simile::cli
