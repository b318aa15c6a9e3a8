#include "engine/snapshots/publisher.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/gate.h"
#include "files/scratch_folder.h"

namespace simile::engine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

constexpr std::uint64_t kMib = 1 << 20;

// Makes FakeSegments, or fails.
class FakeBackend final : public Backend {
 public:
  const BackendInfo& info() const override { return info_; }
  ResidentPlan Plan(const SegmentShape&) const override { return plan; }
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    gate.Pass();
    if (!status.ok()) return status;
    auto segment = std::make_shared<FakeSegment>(rows.rows, rows.first_row, rows.owner);
    segment->spoil = spoil;
    return segment;
  }

  ResidentPlan plan;
  Gate gate;
  absl::Status status;
  std::function<void(SearchResult&)> spoil;

 private:
  const BackendInfo info_{"cpu", "scan-fake", "a test"};
};

// Writes a folder per collection and sets the free memory of the machine.
class PublisherTest : public testing::Test {
 protected:
  PublisherTest() {
    options_.read_memory = [this]() -> absl::StatusOr<HostMemory> { return memory_; };
  }

  Publisher Make() { return Publisher(options_, backend_, store_, clock_); }

  // Writes vectors [row_count, 2] fp32 and titles; row r points to (r + 1, shift).
  std::filesystem::path WriteFolder(const std::string& name, std::size_t row_count, float shift) {
    std::filesystem::path folder = root_ / name;
    std::filesystem::create_directories(folder);
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                         std::to_string(row_count) + ", 2), }";
    header.resize(117, ' ');
    header += '\n';
    std::ofstream vectors(folder / "content_vectors.npy", std::ios::binary);
    vectors << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header;
    std::ofstream payload(folder / "metadata.jsonl");
    for (std::size_t row = 0; row < row_count; ++row) {
      const float values[2] = {static_cast<float>(row + 1), shift};
      vectors.write(reinterpret_cast<const char*>(values), sizeof(values));
      payload << "{\"id\": \"film-" << row << "\", \"title\": \"Film " << row << "\"}\n";
    }
    return folder;
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  FakeClock clock_;
  FakeBackend backend_;
  SnapshotStore store_{clock_};
  Publisher::Options options_;
  HostMemory memory_{64 * kMib, "available on the machine"};
};

TEST_F(PublisherTest, PublishesAFolderAsAServingSnapshot) {
  backend_.plan = {.host_bytes = 5, .device_bytes = 6};
  Publisher publisher = Make();
  const auto snapshot = publisher.Create("films", WriteFolder("films", 30, 1));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->version, 1U);
  EXPECT_EQ((*snapshot)->collection, "films");
  EXPECT_EQ((*snapshot)->loaded_at, clock_.WallNow());
  EXPECT_EQ((*snapshot)->row_count(), 30U);
  EXPECT_EQ((*snapshot)->dim(), 2U);
  EXPECT_EQ((*snapshot)->segments.size(), 1U);
  EXPECT_GE((*snapshot)->dataset->longest_row, 1.0);
  EXPECT_LT((*snapshot)->dataset->longest_row, 1.0001);
  EXPECT_EQ((*snapshot)->index_plan.host_bytes, 5U);
  EXPECT_EQ((*snapshot)->dataset->ids.Find("film-7"), Row{7});
  EXPECT_EQ((*snapshot)->text_index.Find("title", "film 7", 9).whole_match_count, 1U);
  EXPECT_EQ(store_.Pin("films").value(), *snapshot);
}

TEST_F(PublisherTest, ReplacesASnapshotByTheNextGeneration) {
  Publisher publisher = Make();
  ASSERT_TRUE(publisher.Create("films", WriteFolder("films", 30, 1)).ok());
  const auto second = publisher.Replace("films", WriteFolder("films", 31, 1));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->version, 2U);
  EXPECT_EQ(store_.Pin("films").value()->row_count(), 31U);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
}

TEST_F(PublisherTest, DropsLeasedSnapshotsWhenALoadNeedsMemory) {
  Publisher publisher = Make();
  const auto first = publisher.Create("films", WriteFolder("films", 30, 1));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto loaded_at = (*first)->loaded_at;
  store_.Lease(**first, std::chrono::seconds(60));
  ASSERT_TRUE(publisher.Replace("films", WriteFolder("films", 31, 1)).ok());
  EXPECT_TRUE(store_.PinVersion("films", 1, loaded_at).ok()) << "it is leased";
  ASSERT_TRUE(publisher.Create("books", WriteFolder("books", 3, 1)).ok());
  EXPECT_EQ(store_.PinVersion("films", 1, loaded_at).status().code(), absl::StatusCode::kAborted);
}

TEST_F(PublisherTest, ServesTheOldGenerationAfterABadFile) {
  Publisher publisher = Make();
  ASSERT_TRUE(publisher.Create("films", WriteFolder("films", 30, 1)).ok());
  const auto bad = WriteFolder("films", 30, 1);
  std::ofstream(bad / "metadata.jsonl", std::ios::app) << "{\"id\": \"one too many\"}\n";
  const auto second = publisher.Replace("films", bad);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("metadata.jsonl"));
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
}

TEST_F(PublisherTest, LeavesNothingBehindWhenAFirstLoadFails) {
  Publisher publisher = Make();
  EXPECT_EQ(publisher.Create("films", root_ / "absent").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(store_.List(), IsEmpty());
  EXPECT_TRUE(publisher.Create("films", WriteFolder("films", 3, 1)).ok());
}

TEST_F(PublisherTest, RefusesNamesThatAreNotFreeOrNotThere) {
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  EXPECT_EQ(publisher.Replace("films", folder).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(publisher.Create("films", folder).ok());
  EXPECT_EQ(publisher.Create("films", folder).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(PublisherTest, DoesNotPublishAWrongIndex) {
  Publisher publisher = Make();
  ASSERT_TRUE(publisher.Create("films", WriteFolder("films", 30, 1)).ok());
  backend_.spoil = [](SearchResult& result) {
    std::swap(result.Buffer(0)[0], result.Buffer(0)[1]);
  };
  const auto second = publisher.Replace("films", WriteFolder("films", 30, 2));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
}

TEST_F(PublisherTest, ReturnsTheBackendsError) {
  backend_.status = absl::ResourceExhaustedError("the device is full");
  Publisher publisher = Make();
  EXPECT_EQ(publisher.Create("films", WriteFolder("films", 3, 1)).status(), backend_.status);
  EXPECT_THAT(store_.List(), IsEmpty());
}

TEST_F(PublisherTest, RefusesWhatDoesNotFitAndNamesEveryPart) {
  backend_.plan.host_bytes = 100 * kMib;
  Publisher publisher = Make();
  const absl::Status status = publisher.Create("films", WriteFolder("films", 1'000, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      MatchesRegex("films does not fit: it needs 100\\.[0-9] MiB \\(vectors 125\\.0 KiB, "
                   "payload [0-9.]+ KiB, users 0 B, index 100\\.0 MiB\\); 57\\.6 MiB may be "
                   "taken: nine tenths of the 64\\.0 MiB available on the machine"));
  EXPECT_THAT(store_.List(), IsEmpty());
}

TEST_F(PublisherTest, SaysSoWhenFreeMemoryCannotBeRead) {
  options_.read_memory = []() -> absl::StatusOr<HostMemory> {
    return absl::UnavailableError("no /proc");
  };
  Publisher publisher = Make();
  EXPECT_EQ(
      publisher.Create("films", WriteFolder("films", 3, 1)).status(),
      absl::UnavailableError(
          "cannot tell how much memory is free (no /proc); set collections.memory_bytes_max"));
}

TEST_F(PublisherTest, CountsTheServingGenerationsAgainstALimit) {
  options_.memory_bytes_max = 10 * kMib;
  memory_.available_bytes = 0;  // not read: the limit is set
  backend_.plan.host_bytes = 6 * kMib;
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  ASSERT_TRUE(publisher.Create("films", folder).ok());
  const absl::Status status = publisher.Replace("films", folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("4.0 MiB may be taken: of the 10.0 MiB allowed for all collections 6.0 MiB "
                        "is in use"));
  // Unloading frees its memory: nothing else was left reserved.
  ASSERT_TRUE(store_.Remove("films").ok());
  EXPECT_TRUE(publisher.Create("films", folder).ok());
}

TEST_F(PublisherTest, ReservesTheSameMemoryForOneLoadOnly) {
  options_.memory_bytes_max = 10 * kMib;
  backend_.plan.host_bytes = 6 * kMib;
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  backend_.gate.Close();
  std::thread first([&] { EXPECT_TRUE(publisher.Create("films", folder).ok()); });
  backend_.gate.AwaitArrivals(1);
  const absl::Status status = publisher.Create("books", folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("less 6.0 MiB promised to a load under way"));
  backend_.gate.Open();
  first.join();
}

TEST_F(PublisherTest, ShowsProgressWhileItLoads) {
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 30, 1);
  backend_.gate.Close();
  std::thread loader([&] { EXPECT_TRUE(publisher.Create("films", folder).ok()); });
  backend_.gate.AwaitArrivals(1);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kLoading);
  EXPECT_DOUBLE_EQ(store_.Get("films")->progress, 0.8);  // the dataset is read
  EXPECT_EQ(store_.Pin("films").status().code(), absl::StatusCode::kFailedPrecondition);
  backend_.gate.Open();
  loader.join();
  EXPECT_EQ(store_.Get("films")->progress, 1);
}

}  // namespace
}  // namespace simile::engine
