// As faults_test.cpp, for the start and the stop of a server: it starts or says why not and exits
// with 1; it stops with 0 whatever fails. And it is killed at one call after the other that reads
// or writes a file: the next one starts.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "faults/fault_rig.h"

namespace simile::faults {
namespace {

constexpr std::uint64_t kStepOfStarts = 397;
constexpr int kKilled = 128 + SIGKILL;

class StartAndStopTest : public testing::Test {
 protected:
  // Of a server that writes each file that one can write.
  FaultRig::Start Writing() const {
    return {.arguments = {"--port-file", (rig_.root() / "port").string(), "--ready-file",
                          (rig_.root() / "ready").string()}};
  }

  void FailAt(const FaultCase& the_case) {
    ADD_FAILURE() << the_case.text() << ", where this failed:\n" << rig_.faults().Where();
  }

  FaultRig rig_;
};

TEST_F(StartAndStopTest, StartsOrSaysWhyNot) {
  FaultNumbers numbers("start", kStepOfStarts);
  for (const FaultKind kind :
       {FaultKind::kMemory, FaultKind::kRead, FaultKind::kShortRead, FaultKind::kOpen,
        FaultKind::kWrite, FaultKind::kSync, FaultKind::kRename, FaultKind::kThread}) {
    numbers.ForEach(kind, [&](const FaultCase& the_case) {
      const int failures = FailureCount();
      rig_.faults().Arm(kind, the_case.number);
      const bool began = rig_.Begin(Writing());
      const bool failed = rig_.faults().Disarm();
      EXPECT_TRUE(began || failed);
      if (began) {
        // Not at once when it was the connection for which there was no memory.
        if (!rig_.Serves("one")) {
          rig_.Connect();
          EXPECT_TRUE(rig_.Serves("one"));
        }
        numbers.Count("served");
      } else {
        const int status = rig_.AwaitExit();
        EXPECT_EQ(status, 1);
        EXPECT_FALSE(rig_.server().output().empty());
        numbers.Count("exited with a message");
      }
      if (FailureCount() != failures) {
        FailAt(the_case);
        ADD_FAILURE() << rig_.server().output();
      }
      return failed;
    });
  }
}

TEST_F(StartAndStopTest, StopsWhateverFails) {
  FaultNumbers numbers("stop", 5);
  for (const FaultKind kind : {FaultKind::kMemory, FaultKind::kThread}) {
    numbers.ForEach(kind, [&](const FaultCase& the_case) {
      const int failures = FailureCount();
      EXPECT_TRUE(rig_.Begin(Writing()));
      EXPECT_TRUE(rig_.Serves("one"));
      rig_.faults().Arm(kind, the_case.number);
      rig_.server().Signal(SIGTERM);
      const int status = rig_.AwaitExit();
      const bool failed = rig_.faults().Disarm();
      EXPECT_EQ(status, 0) << rig_.server().output();
      EXPECT_FALSE(std::filesystem::exists(rig_.root() / "ready"));
      numbers.Count(fmt::format("exited with {}", status));
      if (FailureCount() != failures) FailAt(the_case);
      return failed;
    });
  }
}

TEST_F(StartAndStopTest, StartsAfterAKillWhileItStarts) {
  const std::string cache = (rig_.root() / "cache.json").string();
  FaultRig::Start start = Writing();
  start.variables = {"SIMILE_BACKEND_TUNING=auto", "SIMILE_BACKEND_TUNING_CACHE=" + cache};
  FaultNumbers numbers("start", 11);
  for (const FaultKind kind : {FaultKind::kKillAtRead, FaultKind::kKillAtWrite,
                               FaultKind::kKillAtSync, FaultKind::kKillAtRename}) {
    numbers.ForEach(kind, [&](const FaultCase& the_case) {
      const int failures = FailureCount();
      std::filesystem::remove(cache);  // so that it is measured and written again
      rig_.faults().Arm(kind, the_case.number);
      const bool began = rig_.Begin(start);
      const bool killed = rig_.faults().Disarm();
      EXPECT_NE(began, killed);
      if (killed) {
        EXPECT_EQ(rig_.AwaitExit(), kKilled);
      }
      // The calibration that was cut short may be there, whole, or not.
      EXPECT_TRUE(rig_.Begin(start)) << rig_.server().output();
      EXPECT_TRUE(rig_.Serves("one"));
      EXPECT_EQ(rig_.server().output().find("cpu-tuning"), std::string::npos);
      numbers.Count(killed ? "killed and served again" : "served");
      if (FailureCount() != failures) FailAt(the_case);
      return killed;
    });
  }
}

TEST_F(StartAndStopTest, StartsAfterAKillWhileItReloads) {
  FaultNumbers numbers("reload", 7);
  numbers.ForEach(FaultKind::kKillAtRead, [&](const FaultCase& the_case) {
    const int failures = FailureCount();
    EXPECT_TRUE(rig_.Begin(Writing()));
    rig_.faults().Arm(FaultKind::kKillAtRead, the_case.number, ".npy");
    v1::ReloadCollectionRequest request;
    request.set_collection("items");
    request.set_folder("two");
    integration::ChangeAnswer answer;
    const integration::Outcome outcome = rig_.client().Reload(request, answer);
    const bool killed = rig_.faults().Disarm();
    EXPECT_EQ(outcome.ok(), !killed);
    if (killed) {
      EXPECT_EQ(rig_.AwaitExit(), kKilled);
    }
    EXPECT_TRUE(rig_.Begin(Writing())) << rig_.server().output();
    EXPECT_TRUE(rig_.Serves("one"));
    numbers.Count(killed ? "killed and served again" : "reloaded");
    if (FailureCount() != failures) FailAt(the_case);
    return killed;
  });
}

}  // namespace
}  // namespace simile::faults
