#include "cli/receipt_line.h"

#include <fmt/format.h>

#include "data/wording.h"

namespace simile::cli {
namespace {

constexpr std::uint64_t kRemarkableWaitUs = 1'000;

// 94 us, 12.3 ms, 1.50 s
std::string DurationText(std::uint64_t microseconds) {
  const auto number = static_cast<double>(microseconds);
  if (microseconds < 10'000) return data::Grouped(microseconds) + " us";
  if (microseconds < 1'000'000) return fmt::format("{:.1f} ms", number / 1e3);
  return fmt::format("{:.2f} s", number / 1e6);
}

}  // namespace

std::string ReceiptLine(const v1::Receipt& receipt, std::optional<std::uint64_t> rows_passing) {
  std::string line = receipt.exact() ? "exact" : "not exact";
  line += " · " + receipt.backend();
  if (!receipt.reason().empty()) line += ": " + receipt.reason();
  line += fmt::format(" · {} in the engine", DurationText(receipt.compute_us()));
  if (receipt.batch_size() > 1) {
    line += fmt::format(" for a batch of {}", data::Grouped(receipt.batch_size()));
  }
  if (receipt.queue_us() >= kRemarkableWaitUs) {
    line += fmt::format(" after {} in the queue", DurationText(receipt.queue_us()));
  }
  if (rows_passing) {
    const bool gathered = receipt.engine().starts_with("gather-");
    line += fmt::format(
        " · {} the filter{}",
        *rows_passing == 1 ? "1 row passes" : data::Counted(*rows_passing, "row") + " pass",
        gathered ? ", gathered" : "");
  }
  line += fmt::format(" · {} scanned", data::Counted(receipt.rows_scanned(), "row"));
  if (receipt.rows_rescored() > 0) {
    line += fmt::format(", {} re-scored", data::Grouped(receipt.rows_rescored()));
  }
  return line + fmt::format(" · snapshot {}", data::Grouped(receipt.snapshot_version()));
}

}  // namespace simile::cli
