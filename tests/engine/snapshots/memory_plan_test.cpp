#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/int8_backend.h"
#include "data/load/dataset_sample.h"
#include "engine/fake_clock.h"
#include "engine/snapshots/memory_plan.h"
#include "engine/snapshots/publisher.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

// A plan is what the loaded snapshot takes, within 5%, part by part.

namespace simile::engine {
namespace {

// A collection to write. Users and payload are optional.
struct Folder {
  std::string name;
  std::size_t rows;
  std::size_t dim;
  std::size_t text_words;  // of the payload's longest field; 0: no payload
  std::size_t users = 0;
  std::string settings{};
};

class FolderWriter {
 public:
  explicit FolderWriter(const Folder& folder) : folder_(folder) {}

  void WriteTo(const ScratchFolder& to) {
    to.Write("vectors.npy", NpyFile(Numbers(folder_.rows), folder_.dim));
    if (!folder_.settings.empty()) to.Write("collection.json", folder_.settings);
    if (folder_.text_words > 0) WritePayload(std::ofstream(to.path() / "metadata.jsonl"));
    if (folder_.users > 0) WriteUsers(to);
  }

 private:
  std::vector<float> Numbers(std::size_t rows) {
    std::vector<float> numbers(rows * folder_.dim);
    for (float& number : numbers) number = static_cast<float>(random_() >> 40) * 0x1p-23F - 1;
    return numbers;
  }
  std::uint64_t Below(std::uint64_t end) { return random_() % end; }
  // Frequent words are more frequent than others.
  std::string Word() {
    const std::uint64_t rank = Below(100) * Below(100) * Below(10);
    return fmt::format("w{:x}", rank * 0x9e3779b97f4a7c15ULL >> 44);
  }
  std::string Words(std::uint64_t count) {
    std::string text = Word();
    for (std::uint64_t i = 1; i < count; ++i)
      fmt::format_to(std::back_inserter(text), " {}", Word());
    return text;
  }
  void WritePayload(std::ofstream out) {
    for (std::size_t row = 0; row < folder_.rows; ++row) {
      out << fmt::format(
          R"({{"id": "item-{}", "title": "{}", "text": "{}", "tags": ["{}", "{}"], "year": {},)"
          R"( "price": {:.2f}, "sold": {}, "added": "2024-0{}-1{}T00:00:00Z"}})"
          "\n",
          row, Words(3), Words(folder_.text_words), Word(), Word(), 1900 + Below(120),
          static_cast<double>(Below(10'000)) / 100, Below(3) == 0, 1 + Below(9), Below(10));
    }
  }
  void WriteUsers(const ScratchFolder& to) {
    to.Write("preference_vectors.npy", NpyFile(Numbers(folder_.users), folder_.dim));
    std::ofstream ids(to.path() / "user_ids.json");
    std::ofstream seen(to.path() / "interactions.jsonl");
    for (std::size_t user = 0; user < folder_.users; ++user) {
      ids << (user == 0 ? "[" : ", ") << fmt::format("\"user-{}\"", user);
      for (std::uint64_t i = Below(20); i > 0; --i) {
        seen << fmt::format("{{\"user_id\": \"user-{}\", \"item_id\": \"item-{}\"}}\n", user,
                            Below(folder_.rows));
      }
    }
    ids << "]";
  }

  const Folder& folder_;
  std::mt19937_64 random_{1};
};

class MemoryPlanTest : public testing::TestWithParam<Folder> {};

TEST_P(MemoryPlanTest, IsWhatTheLoadedSnapshotTakesWithinFivePercent) {
  const ScratchFolder scratch;
  FolderWriter(GetParam()).WriteTo(scratch);
  const auto dataset_plan = data::PlanDataset(scratch.path(), Limits{});
  ASSERT_TRUE(dataset_plan.ok()) << dataset_plan.status();
  const auto data = PlanData(*dataset_plan, Limits{});
  ASSERT_TRUE(data.ok()) << data.status();
  backend::cpu::Int8Options options = backend::cpu::OptionsFor("");
  options.threads = 2;
  options.foreground_bytes_max = SIZE_MAX;  // so that the index is built when Create returns
  const auto backend = backend::cpu::MakeInt8Backend(options);
  const MemoryPlan plan = PlanMemory(
      *data, backend->Plan({dataset_plan->row_count, dataset_plan->dim, Metric::kCosine}));

  FakeClock clock;
  SnapshotStore store(clock);
  Publisher publisher({{}, std::uint64_t{4} << 30}, *backend, store, clock);
  Publisher::Change change;
  change.collection = "planned";
  change.folder = scratch.path();
  const auto loaded = publisher.Create(change);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const ResidentBytes actual = SumBytes(*loaded->snapshot);

  const auto near = [](std::uint64_t bytes) {
    // Of a small part the capacity of vectors is a share that no file tells.
    constexpr double kSlack = 16 << 10;
    const auto number = static_cast<double>(bytes);
    return testing::DoubleNear(number, number * 0.05 + kSlack);
  };
  EXPECT_EQ(plan.resident.vectors, actual.vectors);
  EXPECT_EQ(plan.resident.index, actual.index);
  EXPECT_THAT(static_cast<double>(plan.resident.payload), near(actual.payload));
  EXPECT_THAT(static_cast<double>(plan.resident.users), near(actual.users));
  EXPECT_THAT(static_cast<double>(plan.resident.host()), near(actual.host()));
  EXPECT_GE(plan.load_peak_bytes, plan.resident.host() - plan.resident.index);
  EXPECT_GE(plan.index_peak_bytes, plan.resident.host());
}

INSTANTIATE_TEST_SUITE_P(
    Folders, MemoryPlanTest,
    testing::Values(Folder{"Tiny", 5, 3, 2}, Folder{"VectorsAlone", 20'000, 100, 0},
                    Folder{"Narrow", 5'000, 8, 5, 300}, Folder{"Wide", 1'500, 1'000, 5},
                    Folder{"LongTexts", 4'000, 32, 60, 1'000},
                    Folder{"Sampled", 60'000, 16, 20, 8'000},
                    Folder{"Skipping", 30'000, 16, 4, 0, R"({"on_zero_row": "skip"})"},
                    Folder{"GivenTypes", 3'000, 16, 4, 0,
                           R"({"field_types": {"added": "keyword"}, "lookup_fields": ["text"]})"}),
    [](const testing::TestParamInfo<Folder>& tested) { return tested.param.name; });

TEST(MemoryPlanTest, ExtrapolatesOnlyFromLargeFiles) {
  for (const std::size_t rows : {1'000, 60'000}) {
    const ScratchFolder scratch;
    FolderWriter({"", rows, 4, 20}).WriteTo(scratch);
    const auto plan = data::PlanDataset(scratch.path(), Limits{});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto sample = data::SampleDataset(*plan, Limits{});
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(sample->is_whole, rows == 1'000);
    EXPECT_EQ(sample->payload.row_count() == rows, sample->is_whole);
    EXPECT_GT(sample->payload.row_count(), 500U);
  }
}

TEST(MemoryPlanTest, CountsTheWholeFileWhereALineOfItIsInvalid) {
  const ScratchFolder scratch;
  FolderWriter({"", 10, 4, 5}).WriteTo(scratch);
  scratch.Write("metadata.jsonl", "{\"id\": \"a\"}\n{\"id\": \n");
  const auto plan = data::PlanDataset(scratch.path(), Limits{});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto sample = data::SampleDataset(*plan, Limits{});
  ASSERT_TRUE(sample.ok()) << "the load says what is wrong: " << sample.status();
  EXPECT_FALSE(sample->is_readable);
  EXPECT_EQ(sample->payload_bytes, std::filesystem::file_size(scratch.path() / "metadata.jsonl"));
}

TEST(MemoryPlanTest, CountsAGenerationThatIsHeldWhileALargeIndexIsBuilt) {
  DataBytes data;
  data.vectors = 1'000;
  data.payload = 100;
  data.build = 500;
  ResidentPlan index;
  index.host_bytes = 300;
  index.host_build_bytes = 50;
  MemoryPlan plan = PlanMemory(data, index);
  EXPECT_EQ(plan.resident.host(), 1'400U);
  EXPECT_EQ(plan.peak_bytes(), 1'600U) << "columns take more than the index";
  EXPECT_EQ(plan.ReloadPeakBytes(1'400, false), 3'000U);
  data.build = 0;
  plan = PlanMemory(data, index);
  EXPECT_EQ(plan.peak_bytes(), 1'450U);
  EXPECT_EQ(plan.ReloadPeakBytes(1'400, false), 2'850U) << "the index is built before the swap";
  index.builds_later = true;
  plan = PlanMemory(data, index);
  EXPECT_EQ(plan.ReloadPeakBytes(1'400, false), 2'500U) << "the former one has gone by then";
  EXPECT_EQ(plan.ReloadPeakBytes(1'400, true), 2'850U);
}

// A small /proc and /sys in a scratch folder.
class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() {
    Write("proc/meminfo", "MemTotal:       32000 kB\nMemAvailable:   20000 kB\nCached: 5 kB\n");
  }

  void Write(const std::string& file, const std::string& text) { scratch_.Write(file, text); }

  // Sets up one group of version 2 with a limit, what it uses, and how much of that is page cache:
  // `cache` bytes that were not used lately and `active` bytes that were.
  void WriteGroup2(const std::string& group, const std::string& limit, std::uint64_t used,
                   std::uint64_t cache, std::uint64_t active = 0) {
    const std::string folder = "sys/fs/cgroup" + group;
    Write(folder + "/memory.max", limit + "\n");
    Write(folder + "/memory.current", std::to_string(used) + "\n");
    Write(folder + "/memory.stat", "anon 1\ninactive_file " + std::to_string(cache) +
                                       "\nactive_file " + std::to_string(active) +
                                       "\nfile_dirty 0\nfile_writeback 0\n");
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
};

TEST_F(HostMemoryTest, ReadsWhatTheMachineHasAvailable) {
  const auto memory = ReadHostMemory(root_);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->available_bytes, 20'000U * 1024);
  EXPECT_EQ(memory->origin, "available on the machine");
}

TEST_F(HostMemoryTest, RefusesWithoutMemAvailable) {
  Write("proc/meminfo", "MemTotal: 32000 kB\n");
  EXPECT_EQ(ReadHostMemory(root_).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(HostMemoryTest, CountsCacheAsFreeInAGroupOfVersion2) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000000", 700'000, 200'000);
  const auto memory = ReadHostMemory(root_);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->available_bytes, 500'000U);
  EXPECT_EQ(memory->origin, "left by the control group's memory limit");
}

TEST_F(HostMemoryTest, CountsCacheThatWasUsedLatelyAsFree) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000000", 700'000, 200'000, 300'000);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 800'000U);
}

TEST_F(HostMemoryTest, DoesNotCountCacheThatIsStillToBeWritten) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000000", 700'000, 0);
  const auto with_cache = [this](const std::string& stat) {
    Write("sys/fs/cgroup/app/memory.stat", stat);
    return ReadHostMemory(root_)->available_bytes;
  };
  EXPECT_EQ(with_cache("active_file 100000\ninactive_file 50000\nfile_dirty 30000\n"
                       "file_writeback 20000\n"),
            400'000U);
  EXPECT_EQ(with_cache("active_file 10\nfile_dirty 20\n"), 300'000U);
}

TEST_F(HostMemoryTest, TakesTheTightestOfAllParents) {
  Write("proc/self/cgroup", "0::/slice/app\n");
  WriteGroup2("/slice/app", "max", 10, 0);
  WriteGroup2("/slice", "300000", 100'000, 0);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 200'000U);
}

TEST_F(HostMemoryTest, SeesAContainersOwnGroupAtTheTopOfTheMount) {
  Write("proc/self/cgroup", "0::/docker/0123\n");
  WriteGroup2("", "400000", 100'000, 0);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 300'000U);
}

TEST_F(HostMemoryTest, ReportsNoMemoryWhenAGroupIsOverItsLimit) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "1000", 5'000, 100);
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 0U);
}

TEST_F(HostMemoryTest, IgnoresALimitAboveWhatTheMachineHas) {
  Write("proc/self/cgroup", "0::/app\n");
  WriteGroup2("/app", "999999999999", 1, 0);
  EXPECT_EQ(ReadHostMemory(root_)->origin, "available on the machine");
}

TEST_F(HostMemoryTest, ReadsAGroupOfVersion1) {
  Write("proc/self/cgroup", "9:name=systemd:/x\n4:cpuacct,memory:/app\n0::/\n");
  Write("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "1000000\n");
  Write("sys/fs/cgroup/memory/app/memory.usage_in_bytes", "700000\n");
  Write("sys/fs/cgroup/memory/app/memory.stat",
        "inactive_file 1\ntotal_inactive_file 50000\ntotal_active_file 7000\ntotal_dirty 7000\n");
  // "No limit" in version 1 is a huge number.
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
  EXPECT_EQ(ReadHostMemory(root_)->available_bytes, 350'000U);
}

TEST(HostMemoryOnThisMachineTest, IsReadable) {
  const auto memory = ReadHostMemory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_GT(memory->available_bytes, 0U);
}

}  // namespace
}  // namespace simile::engine
