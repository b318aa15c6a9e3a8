#include "app/start_output.h"

#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.h"
#include "base/terminal_pair.h"

namespace simile::app {
namespace {

using nlohmann::json;

// A log of JSON in memory.
class StartOutputTest : public testing::Test {
 protected:
  // The lines, each of which must be JSON, without time and level.
  std::vector<json> Lines() const {
    std::vector<json> lines;
    std::istringstream stream(log_text_.str());
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(json::parse(line));
      lines.back().erase("time");
      levels_ += lines.back()["level"].get<std::string>() + " ";
      lines.back().erase("level");
    }
    return lines;
  }

  std::ostringstream log_text_;
  mutable std::string levels_;
  const observe::Logger log_{{observe::LogFormat::kJson, observe::LogLevel::kInfo, &log_text_}};
  StartOutput output_{observe::LogFormat::kJson, log_};
};

TEST_F(StartOutputTest, LogsTheBackendTheAddressesAndTheFailure) {
  output_.Starting({"0.1.0", "g1", "", "GNU 12.2.0", "Release"},
                   {{"cpu", "scan-avx2", "a chip, 2 threads"}, "no \"driver\""}, true);
  output_.Listening("127.0.0.1:50051", "127.0.0.1:9464");
  output_.Listening("[::1]:50051", std::nullopt);
  output_.Failed(absl::InvalidArgumentError("films: content_vectors.npy: row 17\nholds NaN"));
  const std::vector<json> lines = Lines();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], json({{"message", "starting"},
                            {"version", "0.1.0"},
                            {"backend", "cpu"},
                            {"engine", "scan-avx2"},
                            {"device", "a chip, 2 threads"},
                            {"reason", "no \"driver\""}}));
  EXPECT_EQ(lines[1], json({{"message", "listening"},
                            {"address", "127.0.0.1:50051"},
                            {"metrics_address", "127.0.0.1:9464"}}));
  EXPECT_EQ(lines[2],
            json({{"message", "listening"}, {"address", "[::1]:50051"}, {"metrics_address", ""}}));
  EXPECT_EQ(lines[3], json({{"message", "films: content_vectors.npy: row 17\nholds NaN"}}));
  EXPECT_EQ(levels_, "info info info error ");
}

TEST_F(StartOutputTest, LogsACollectionAndEachOfItsNotes) {
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = *data::Matrix::Create(5'000, 384);
  dataset->profiles.ids = data::IdIndex::OfRowNumbers(500);
  dataset->notes = {"one thing", "another"};
  engine::Snapshot snapshot;
  snapshot.collection = "films";
  snapshot.dataset = dataset;
  snapshot.filters = filter::Filters::Create(*dataset, snapshot.collection);
  output_.Loaded(snapshot, std::chrono::milliseconds(213));
  const std::vector<json> lines = Lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], json({{"message", "collection ready"},
                            {"collection", "films"},
                            {"rows", 5'000},
                            {"users", 500},
                            {"resident_bytes", engine::SumBytes(snapshot).host()},
                            {"device_bytes", 0},
                            {"duration_us", 213'000}}));
  EXPECT_EQ(
      lines[1],
      json({{"message", "note on a collection"}, {"collection", "films"}, {"note", "one thing"}}));
  EXPECT_EQ(lines[2]["note"], "another");
}

TEST_F(StartOutputTest, DrawsNoProgressIntoALogOfJson) {
  EXPECT_FALSE(output_.draws_progress());
  output_.DrawProgress({});
  output_.ClearProgress();
  EXPECT_EQ(log_text_.str(), "");
}

TEST(StartOutputOfTextTest, DoesNotWaitForATerminalThatIsStopped) {
  const base::TerminalPair terminal;
  if (!terminal.exists()) GTEST_SKIP() << base::TerminalPair::kMissing;
  const base::FileDescriptor errors(dup(STDERR_FILENO));
  ASSERT_EQ(dup2(terminal.program(), STDERR_FILENO), STDERR_FILENO);
  std::ostringstream log_text;
  const observe::Logger log({observe::LogFormat::kText, observe::LogLevel::kInfo, &log_text});
  StartOutput output(observe::LogFormat::kText, log);
  engine::ChangeProgress progress;
  progress.share = 0.5;
  output.DrawProgress({{"films", engine::CollectionState::kLoading, progress, nullptr}});
  const int stopped = tcflow(terminal.program(), TCOOFF);  // as Ctrl-S does
  for (int bar = 0; bar < 1'000; ++bar) {
    output.DrawProgress({{"films", engine::CollectionState::kLoading, progress, nullptr}});
  }
  output.ClearProgress();
  EXPECT_EQ(tcflow(terminal.program(), TCOON), 0);
  EXPECT_EQ(dup2(errors.get(), STDERR_FILENO), STDERR_FILENO);
  EXPECT_EQ(stopped, 0);
  std::string drawn(1'000, '\0');
  drawn.resize(static_cast<std::size_t>(read(terminal.person(), drawn.data(), drawn.size())));
  EXPECT_EQ(drawn, "films |###############---------------| 50 %");
}

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
