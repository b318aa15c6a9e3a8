#include "service/response_builder.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "data/payload_builder.h"
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
engine::Snapshot Films() {
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
  v1::Value message;
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
  const engine::Snapshot snapshot = Films();
  const RowShape shape{{.none = false, .all = true, .field_numbers = {}}, true};
  const std::vector<Hit> hits = {{0, 0.5F}, {1, 0.25F}};
  v1::SearchResult result;
  ResponseBuilder(snapshot, shape).FillHits(hits, 10, *result.mutable_hits());
  ASSERT_EQ(result.hits_size(), 2);
  EXPECT_TRUE(Equals(result.hits(0), R"(rank: 11 row: 0 id: "toy-story" score: 0.5
    payload { key: "year" value { int_value: 1995 } } vector { values: [1, 0] })"));
  EXPECT_EQ(result.hits(1).rank(), 12U);
  EXPECT_EQ(result.hits(1).id(), "heat");
}

TEST(ResponseBuilderTest, LeavesOutThePartsNotSelected) {
  const engine::Snapshot snapshot = Films();
  const RowShape shape{{.none = true, .all = false, .field_numbers = {}}, false};
  v1::Item item;
  ResponseBuilder(snapshot, shape).FillItem(1, item);
  EXPECT_TRUE(Equals(item, R"(row: 1 id: "heat")"));
}

TEST(ResponseBuilderTest, RefusesAReplyBeyondItsMaximum) {
  const engine::Snapshot snapshot = Films();
  const RowShape shape{{.none = false, .all = true, .field_numbers = {}}, false};
  const ResponseBuilder builder(snapshot, shape);
  const std::vector<Row> rows = {1, 1, 1};
  EXPECT_TRUE(builder.CheckReplySize(rows, 31'000, "lower k").ok());
  const absl::Status refused = builder.CheckReplySize(rows, 30'000, "lower k");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(refused.message());
  EXPECT_EQ(message.find("the answer needs about 30,"), 0U) << message;
  EXPECT_TRUE(message.ends_with(" bytes and may have 30,000; lower k")) << message;
}

TEST(ResponseBuilderTest, CountsOnlyTheSelectedFieldsNearTheMaximum) {
  const engine::Snapshot snapshot = Films();
  const auto year = snapshot.dataset->payload.FieldNumber("year");
  ASSERT_TRUE(year.has_value());
  const RowShape shape{{.none = false, .all = false, .field_numbers = {*year}}, false};
  // The whole payload of a row is far beyond 250 bytes; its year is not.
  EXPECT_TRUE(
      ResponseBuilder(snapshot, shape).CheckReplySize(std::vector<Row>{1, 1}, 250, "").ok());
}

TEST(ResponseBuilderTest, NeverBuildsMoreThanItCounted) {
  const engine::Snapshot snapshot = Films();
  for (const bool with_vectors : {false, true}) {
    for (const Row row : {0U, 1U}) {
      const RowShape shape{{.none = false, .all = true, .field_numbers = {}}, with_vectors};
      const ResponseBuilder builder(snapshot, shape);
      v1::SearchResponse response;
      builder.FillHits(std::vector<Hit>{{row, -0.123F}}, 10'000,
                       *response.add_results()->mutable_hits());
      const std::vector<Row> rows = {row};
      EXPECT_FALSE(builder.CheckReplySize(rows, response.ByteSizeLong() - 1, "").ok());
    }
  }
}

TEST(FillReceiptTest, CarriesEveryNumber) {
  observe::Receipt receipt;
  receipt.backend = "cpu";
  receipt.device = "a chip";
  receipt.engine = "scan-avx2";
  receipt.reason = "no GPU";
  receipt.snapshot_version = 3;
  receipt.batch_size = 4;
  receipt.queue_us = 5;
  receipt.compute_us = 6;
  receipt.cost = {.rows_scanned = 7, .rows_rescored = 8, .rescans = 1};
  v1::Receipt message;
  FillReceipt(receipt, 9, "4f1c", message);
  EXPECT_TRUE(Equals(message, R"(backend: "cpu" device: "a chip" engine: "scan-avx2"
    reason: "no GPU" snapshot_version: 3 batch_size: 4 queue_us: 5 compute_us: 6 total_us: 9
    rows_scanned: 7 rows_rescored: 8 exact: true request_id: "4f1c" rescans: 1)"));
}

}  // namespace
}  // namespace simile::service
