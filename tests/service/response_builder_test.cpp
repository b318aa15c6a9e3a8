#include "service/response_builder.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/payload_builder.h"
#include "service/backend_kind.h"
#include "simile/limits.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

template <class Message>
testing::AssertionResult Equals(const Message& message, const std::string& text) {
  Message expected;
  if (!google::protobuf::TextFormat::ParseFromString(text, &expected)) {
    return testing::AssertionFailure() << "cannot parse " << text;
  }
  if (google::protobuf::util::MessageDifferencer::Equals(message, expected)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << message.DebugString();
}

// Two rows of two dimensions; row 1 has a long plot.
engine::Snapshot FilmsSnapshot() {
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = *data::Matrix::Create(2, 2);
  dataset->vectors.MutableRow(0)[0] = 1;
  dataset->vectors.MutableRow(1)[1] = -1;
  data::IdIndex::Builder ids(2);
  EXPECT_TRUE(ids.Add("toy-story").ok());
  EXPECT_TRUE(ids.Add("heat").ok());
  dataset->ids = std::move(ids).Build();
  data::PayloadTableBuilder payload(2, Limits{});
  EXPECT_TRUE(payload.Add({{"year", PayloadValue{std::int64_t{1995}}}}).ok());
  EXPECT_TRUE(payload
                  .Add({{"year", PayloadValue{std::int64_t{1995}}},
                        {"plot", PayloadValue{std::string(10'000, 'x')}}})
                  .ok());
  dataset->payload = std::move(payload).Build();
  engine::Snapshot snapshot;
  snapshot.collection = "films";
  snapshot.dataset = dataset;
  return snapshot;
}

TEST(FillValueTest, KeepsEveryKindApart) {
  v1::PayloadValue message;
  FillValue(PayloadValue{PayloadObject{
                {"null", PayloadValue{}},
                {"flag", PayloadValue{true}},
                {"whole", PayloadValue{std::int64_t{-(1LL << 60)}}},
                {"number", PayloadValue{2.0}},
                {"text", PayloadValue{std::string("x")}},
                {"list", PayloadValue{PayloadList{PayloadValue{std::int64_t{1}}, PayloadValue{}}}},
            }},
            message);
  EXPECT_TRUE(Equals(message, R"(object_value {
    fields { key: "null" value { null_value: true } }
    fields { key: "flag" value { bool_value: true } }
    fields { key: "whole" value { int_value: -1152921504606846976 } }
    fields { key: "number" value { double_value: 2 } }
    fields { key: "text" value { string_value: "x" } }
    fields { key: "list" value { list_value {
      values { int_value: 1 } values { null_value: true } } } } })"));
}

TEST(ResponseBuilderTest, FillsHitsWithTheSelectedParts) {
  const engine::Snapshot snapshot = FilmsSnapshot();
  const RowShape shape{{.none = false, .all = true, .field_numbers = {}}, true, true};
  const std::vector<Hit> hits = {{0, 0.5F}, {1, 0.25F}};
  v1::SearchResult result;
  ResponseBuilder(snapshot, shape).FillHits(hits, 10, *result.mutable_hits());
  ASSERT_EQ(result.hits_size(), 2);
  EXPECT_TRUE(Equals(result.hits(0), R"(rank: 11 row: 0 id: "toy-story" score: 0.5
    payload { key: "year" value { int_value: 1995 } } vector { values: [1, 0] as_stored: true })"));
  EXPECT_EQ(result.hits(1).rank(), 12U);
  EXPECT_EQ(result.hits(1).id(), "heat");
}

TEST(ResponseBuilderTest, LeavesOutThePartsNotSelected) {
  const engine::Snapshot snapshot = FilmsSnapshot();
  const RowShape shape{{.none = true, .all = false, .field_numbers = {}}};
  v1::Item item;
  ResponseBuilder(snapshot, shape).FillItem(1, item);
  EXPECT_TRUE(Equals(item, R"(id: "heat")"));
}

TEST(ResponseBuilderTest, RefusesRowsThatAloneAreTooLarge) {
  const engine::Snapshot snapshot = FilmsSnapshot();
  const RowShape shape{{.none = false, .all = true, .field_numbers = {}}};
  const ResponseBuilder builder(snapshot, shape);
  const std::vector<Row> rows = {1, 1, 1};
  EXPECT_TRUE(builder.CheckRowBytes(rows, 31'000, 1'000'000, "lower k").ok());
  const absl::Status refused = builder.CheckRowBytes(rows, 30'000, 1'000'000, "lower k");
  EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kReplyTooLarge);
  const std::string message(refused.message());
  EXPECT_EQ(message.find("the answer needs more than 30,"), 0U) << message;
  EXPECT_TRUE(message.ends_with(" bytes and may have 30,000; lower k")) << message;
  EXPECT_EQ(std::string(builder.CheckRowBytes(rows, 5'000, 15'000, "lower k").message()),
            "the answer needs more than 15,000 bytes and may have 5,000; lower k")
      << "counts no further";
}

TEST(ResponseBuilderTest, CountsWhatTheAnswerHasBesidesItsRows) {
  const engine::Snapshot snapshot = FilmsSnapshot();
  const RowShape shape{{.none = true, .all = false, .field_numbers = {}}};
  const ResponseBuilder builder(snapshot, shape);
  const std::vector<Row> rows = {0, 1};
  EXPECT_TRUE(builder.CheckRowBytes(rows, 1'000, 1'000'000, "", 800).ok());
  EXPECT_TRUE(builder.CheckRowBytes(rows, 1'000, 1'000'000, "", 950).ok());
  EXPECT_EQ(base::ReasonOf(builder.CheckRowBytes(rows, 1'000, 1'000'000, "", 1'000)),
            base::ErrorReason::kReplyTooLarge);
  EXPECT_EQ(std::string(builder.CheckRowBytes(rows, 5'000, 15'000, "k", 20'000).message()),
            "the answer needs more than 15,000 bytes and may have 5,000; k");
}

TEST(ResponseBuilderTest, CountsOnlyTheSelectedFieldsNearTheMaximum) {
  const engine::Snapshot snapshot = FilmsSnapshot();
  const auto year = snapshot.dataset->payload.FieldNumber("year");
  ASSERT_TRUE(year.has_value());
  const RowShape shape{{.none = false, .all = false, .field_numbers = {*year}}};
  // The whole payload of a row is far beyond 250 bytes; its year is not.
  EXPECT_TRUE(ResponseBuilder(snapshot, shape)
                  .CheckRowBytes(std::vector<Row>{1, 1}, 250, 1'000'000, "")
                  .ok());
}

TEST(ResponseBuilderTest, NeverRefusesAnAnswerThatFits) {
  const engine::Snapshot snapshot = FilmsSnapshot();
  for (const int parts : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool all = (parts & 1) != 0;
    const RowShape shape{
        {.none = !all, .all = all, .field_numbers = {}}, (parts & 2) != 0, (parts & 4) != 0};
    const ResponseBuilder builder(snapshot, shape);
    for (const std::vector<Row>& rows : {std::vector<Row>{0}, {1}, {0, 1}, {1, 1, 0, 0, 0}}) {
      v1::SearchResponse hits;
      v1::FetchResponse items;
      for (const Row row : rows) {
        builder.FillHits(std::vector<Hit>{{row, 0}}, 0, *hits.add_results()->mutable_hits());
        builder.FillItem(row, *items.add_items());
      }
      EXPECT_TRUE(builder.CheckRowBytes(rows, hits.ByteSizeLong(), 1'000'000, "").ok());
      EXPECT_TRUE(builder.CheckRowBytes(rows, items.ByteSizeLong(), 1'000'000, "").ok());
      EXPECT_FALSE(builder.CheckRowBytes(rows, items.ByteSizeLong() / 2, 1'000'000, "").ok());
    }
  }
}

class FillReceiptTest : public testing::Test {
 protected:
  FillReceiptTest() {
    snapshot_.id = "5eed";
    snapshot_.version = 3;
    receipt_.served_by = std::make_shared<const ServedBy>(
        ServedBy{{.name = "cpu", .engine = "scan-avx2", .device = "a chip"}, "no GPU"});
    receipt_.engines = {"scan-avx2", "gather"};
    receipt_.batch_size = 4;
    receipt_.queue_us = 5;
    receipt_.compute_us = 6;
    receipt_.cost = {.rows_scanned = 7, .rows_rescored = 8, .rescans = 1, .rounds = 2};
    receipt_.device_bytes = 10;
    receipt_.device_bytes_peak = 11;
  }

  engine::Snapshot snapshot_;
  observe::Receipt receipt_;
  v1::Receipt message_;
};

TEST_F(FillReceiptTest, BriefHasFourFields) {
  FillBriefReceipt(receipt_, snapshot_, 9, message_);
  EXPECT_TRUE(Equals(message_, R"(backend: BACKEND_KIND_CPU snapshot_id: "5eed" exact: true
    total_us: 9)"));
}

TEST_F(FillReceiptTest, DetailHasAllTheRest) {
  FillReceiptDetail(receipt_, snapshot_, "4f1c", message_);
  EXPECT_TRUE(Equals(message_, R"(device: "a chip" engines: ["scan-avx2", "gather"]
    reason: "no GPU" snapshot_version: 3 batch_size: 4 queue_us: 5 compute_us: 6
    rows_scanned: 7 rows_rescored: 8 request_id: "4f1c" rescans: 1 rounds: 2
    device_bytes: 10 device_bytes_peak: 11)"));
  FillBriefReceipt(receipt_, snapshot_, 9, message_);
  const auto* const fields = message_.GetDescriptor();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message_.GetReflection()->ListFields(message_, &set);
  EXPECT_EQ(static_cast<int>(set.size()), fields->field_count()) << "every field is filled";
}

TEST(KindOfTest, KnowsBothBackends) {
  EXPECT_EQ(KindOf({.name = "cpu", .engine = {}, .device = {}}), v1::BACKEND_KIND_CPU);
  EXPECT_EQ(KindOf({.name = "gpu", .engine = {}, .device = {}}), v1::BACKEND_KIND_GPU);
  EXPECT_EQ(KindOf({.name = "other", .engine = {}, .device = {}}), v1::BACKEND_KIND_UNSPECIFIED);
}

}  // namespace
}  // namespace simile::service
