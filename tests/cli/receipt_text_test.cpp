#include "cli/receipt_text.h"

#include <algorithm>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

const std::string kUsualReason = "no NVIDIA driver on this machine";

v1::Receipt PlainReceipt() {
  v1::Receipt receipt;
  receipt.set_backend(v1::BACKEND_KIND_CPU);
  receipt.set_reason(kUsualReason);
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
  EXPECT_EQ(ReceiptLine(PlainReceipt(), kUsualReason),
            "exact · cpu · 94 us in the engine · 5,000 rows scanned · snapshot 1 (3f9a12c4)");
}

TEST(ReceiptLineTest, SaysWhyWhenTheReasonIsNotTheUsualOne) {
  v1::Receipt receipt = PlainReceipt();
  EXPECT_TRUE(ReceiptLine(receipt, "")
                  .starts_with("exact · cpu: no NVIDIA driver on this machine · 94 us"));
  receipt.set_reason("the GPU was lost");
  EXPECT_TRUE(
      ReceiptLine(receipt, kUsualReason).starts_with("exact · cpu: the GPU was lost · 94 us"));
  receipt.clear_reason();
  EXPECT_TRUE(ReceiptLine(receipt, kUsualReason).starts_with("exact · cpu · 94 us"));
}

TEST(ReceiptLineTest, SaysHowManyRowsPassTheFilter) {
  v1::Receipt receipt = PlainReceipt();
  EXPECT_THAT(ReceiptLine(receipt, kUsualReason, 397),
              testing::HasSubstr(" · 397 rows pass the filter · "));
  EXPECT_THAT(ReceiptLine(receipt, kUsualReason, 1),
              testing::HasSubstr(" · 1 row passes the filter · "));
  receipt.add_engines("int8-avx2");
  EXPECT_THAT(ReceiptLine(receipt, kUsualReason, 5),
              testing::HasSubstr(" · 5 rows pass the filter · "));
  receipt.add_engines("gather-avx2");
  EXPECT_THAT(ReceiptLine(receipt, kUsualReason, 0),
              testing::HasSubstr(" · 0 rows pass the filter, gathered · "));
}

TEST(ReceiptLineTest, AddsBatchQueueAndRescoredRowsWhenUnusual) {
  v1::Receipt receipt = PlainReceipt();
  receipt.set_batch_size(38);
  receipt.set_queue_us(2'500);
  receipt.set_rows_rescored(14);
  receipt.clear_reason();
  EXPECT_EQ(ReceiptLine(receipt, kUsualReason),
            "exact · cpu · 94 us in the engine for a batch of 38 after 2,500 us in the queue · "
            "5,000 rows scanned, 14 re-scored · snapshot 1 (3f9a12c4)");
}

TEST(ReceiptLineTest, ChoosesTheUnitOfADuration) {
  v1::Receipt receipt = PlainReceipt();
  for (const auto& [microseconds, text] : std::map<std::uint64_t, std::string>{
           {0, "0 us"}, {9'999, "9,999 us"}, {12'345, "12.3 ms"}, {1'500'000, "1.50 s"}}) {
    receipt.set_compute_us(microseconds);
    EXPECT_THAT(ReceiptLine(receipt, kUsualReason),
                testing::HasSubstr(" · " + text + " in the engine"));
  }
}

TEST(ReceiptLineTest, SaysNotExactWhenTheReceiptDoes) {
  v1::Receipt receipt = PlainReceipt();
  receipt.set_exact(false);
  EXPECT_TRUE(ReceiptLine(receipt, kUsualReason).starts_with("not exact · "));
}

TEST(ReceiptTableTest, ShowsEveryFieldWithItsUnit) {
  v1::Receipt receipt = PlainReceipt();
  receipt.add_engines("int8-avx2");
  receipt.add_engines("gather-avx2");
  receipt.set_queue_us(12'345);
  receipt.set_device_memory_bytes(3 << 20);
  receipt.set_device_us(41);
  const std::string table = ReceiptTable(receipt, Terminal{});
  for (const char* line :
       {"  backend                   cpu\n", "  engines                   int8-avx2, gather-avx2\n",
        "  reason                    no NVIDIA driver on this machine\n",
        "  snapshot_id               3f9a12c4d5e6f708192a3b4c5d6e7f80\n",
        "  batch_size                1 query\n", "  queue_us                  12.3 ms\n",
        "  compute_us                94 us\n", "  device_us                 41 us\n",
        "  rows_scanned              5,000 rows\n", "  device_memory_bytes       3.0 MiB\n",
        "  exact                     yes\n"}) {
    EXPECT_THAT(table, testing::HasSubstr(line));
  }
}

TEST(ReceiptTableTest, HasTheFieldsOfTheContractAsTheJsonHas) {
  const std::string table = ReceiptTable(PlainReceipt(), Terminal{});
  const nlohmann::ordered_json json = ReceiptJson(PlainReceipt());
  const google::protobuf::Descriptor& fields = *v1::Receipt::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    EXPECT_THAT(table, testing::HasSubstr("  " + fields.field(i)->name()));
    EXPECT_TRUE(json.contains(fields.field(i)->name())) << fields.field(i)->name();
  }
  EXPECT_EQ(std::ranges::count(table, '\n'), fields.field_count());
}

}  // namespace
}  // namespace simile::cli
