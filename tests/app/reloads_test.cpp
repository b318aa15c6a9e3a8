#include "app/reloads.h"

#include <poll.h>

#include <new>
#include <semaphore>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/scarce_descriptors.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Waits for the end of the reload under way, if there is one.
void AwaitEnd(Reloads& reloads) {
  pollfd watched{reloads.done_fd(), POLLIN, 0};
  if (watched.fd < 0) return;
  ASSERT_EQ(poll(&watched, 1, -1), 1);
  reloads.Advance();
}

class ReloadsTest : public testing::Test {
 protected:
  void Reload() {
    reloads_.Request();
    reloads_.Advance();
    AwaitEnd(reloads_);
    EXPECT_EQ(reloads_.done_fd(), -1);
  }

  std::ostringstream lines_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kError, &lines_}};
  int runs_ = 0;
  bool fails_ = false;
  Reloads reloads_{[this] {
                     ++runs_;
                     if (fails_) throw std::bad_alloc();
                   },
                   log_};
};

TEST_F(ReloadsTest, RunsOnceForEachRequest) {
  reloads_.Advance();
  EXPECT_EQ(reloads_.done_fd(), -1);
  Reload();
  Reload();
  EXPECT_EQ(runs_, 2);
  EXPECT_THAT(lines_.str(), IsEmpty());
}

TEST_F(ReloadsTest, ReloadsOnceMoreAfterRequestsDuringAReload) {
  std::counting_semaphore<> began(0);
  std::counting_semaphore<> may_end(0);
  int runs = 0;
  Reloads reloads(
      [&] {
        ++runs;
        began.release();
        may_end.acquire();
      },
      log_);
  reloads.Request();
  reloads.Advance();
  began.acquire();
  for (int i = 0; i < 2; ++i) {
    reloads.Request();
    reloads.Advance();
  }
  EXPECT_EQ(runs, 1);
  may_end.release(2);
  AwaitEnd(reloads);
  EXPECT_GE(reloads.done_fd(), 0);
  AwaitEnd(reloads);
  EXPECT_EQ(reloads.done_fd(), -1);
  EXPECT_EQ(runs, 2);
}

TEST_F(ReloadsTest, EndsOnlyTheReloadThatFindsNoMemory) {
  fails_ = true;
  Reload();
  EXPECT_THAT(lines_.str(), HasSubstr("the reload on SIGHUP did not finish"));
  fails_ = false;
  Reload();
  EXPECT_EQ(runs_, 2);
}

TEST_F(ReloadsTest, EndsOnlyTheReloadThatCannotBegin) {
  {
    const net::ScarceDescriptors none_left;
    Reload();
  }
  EXPECT_EQ(runs_, 0);
  EXPECT_THAT(lines_.str(), HasSubstr("Too many open files"));
  Reload();
  EXPECT_EQ(runs_, 1);
}

}  // namespace
}  // namespace simile::app
