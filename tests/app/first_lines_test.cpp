#include "app/first_lines.h"

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

namespace simile::app {
namespace {

using engine::CollectionState;
using engine::CollectionStatus;

engine::Snapshot Films(std::size_t row_count) {
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = *data::Matrix::Create(row_count, 384);
  dataset->profiles.ids = data::IdIndex::OfRowNumbers(500);
  engine::Snapshot snapshot;
  snapshot.collection = "films";
  snapshot.dataset = dataset;
  snapshot.filters = filter::Filters::Create(*dataset, snapshot.collection);
  return snapshot;
}

constexpr observe::BuildInfo kBuild = {"0.1.0", "g1", "", "GNU 12.2.0", "Release"};

TEST(FirstLinesTest, NameTheBackendAndTheReason) {
  const ServedBy cpu = {{"cpu", "scan-avx2", "a chip, 2 threads"}, "no driver"};
  const std::string line = "simile 0.1.0  cpu engine (scan-avx2 on a chip, 2 threads): no driver";
  EXPECT_EQ(BackendLine(kBuild, cpu, false), line);
  EXPECT_EQ(BackendLine(kBuild, cpu, true), line + "; `simile doctor` explains");
  EXPECT_EQ(
      BackendLine(kBuild, {{"gpu", "fp16-sm90", "NVIDIA H200"}, "NVIDIA H200 (139 GiB), CUDA 13.0"},
                  true),
      "simile 0.1.0  gpu engine (fp16-sm90 on NVIDIA H200): NVIDIA H200 (139 GiB), CUDA "
      "13.0");
}

TEST(FirstLinesTest, DescribeACollection) {
  EXPECT_EQ(CollectionLines(Films(5'000), std::chrono::milliseconds(213)),
            "films     5,000 vectors x 384 (cosine)  500 users  8.0 MiB resident  ready in 0.21 s");
}

TEST(FirstLinesTest, OmitMissingPartsAndAddNotes) {
  engine::Snapshot snapshot = Films(1);
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = *data::Matrix::Create(1, 384);
  dataset->metric = Metric::kDot;
  dataset->notes = {"one thing", "another"};
  snapshot.dataset = dataset;
  snapshot.filters = filter::Filters::Create(*dataset, snapshot.collection);
  EXPECT_EQ(CollectionLines(snapshot, std::chrono::seconds(1)),
            "films     1 vector x 384 (dot)  1.5 KiB resident  ready in 1.00 s\n"
            "          one thing\n"
            "          another");
}

TEST(FirstLinesTest, NameTheAddresses) {
  EXPECT_EQ(ListeningLine("127.0.0.1:50051", "127.0.0.1:9464"),
            "listening on 127.0.0.1:50051, metrics on 127.0.0.1:9464");
  EXPECT_EQ(ListeningLine("[::1]:50051", "[::1]:9464"),
            "listening on [::1]:50051, metrics on [::1]:9464");
  EXPECT_EQ(ListeningLine("127.0.0.1:50051", std::nullopt),
            "listening on 127.0.0.1:50051, metrics are off");
}

CollectionStatus FilmsAre(CollectionState state, double share) {
  engine::ChangeProgress progress;
  progress.share = share;
  return {"films", state, progress, nullptr};
}
CollectionStatus Loading(double share) { return FilmsAre(CollectionState::kLoading, share); }

TEST(ProgressTextTest, ShowsTheCollectionThatLoads) {
  EXPECT_EQ(ProgressText({{"books", CollectionState::kServing, {}, nullptr}, Loading(0.5)}),
            "films |###############---------------| 50 %");
  EXPECT_EQ(ProgressText({Loading(0)}), "films |------------------------------| 0 %");
  EXPECT_EQ(ProgressText({Loading(1)}), "films |##############################| 100 %");
}

TEST(ProgressTextTest, IsEmptyWhenNothingLoads) {
  EXPECT_EQ(ProgressText({}), "");
  EXPECT_EQ(ProgressText({FilmsAre(CollectionState::kReloading, 0.5)}), "");
}

TEST(LoadingTextTest, NamesTheCollectionThatLoads) {
  EXPECT_EQ(LoadingText({{"books", CollectionState::kServing, {}, nullptr}, Loading(0.43)}),
            "loading films, 43 %");
  EXPECT_EQ(LoadingText({{"books", CollectionState::kServing, {}, nullptr}}), "");
}

TEST(FirstLinesTest, NameTheCollectionsThatDidNotLoad) {
  EXPECT_EQ(FailedCollections({{"films", engine::CollectionState::kServing, {}, nullptr}}), "");
  EXPECT_EQ(FailedCollections({{"books", engine::CollectionState::kFailed, {}, nullptr},
                               {"films", engine::CollectionState::kServing, {}, nullptr},
                               {"maps", engine::CollectionState::kFailed, {}, nullptr}}),
            "books, maps");
}

}  // namespace
}  // namespace simile::app
