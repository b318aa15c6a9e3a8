#include "cli/receipt_line.h"

#include <fmt/format.h>

#include "cli/number_text.h"

namespace simile::cli {
namespace {

constexpr std::uint64_t kRemarkableWaitUs = 1'000;

}  // namespace

std::string ReceiptLine(const v1::Receipt& receipt) {
  std::string line = receipt.exact() ? "exact" : "not exact";
  line += " · " + receipt.backend();
  if (!receipt.reason().empty()) line += ": " + receipt.reason();
  line += fmt::format(" · {} in the engine", DurationText(receipt.compute_us()));
  if (receipt.batch_size() > 1) {
    line += fmt::format(" for a batch of {}", WithThousands(receipt.batch_size()));
  }
  if (receipt.queue_us() >= kRemarkableWaitUs) {
    line += fmt::format(" after {} in the queue", DurationText(receipt.queue_us()));
  }
  line += fmt::format(" · {} scanned", Counted(receipt.rows_scanned(), "row"));
  if (receipt.rows_rescored() > 0) {
    line += fmt::format(", {} re-scored", WithThousands(receipt.rows_rescored()));
  }
  return line + fmt::format(" · snapshot {}", WithThousands(receipt.snapshot_version()));
}

}  // namespace simile::cli
