#include "observe/failure_lines.h"

#include <chrono>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/fake_clock.h"

namespace simile::observe {
namespace {

using base::ErrorReason;
using ::testing::ContainsRegex;

class FailureLinesTest : public testing::Test {
 protected:
  // How many of so many calls that fail now get a line.
  std::uint64_t Admitted(int calls, ErrorReason reason) {
    std::uint64_t admitted = 0;
    for (int call = 0; call < calls; ++call) admitted += lines_.Admits(reason) ? 1 : 0;
    return admitted;
  }
  // What a report logs.
  std::string Report() {
    written_.str("");
    lines_.ReportLeftOut();
    return written_.str();
  }

  engine::FakeClock clock_;
  std::ostringstream written_;
  const Logger log_{{LogFormat::kText, LogLevel::kInfo, &written_}};
  FailureLines lines_{log_, clock_};
};

TEST_F(FailureLinesTest, AdmitsAFewOfEachReasonInASecond) {
  EXPECT_EQ(Admitted(1'000, ErrorReason::kInvalidField), FailureLines::kLinesPerSecond);
  EXPECT_EQ(Admitted(1'000, ErrorReason::kQueueFull), FailureLines::kLinesPerSecond);
  clock_.Advance(std::chrono::milliseconds(999));
  EXPECT_EQ(Admitted(1, ErrorReason::kInvalidField), 0U);
  clock_.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(Admitted(1'000, ErrorReason::kInvalidField), FailureLines::kLinesPerSecond);
}

TEST_F(FailureLinesTest, AdmitsAllWhereFewFail) {
  for (int second = 0; second < 5; ++second) {
    EXPECT_EQ(Admitted(3, ErrorReason::kItemNotFound), 3U);
    clock_.Advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(Report(), "");
}

TEST_F(FailureLinesTest, ReportsWhatWasLeftOutOnceInALineForEachReason) {
  Admitted(30, ErrorReason::kInvalidField);
  Admitted(1'000, ErrorReason::kInternal);
  Admitted(5, ErrorReason::kQueueFull);
  const std::string report = Report();
  EXPECT_THAT(report, ContainsRegex("^[^\n]* warning more requests failed, without a line each "
                                    "reason=INVALID_FIELD requests=20\n[^\n]* reason=INTERNAL "
                                    "requests=990\n$"));
  EXPECT_EQ(Report(), "");
}

}  // namespace
}  // namespace simile::observe
