#include "cli/receipt_text.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::cli {
namespace {

v1::Receipt PlainReceipt() {
  v1::Receipt receipt;
  receipt.set_backend(v1::BACKEND_KIND_CPU);
  receipt.set_reason("no NVIDIA driver on this machine");
  receipt.set_snapshot_id("3f9a12c4d5e6f708192a3b4c5d6e7f80");
  receipt.set_snapshot_version(1);
  receipt.set_batch_size(1);
  receipt.set_queue_us(12);
  receipt.set_compute_us(94);
  receipt.set_rows_scanned(5'000);
  receipt.set_exact(true);
  return receipt;
}

TEST(ReceiptLineTest, SaysWhichBackendAnsweredAndTheCost) {
  EXPECT_EQ(ReceiptLine(PlainReceipt()),
            "exact · cpu: no NVIDIA driver on this machine · 94 us in the engine · 5,000 rows "
            "scanned · snapshot 1 (3f9a12c4)");
}

TEST(ReceiptLineTest, SaysHowManyRowsPassTheFilter) {
  v1::Receipt receipt = PlainReceipt();
  EXPECT_THAT(ReceiptLine(receipt, 397), testing::HasSubstr(" · 397 rows pass the filter · "));
  EXPECT_THAT(ReceiptLine(receipt, 1), testing::HasSubstr(" · 1 row passes the filter · "));
  receipt.add_engines("int8-avx2");
  EXPECT_THAT(ReceiptLine(receipt, 5), testing::HasSubstr(" · 5 rows pass the filter · "));
  receipt.add_engines("gather-avx2");
  EXPECT_THAT(ReceiptLine(receipt, 0),
              testing::HasSubstr(" · 0 rows pass the filter, gathered · "));
}

TEST(ReceiptLineTest, AddsBatchQueueAndRescoredRowsWhenUnusual) {
  v1::Receipt receipt = PlainReceipt();
  receipt.set_batch_size(38);
  receipt.set_queue_us(2'500);
  receipt.set_rows_rescored(14);
  receipt.clear_reason();
  EXPECT_EQ(ReceiptLine(receipt),
            "exact · cpu · 94 us in the engine for a batch of 38 after 2,500 us in the queue · "
            "5,000 rows scanned, 14 re-scored · snapshot 1 (3f9a12c4)");
}

TEST(ReceiptLineTest, ChoosesTheUnitOfADuration) {
  v1::Receipt receipt = PlainReceipt();
  for (const auto& [microseconds, text] : std::map<std::uint64_t, std::string>{
           {0, "0 us"}, {9'999, "9,999 us"}, {12'345, "12.3 ms"}, {1'500'000, "1.50 s"}}) {
    receipt.set_compute_us(microseconds);
    EXPECT_THAT(ReceiptLine(receipt), testing::HasSubstr(" · " + text + " in the engine"));
  }
}

TEST(ReceiptLineTest, SaysNotExactWhenTheReceiptDoes) {
  v1::Receipt receipt = PlainReceipt();
  receipt.set_exact(false);
  EXPECT_TRUE(ReceiptLine(receipt).starts_with("not exact · "));
}

}  // namespace
}  // namespace simile::cli
