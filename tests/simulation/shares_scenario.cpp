#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/queue/executor.h"
#include "simulation/outside_world.h"
#include "simulation/sample_contents.h"
#include "simulation/scenarios.h"

namespace simile::simulation {
namespace {

// Lanes and collections that all have more work than the device can do: each gets its share.
class Shares {
 public:
  explicit Shares(Simulator& simulator) : simulator_(simulator), random_(simulator.random()) {}

  void Run() {
    // What passes while a thread that could run does not would be charged to what runs.
    simulator_.ForbidTimeSlips();
    Start();
    std::vector<Thread> threads;
    for (std::size_t i = 0; i < kClasses; ++i) {
      for (int caller = 0; caller < kCallers; ++caller) {
        threads.emplace_back([this, i] { MakeCalls(classes_[i]); });
      }
    }
    for (Thread& thread : threads) thread.join();
    executor_->Stop();
  }

 private:
  using Milliseconds = engine::Milliseconds;
  static constexpr std::size_t kClasses = 4;
  static constexpr int kCallers = 6;
  static constexpr double kTotalMs = 900;
  static constexpr std::size_t kFirst = 0, kSecond = 1, kHard = 2, kBulk = 3;

  // The calls of one lane and collection.
  struct Class {
    engine::SnapshotPtr snapshot;
    Clock::TimePoint begins;
    double search_ms = 0;
    std::size_t pieces = 1;  // of a plain search
    double device_ms = 0;    // that it has had
    int waiting = 0;         // calls without an answer
    // When it last began to have work: what all had had by then, and it.
    double since_ms = 0;
    double before_ms = 0;
  };

  void Start() {
    starts_ = random_.OneIn(2);
    for (std::size_t i = 0; i < kClasses; ++i) {
      Class& of = classes_[i];
      of.search_ms = 2 + 0.001 * static_cast<double>(random_.Below(6'000));
      if (i != kHard && random_.OneIn(2)) {
        of.search_ms *= 8;
        of.pieces = 31;
      }
      of.begins = simulator_.now();
      Searches searches;
      searches.pieces = of.pieces;
      searches.start = starts_ && of.pieces == 1;  // a device does not pause one
      of.snapshot = std::make_shared<const engine::Snapshot>(MakeGeneration(
          i, [this, &of] { Search(of); }, nullptr, searches));
    }
    if (random_.OneIn(2)) {
      classes_[kSecond].begins += std::chrono::milliseconds(random_.Between(100, 300));
    }
    ends_ = simulator_.now() + std::chrono::duration_cast<Clock::Duration>(Milliseconds(kTotalMs));
    engine::Executor::Options options;
    options.batch_queries_max = static_cast<std::uint32_t>(random_.Between(1, 2));
    executor_.emplace(options, ServedBy{{"cpu", "scan-fake", "a test"}, "a test"}, clock_,
                      engine::Executor::Observer());
  }

  void MakeCalls(Class& of) {
    const bool hard = &of == &classes_[kHard];
    simulator_.Sleep(of.begins - simulator_.now());
    while (simulator_.now() < ends_) {
      auto task = MakeTask(of.snapshot, random_.Below(kQueries), 1, hard);
      if (&of == &classes_[kBulk]) task->priority = engine::Priority::kBulk;
      task->arrived_at = simulator_.now();
      task->deadline = Clock::TimePoint::max();
      Event answered;
      task->done = [&](const absl::StatusOr<engine::SearchAnswer>& answer) {
        --of.waiting;
        if (!answer.ok()) simulator_.Fail("a call fails: " + answer.status().ToString());
        answered.Set();
      };
      ++of.waiting;
      if (const absl::Status status = executor_->Submit(std::move(task)); !status.ok()) {
        simulator_.Fail("a call is refused: " + status.ToString());
      }
      answered.Await();
    }
  }

  void Search(Class& of) {
    const Clock::TimePoint began = simulator_.now();
    simulator_.Sleep(std::chrono::duration_cast<Clock::Duration>(Milliseconds(PieceMs(of))));
    const double ms = Milliseconds(simulator_.now() - began).count();
    of.device_ms += ms;
    all_ms_ += ms;
    CheckShare(classes_[kHard], 0.2);
    CheckShare(classes_[kBulk], 0.05);
    CheckCollections();
  }

  // One for each piece, and one before it computes.
  static double PieceMs(const Class& of) {
    return of.pieces == 1 ? of.search_ms : of.search_ms / static_cast<double>(of.pieces + 1);
  }
  // The last piece of a paused search computes, too: for as long again.
  static double LongestPieceMs(const Class& of) {
    return of.pieces == 1 ? of.search_ms : 2 * PieceMs(of);
  }

  // Some waits beside the passes under way, of at most two calls each.
  bool HasWork(const Class& of) const { return of.waiting > (starts_ ? 4 : 2); }

  // Hard work has 24 parts of 100 and bulk work 6. Either may be behind by what the lanes above may
  // be ahead, a slice each, and by a search of its own.
  void CheckShare(Class& of, double share) {
    if (!HasWork(of)) {
      of.since_ms = all_ms_;
      of.before_ms = of.device_ms;
      return;
    }
    const double all_ms = all_ms_ - of.since_ms;
    const double own_ms = of.device_ms - of.before_ms;
    if (own_ms < share * all_ms - 2 * engine::kSliceMs - LongestPieceMs(of)) {
      simulator_.Fail(fmt::format("{} work has had {:.0f} ms of {:.0f}",
                                  &of == &classes_[kHard] ? "hard" : "bulk", own_ms, all_ms));
    }
  }

  // Two collections of a lane, both with work, are never further apart than a slice of each, and a
  // pass of each where two are under way at once.
  void CheckCollections() {
    const double ahead_ms = classes_[kFirst].device_ms - classes_[kSecond].device_ms;
    if (!HasWork(classes_[kFirst]) || !HasWork(classes_[kSecond])) {
      least_ahead_ms_ = most_ahead_ms_ = ahead_ms;
      return;
    }
    least_ahead_ms_ = std::min(least_ahead_ms_, ahead_ms);
    most_ahead_ms_ = std::max(most_ahead_ms_, ahead_ms);
    const double pieces_ms = LongestPieceMs(classes_[kFirst]) + LongestPieceMs(classes_[kSecond]);
    const double slices_ms = 2 * engine::kSliceMs + (starts_ ? 2 : 1) * pieces_ms;
    if (most_ahead_ms_ - least_ahead_ms_ > slices_ms) {
      simulator_.Fail(fmt::format("one collection has had {:.0f} ms more than another of its lane",
                                  most_ahead_ms_ - least_ahead_ms_));
    }
  }

  Simulator& simulator_;
  Random& random_;
  const SimulatedClock clock_;
  std::array<Class, kClasses> classes_;
  Clock::TimePoint ends_;
  bool starts_ = false;  // searches run without a thread
  double all_ms_ = 0;
  double least_ahead_ms_ = 0;  // of the first collection, while both have work
  double most_ahead_ms_ = 0;
  std::optional<engine::Executor> executor_;
};

}  // namespace

void RunShares(Simulator& simulator) { Shares(simulator).Run(); }

}  // namespace simile::simulation
