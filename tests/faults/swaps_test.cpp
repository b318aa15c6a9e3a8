// Collections are reloaded and rolled back one time after the other under load, a tenth of the
// times with files that must be refused: no call fails, each answer is wholly of one snapshot, and
// after a refusal the former one is served. 100 changes; 1,000 with TEST_ROTATION=all.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/rotation.h"
#include "faults/fault_rig.h"

namespace simile::faults {
namespace {

using integration::ChangeAnswer;
using integration::Client;
using integration::Outcome;

constexpr Generation::Shape kShape{.rows = 400, .dim = 24, .metric = "dot"};
constexpr std::size_t kGenerations = 5;
constexpr std::size_t kRowsAsked = 24;
constexpr std::size_t kClients = 3;
constexpr const char* kVectors = "content_vectors.npy";

// What is right to answer, by snapshot and row.
class RightAnswers {
 public:
  void Add(const std::string& snapshot_id, const Generation& generation) {
    std::vector<std::vector<Generation::Expected>>& of_rows = expected_[snapshot_id];
    for (std::size_t row = 0; row < kRowsAsked; ++row) {
      of_rows.push_back(generation.Neighbours(row));
    }
  }
  testing::AssertionResult Check(const v1::SearchResponse& response, std::size_t row) const {
    const auto place = expected_.find(response.receipt().snapshot_id());
    if (place == expected_.end()) {
      return testing::AssertionFailure()
             << "of snapshot " << response.receipt().snapshot_id() << ", which was never served";
    }
    return Generation::Equal(response.results(0).hits(), place->second[row]);
  }

 private:
  std::map<std::string, std::vector<std::vector<Generation::Expected>>> expected_;
};

// Clients that search, each over a connection of its own, and check each answer.
class Load {
 public:
  Load(const FaultRig& rig, const RightAnswers& right) : right_(right) {
    for (std::size_t i = 0; i < kClients; ++i) {
      threads_.emplace_back([this, client = rig.NewClient(), i] { Run(*client, i); });
    }
  }
  ~Load() { End(); }

  void End() {
    ending_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::uint64_t answers() const { return answers_; }
  std::uint64_t failure_count() const { return failure_count_; }
  const std::vector<std::string>& failures() const { return failures_; }  // after End

 private:
  void Run(const Client& client, std::size_t first) {
    std::uint64_t version = 0;
    for (std::size_t row = first; !ending_; row = (row + 1) % kRowsAsked) {
      v1::SearchResponse response;
      const Outcome outcome = client.Search(Generation::Search(row), response);
      if (!outcome.ok()) {
        Fail(testing::PrintToString(outcome));
        continue;
      }
      const testing::AssertionResult right = right_.Check(response, row);
      if (!right) Fail(right.message());
      const std::uint64_t now = response.receipt().snapshot_version();
      if (now < version) Fail(fmt::format("version {} after {}", now, version));
      version = now;
      ++answers_;
    }
  }
  void Fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(what);
    ++failure_count_;
  }

  const RightAnswers& right_;
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> answers_{0};
  std::atomic<std::uint64_t> failure_count_{0};
  std::mutex mutex_;  // guards failures_
  std::vector<std::string> failures_;
  std::vector<std::thread> threads_;
};

// A reload that must be refused.
struct BadReload {
  const char* name;
  const char* reason;
  // Writes the files into the folder, anew each time.
  std::function<void(const std::filesystem::path& folder)> write;
  FaultKind fault = FaultKind::kNone;  // while the vectors are read
  double min_overlap = 0;
};

constexpr std::uint64_t kOtherSeed = 99;

void WriteShape(const std::filesystem::path& folder, std::size_t dim, const char* metric) {
  Generation(kOtherSeed, {kShape.rows, dim, metric}).Write(folder);
}

void WriteVectors(const std::filesystem::path& folder,
                  const std::function<float(float, std::size_t)>& change) {
  const Generation generation(kOtherSeed, kShape);
  std::vector<float> vectors = generation.vectors();
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = change(vectors[i], i);
  generation.Write(folder, vectors);
}

void WriteRight(const std::filesystem::path& folder) {
  WriteShape(folder, kShape.dim, kShape.metric);
}

const std::array<BadReload, 10>& BadReloads() {
  static const std::array<BadReload, 10> reloads{{
      {"another dimension", "SHAPE_CHANGE",
       [](const auto& folder) { WriteShape(folder, kShape.dim + 8, kShape.metric); }},
      {"another metric", "SHAPE_CHANGE",
       [](const auto& folder) { WriteShape(folder, kShape.dim, "cosine"); }},
      {"NaN", "INVALID_FILES",
       [](const auto& folder) {
         WriteVectors(folder, [](float value, std::size_t i) {
           return i == 5'000 ? std::numeric_limits<float>::quiet_NaN() : value;
         });
       }},
      {"a file cut short", "INVALID_FILES",
       [](const auto& folder) {
         WriteRight(folder);
         std::filesystem::resize_file(folder / kVectors,
                                      std::filesystem::file_size(folder / kVectors) / 2);
       }},
      {"a file cut while it is read", "FILES_CHANGED", WriteRight, FaultKind::kCut},
      {"a file that grows while it is read", "FILES_CHANGED", WriteRight, FaultKind::kGrow},
      {"a file replaced while it is read", "FILES_CHANGED",
       [](const auto& folder) {
         WriteRight(folder);
         std::filesystem::copy_file(folder / kVectors, folder / "content_vectors.npy.next",
                                    std::filesystem::copy_options::overwrite_existing);
       },
       FaultKind::kSwap},
      {"a file that the disk fails to read", "INVALID_FILES", WriteRight, FaultKind::kRead},
      {"vectors that are all equal", "ALL_SCORES_EQUAL",
       [](const auto& folder) {
         WriteVectors(folder,
                      [](float, std::size_t i) { return static_cast<float>(i % kShape.dim); });
       }},
      {"too little overlap", "OVERLAP_TOO_LOW", WriteRight, FaultKind::kNone, 0.5},
  }};
  return reloads;
}

class SwapsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig_.Begin());
    for (std::uint64_t i = 0; i < kGenerations; ++i) {
      const Generation generation(100 + i, kShape);
      generation.Write(rig_.root() / FolderOf(i));
      const std::string id = Reload(i);
      right_.Add(id, generation);
      ids_.push_back(id);
    }
  }

  static std::string FolderOf(std::size_t generation) {
    return fmt::format("generation-{}", generation);
  }

  // Returns the snapshot that is served then.
  std::string Reload(std::size_t generation) {
    v1::ReloadCollectionRequest request;
    request.set_collection("items");
    request.set_folder(FolderOf(generation));
    ChangeAnswer answer;
    const Outcome outcome = rig_.client().Reload(request, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return answer.collection.snapshot_id();
  }

  void RollBack(const std::string& expected) {
    ChangeAnswer answer;
    const Outcome outcome = rig_.client().Rollback("items", answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    EXPECT_EQ(answer.collection.snapshot_id(), expected);
  }

  void ReloadBad(const BadReload& bad) {
    const std::filesystem::path folder = rig_.root() / "bad";
    std::filesystem::remove_all(folder);
    bad.write(folder);
    v1::ReloadCollectionRequest request;
    request.set_collection("items");
    request.set_folder("bad");
    request.set_min_overlap(bad.min_overlap);
    // The second read of the vectors is the first after their header.
    rig_.faults().Arm(bad.fault, 2, kVectors);
    ChangeAnswer answer;
    const Outcome outcome = rig_.client().Reload(request, answer);
    EXPECT_EQ(rig_.faults().Disarm(), bad.fault != FaultKind::kNone) << bad.name;
    EXPECT_EQ(outcome.reason, bad.reason) << bad.name << ": " << testing::PrintToString(outcome);
  }

  v1::Collection Get() {
    v1::GetCollectionResponse response;
    EXPECT_TRUE(rig_.client().Get("items", response).ok());
    return response.collection();
  }

  FaultRig rig_;
  RightAnswers right_;
  std::vector<std::string> ids_;  // [kGenerations]
};

TEST_F(SwapsTest, NoCallFailsAndNoAnswerMixesSnapshots) {
  const std::size_t changes = conformance::Rotation::FromEnvironment().all() ? 1'000 : 100;
  const auto begin = std::chrono::steady_clock::now();
  Load load(rig_, right_);
  std::size_t served = kGenerations - 1;
  std::size_t former = kGenerations - 2;
  std::size_t refused = 0;
  std::size_t rolled_back = 0;
  for (std::size_t change = 0; change < changes && !HasFailure(); ++change) {
    if (change % 10 == 3) {
      ReloadBad(BadReloads()[refused++ % BadReloads().size()]);
    } else if (change % 10 == 6) {
      RollBack(ids_[former]);
      served = former;
      ++rolled_back;
    } else {
      former = served;
      served = (served + 1 + change % (kGenerations - 1)) % kGenerations;
      EXPECT_EQ(Reload(served), ids_[served]);
    }
    EXPECT_EQ(Get().snapshot_id(), ids_[served]) << "after change " << change;
  }
  load.End();
  EXPECT_TRUE(load.failures().empty())
      << load.failures().size() << ", the first: " << load.failures().front();
  EXPECT_GT(load.answers(), changes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%zu changes (%zu refused, %zu rolled back) in %.1f s; %llu answers, %zu failed or mixed\n",
      changes, refused, rolled_back, took.count(), static_cast<unsigned long long>(load.answers()),
      load.failures().size());
}

// Deadlines, queues and leases go by a clock that does not jump; what was loaded when is all that
// the other one is for.
TEST_F(SwapsTest, NoCallFailsWhenTheClockJumps) {
  using std::chrono::hours;
  constexpr std::uint64_t kAnswersBetween = 200;
  Load load(rig_, right_);
  std::size_t served = kGenerations - 1;
  for (const hours offset :
       {hours(1), hours(-1), hours(24 * 3'650), hours(-24 * 3'650), hours(0)}) {
    rig_.faults().SetWallClockOffset(offset);
    const std::uint64_t before = load.answers();
    served = (served + 1) % kGenerations;
    EXPECT_EQ(Reload(served), ids_[served]) << offset.count() << " hours";
    const v1::Collection collection = Get();
    EXPECT_EQ(collection.snapshot_id(), ids_[served]);
    const std::int64_t jumped = collection.loaded_at().seconds() - std::time(nullptr);
    EXPECT_NEAR(static_cast<double>(jumped), std::chrono::duration<double>(offset).count(), 600);
    while (load.answers() < before + kAnswersBetween && load.failure_count() == 0) {
      std::this_thread::yield();
    }
  }
  load.End();
  EXPECT_TRUE(load.failures().empty())
      << load.failures().size() << ", the first: " << load.failures().front();
}

}  // namespace
}  // namespace simile::faults
