#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/payload/payload_table.h"
#include "engine/fake_clock.h"
#include "engine/sample_data.h"
#include "google/rpc/status.pb.h"
#include "service/access/call_access.h"
#include "service/access/served_snapshots.h"
#include "service/calls/call.h"
#include "service/random_answer.h"
#include "service/reference_reply.h"
#include "service/replies/receipt_encoding.h"
#include "service/replies/replies.h"
#include "simile/limits.h"

namespace simile::service {
namespace {

constexpr std::uint64_t kCountedMax = std::uint64_t{64} << 20;

// Two rows of two dimensions; row 1 has a long plot.
engine::SnapshotPtr FilmsSnapshot() {
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = *data::Matrix::Create(2, 2);
  dataset->vectors.MutableRow(0)[0] = 1;
  dataset->vectors.MutableRow(1)[1] = -1;
  data::IdIndex::Builder ids(2);
  EXPECT_TRUE(ids.Add("toy-story").ok());
  EXPECT_TRUE(ids.Add("am\xc3\xa9lie").ok());
  dataset->ids = std::move(ids).Build();
  data::PayloadTableBuilder payload(2, Limits{});
  EXPECT_TRUE(payload.Add({{"year", PayloadValue{std::int64_t{1995}}}}).ok());
  EXPECT_TRUE(payload
                  .Add({{"year", PayloadValue{std::int64_t{2001}}},
                        {"plot", PayloadValue{std::string(10'000, 'x')}}})
                  .ok());
  dataset->payload = std::move(payload).Build();
  auto snapshot = std::make_shared<engine::Snapshot>();
  snapshot->collection = "films";
  snapshot->id = "5eed";
  snapshot->version = 3;
  snapshot->dataset = std::move(dataset);
  return snapshot;
}

RowShape WholeRows() { return {{.none = false, .all = true, .field_numbers = {}}, true, true}; }
RowShape IdsOnly() { return {{.none = true, .all = false, .field_numbers = {}}, false, false}; }

class SearchReplyTest : public testing::Test {
 protected:
  SearchReplyTest() {
    receipt_.served_by = std::make_shared<const ServedBy>(
        ServedBy{{.name = "cpu", .engine = "scan-avx2", .device = "a chip"}, "no GPU"});
    receipt_.engines = {"scan-avx2", "gather"};
    receipt_.batch_size = 4;
    receipt_.queue_us = 5;
    receipt_.compute_us = 6;
    receipt_.device_us = 3;
    receipt_.cost = {.rows_scanned = 7, .rows_rescored = 8, .rescans = 1, .rounds = 2};
    receipt_.device_bytes = 10;
    receipt_.device_bytes_peak = 11;
    EXPECT_TRUE(store_.BeginCreate("cvs").ok());
    store_.Publish("cvs", engine::MakeSnapshot(engine::RandomDataset(5, 2, 1)));
    auto cvs = ServedSnapshots(store_).Pin(*CallAccess().Permit("cvs"));
    EXPECT_TRUE(cvs.ok());
    item_snapshots_ = {std::nullopt, *std::move(cvs)};
  }

  SearchReply::Parts Parts() const {
    return {.shape = shape_,
            .pages = pages_,
            .receipt = {.snapshot = *snapshot_,
                        .receipt = receipt_,
                        .item_snapshots = item_snapshots_,
                        .is_brief = brief_receipt_,
                        .request_id = "4f1c",
                        .total_us = 9},
            .next_page_token = "next",
            .notes = {}};
  }
  v1::SearchResponse Parsed() const {
    const SearchReply reply(Parts(), kCountedMax);
    std::string bytes(reply.bytes(), '\0');
    reply.Write(reinterpret_cast<std::uint8_t*>(bytes.data()));
    v1::SearchResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return response;
  }
  void ExpectAsProtobuf() const {
    v1::SearchResponse expected;
    FillResponse(Parts(), expected);
    EXPECT_EQ(FindDifference(SearchReply(Parts(), kCountedMax), expected), "");
  }

  const engine::SnapshotPtr snapshot_ = FilmsSnapshot();
  const std::vector<Hit> hits_ = {{0, 0.5F}, {1, 0.25F}};
  RowShape shape_ = WholeRows();
  std::vector<ResultPage> pages_;
  observe::Receipt receipt_;
  engine::FakeClock clock_;
  engine::SnapshotStore store_{clock_};
  std::vector<std::optional<PermittedSnapshot>> item_snapshots_;
  bool brief_receipt_ = false;
};

TEST_F(SearchReplyTest, HasHitsWithTheSelectedParts) {
  ResultPage& page = pages_.emplace_back();
  page.hits = hits_;
  page.offset = 10;
  page.score_kind = v1::SCORE_KIND_COSINE;
  ExpectAsProtobuf();
  const v1::Hit hit = Parsed().results(0).hits(1);
  EXPECT_EQ(hit.rank(), 12U);
  EXPECT_EQ(hit.id(), "am\xc3\xa9lie");
  EXPECT_EQ(hit.score(), 0.25F);
  EXPECT_EQ(hit.payload().size(), 2U);
  EXPECT_EQ(hit.payload().at("year").int_value(), 2001);
  EXPECT_EQ(hit.vector().values(1), -1.0F);
  EXPECT_TRUE(hit.vector().as_stored());
  EXPECT_EQ(hit.row(), 1U);
}

TEST_F(SearchReplyTest, LeavesOutThePartsNotSelected) {
  pages_.emplace_back().hits = hits_;
  shape_ = IdsOnly();
  ExpectAsProtobuf();
  shape_.payload = {.none = false,
                    .all = false,
                    .field_numbers = {*snapshot_->dataset->payload.FieldNumber("year")}};
  ExpectAsProtobuf();
  EXPECT_EQ(Parsed().results(0).hits(1).payload().size(), 1U);
  EXPECT_LT(SearchReply(Parts(), kCountedMax).bytes(), 300U) << "without the plot";
}

TEST_F(SearchReplyTest, EncodesRowZeroAndNoHits) {
  pages_.resize(3);
  pages_[1].hits = std::span(hits_).first(1);
  pages_[1].rows_passing = 0;
  ExpectAsProtobuf();
  const v1::SearchResponse response = Parsed();
  EXPECT_EQ(response.results_size(), 3);
  EXPECT_TRUE(response.results(1).hits(0).has_row());
  EXPECT_TRUE(response.results(1).has_rows_passing());
  EXPECT_FALSE(response.results(0).has_rows_passing());
}

TEST_F(SearchReplyTest, HasGroupsAndColdStarts) {
  const std::vector<engine::HitGroup> groups = {{"Pixar", {hits_[0]}}, {"", {}}, {"UGC", hits_}};
  pages_.resize(2);
  pages_[0].groups = groups;
  pages_[0].offset = std::numeric_limits<std::uint32_t>::max() - 3;
  pages_[1].cold_start = {.order = engine::ColdStart::Order::kMostPopular, .field = ""};
  pages_[1].user_id = "user_00042";
  pages_[1].seen_count = 5;
  ExpectAsProtobuf();
  v1::RecommendResponse recommended;
  FillResponse(Parts(), recommended);
  EXPECT_EQ(FindDifference(SearchReply(Parts(), kCountedMax), recommended), "");
}

TEST_F(SearchReplyTest, FillsEveryFieldOfTheReceipt) {
  ExpectAsProtobuf();
  const v1::Receipt receipt = Parsed().receipt();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  receipt.GetReflection()->ListFields(receipt, &set);
  EXPECT_EQ(static_cast<int>(set.size()), receipt.GetDescriptor()->field_count())
      << receipt.ShortDebugString();
}

TEST_F(SearchReplyTest, ABriefReceiptSaysWhichContentAnswered) {
  brief_receipt_ = true;
  EXPECT_EQ(Parsed().receipt().item_snapshots(0).collection(), "cvs");
  item_snapshots_.clear();
  EXPECT_EQ(Parsed().receipt().ShortDebugString(),
            "backend: BACKEND_KIND_CPU snapshot_id: \"5eed\" exact: true total_us: 9");
}

TEST_F(SearchReplyTest, EndsCountingPastTheMaximum) {
  const std::vector<Hit> long_hits(1'000, Hit{1, 1});
  pages_.emplace_back().hits = long_hits;
  const std::uint64_t exact = SearchReply(Parts(), kCountedMax).bytes();
  EXPECT_GT(exact, 10'000'000U);
  EXPECT_EQ(SearchReply(Parts(), exact).bytes(), exact);
  EXPECT_TRUE(CheckReplySize(SearchReply(Parts(), exact), exact, "lower k").ok());
  const SearchReply ended(Parts(), 15'000);
  EXPECT_FALSE(ended.is_exact());
  EXPECT_EQ(ended.bytes(), 15'001U);
  const absl::Status refused = CheckReplySize(ended, 5'000, "lower k");
  EXPECT_EQ(base::ReasonOf(refused), base::ErrorReason::kReplyTooLarge);
  EXPECT_EQ(std::string(refused.message()),
            "the answer needs more than 15,000 bytes and may have 5,000; lower k");
}

TEST(LookupReplyTest, HasMatchesOfEveryQuality) {
  const engine::SnapshotPtr snapshot = FilmsSnapshot();
  const filter::TextMatches found = {.first = {{1, filter::MatchQuality::kWhole},
                                               {0, filter::MatchQuality::kPrefix},
                                               {1, filter::MatchQuality::kPart}},
                                     .match_count = 3,
                                     .whole_match_count = 1};
  for (const RowShape& shape : {WholeRows(), IdsOnly()}) {
    EXPECT_EQ(FindDifference(LookupReply(snapshot, shape, found, {}, kCountedMax, kCountedMax),
                             MakeLookupResponse(*snapshot, shape, found, {})),
              "");
    EXPECT_EQ(FindDifference(LookupReply(snapshot, shape, {}, {}, kCountedMax, kCountedMax),
                             MakeLookupResponse(*snapshot, shape, {}, {})),
              "");
  }
}

TEST(FetchReplyTest, HasItemsInTheOrderOfTheRequest) {
  const engine::SnapshotPtr snapshot = FilmsSnapshot();
  google::rpc::Status unknown;
  unknown.set_code(5);
  const FetchedItem first{.row = 0, .id = {}, .error = {}};
  const FetchedItem second{.row = 1, .id = {}, .error = {}};
  const FetchedItem failed{.row = 0, .id = "zz", .error = unknown.SerializeAsString()};
  for (const std::vector<FetchedItem>& items :
       {std::vector<FetchedItem>{}, {second}, {second, first, second}, {first, failed, second}}) {
    for (const RowShape& shape : {WholeRows(), IdsOnly()}) {
      EXPECT_EQ(FindDifference(FetchReply(snapshot, shape, items, {}, kCountedMax, kCountedMax),
                               MakeFetchResponse(*snapshot, shape, items, {})),
                "");
    }
  }
}

TEST(LookupReplyTest, LeavesItsNotesOutWhereTheyDoNotFit) {
  const engine::SnapshotPtr snapshot = FilmsSnapshot();
  const std::vector<std::string> notes = {"with_rows has no effect", "another"};
  const auto expect = [](const auto& whole, const auto& bare, const auto& make) {
    EXPECT_EQ(FindDifference(make(whole.ByteSizeLong()), whole), "");
    for (const std::size_t max : {whole.ByteSizeLong() - 1, bare.ByteSizeLong(), std::size_t{1}}) {
      EXPECT_EQ(FindDifference(make(max), bare), "") << max;
    }
  };
  const filter::TextMatches found = {
      .first = {{1, filter::MatchQuality::kWhole}}, .match_count = 1, .whole_match_count = 1};
  expect(MakeLookupResponse(*snapshot, WholeRows(), found, notes),
         MakeLookupResponse(*snapshot, WholeRows(), found, {}), [&](std::size_t bytes_max) {
           return LookupReply(snapshot, WholeRows(), found, notes, bytes_max, kCountedMax);
         });
  const std::vector<FetchedItem> items = {{.row = 1, .id = {}, .error = {}}};
  expect(MakeFetchResponse(*snapshot, WholeRows(), items, notes),
         MakeFetchResponse(*snapshot, WholeRows(), items, {}), [&](std::size_t bytes_max) {
           return FetchReply(snapshot, WholeRows(), items, notes, bytes_max, kCountedMax);
         });
}

TEST(ReplyTest, EncodesRandomAnswersAsProtobufDoes) {
  constexpr std::uint64_t kSeed = 23;
  std::cout << "seed " << kSeed << "\n";
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 2'000; ++i) {
    const RandomAnswer answer([&] { return random(); });
    v1::SearchResponse found;
    FillResponse(answer.parts(), found);
    ASSERT_EQ(FindDifference(SearchReply(answer.parts(), kCountedMax), found), "") << i;
    ASSERT_EQ(FindDifference(FetchReply(answer.snapshot(), answer.shape(), answer.items(),
                                        answer.notes(), kCountedMax, kCountedMax),
                             MakeFetchResponse(*answer.snapshot(), answer.shape(), answer.items(),
                                               answer.notes())),
              "")
        << i;
    ASSERT_EQ(FindDifference(LookupReply(answer.snapshot(), answer.shape(), answer.matches(),
                                         answer.notes(), kCountedMax, kCountedMax),
                             MakeLookupResponse(*answer.snapshot(), answer.shape(),
                                                answer.matches(), answer.notes())),
              "")
        << i;
  }
}

TEST(KindOfTest, KnowsBothBackends) {
  EXPECT_EQ(ToBackendKind({.name = "cpu", .engine = {}, .device = {}}), v1::BACKEND_KIND_CPU);
  EXPECT_EQ(ToBackendKind({.name = "gpu", .engine = {}, .device = {}}), v1::BACKEND_KIND_GPU);
  EXPECT_EQ(ToBackendKind({.name = "other", .engine = {}, .device = {}}),
            v1::BACKEND_KIND_UNSPECIFIED);
}

}  // namespace
}  // namespace simile::service
