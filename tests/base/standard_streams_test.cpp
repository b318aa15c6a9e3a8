#include "base/standard_streams.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <initializer_list>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

// Whether the check is true in a process whose given standard streams were closed at its start.
bool HoldsWithout(std::initializer_list<int> closed, const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int fd : closed) close(fd);
    OpenClosedStandardStreams();
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool FirstFreeNumberIsOver2() { return open("/dev/null", O_RDONLY | O_CLOEXEC) > STDERR_FILENO; }

TEST(StandardStreamsTest, TakesTheNumbersOfClosedStreams) {
  EXPECT_TRUE(HoldsWithout({0}, FirstFreeNumberIsOver2));
  EXPECT_TRUE(HoldsWithout({1}, FirstFreeNumberIsOver2));
  EXPECT_TRUE(HoldsWithout({2}, FirstFreeNumberIsOver2));
  EXPECT_TRUE(HoldsWithout({0, 2}, FirstFreeNumberIsOver2));
  EXPECT_TRUE(HoldsWithout({0, 1, 2}, FirstFreeNumberIsOver2));
}

TEST(StandardStreamsTest, ReadingAndWritingFailAsBeforeButMessagesAreDropped) {
  EXPECT_TRUE(HoldsWithout({0, 1, 2}, [] {
    char byte = 0;
    return read(STDIN_FILENO, &byte, 1) < 0 && errno == EBADF;
  }));
  EXPECT_TRUE(HoldsWithout({0, 1, 2},
                           [] { return write(STDOUT_FILENO, "text", 4) < 0 && errno == EBADF; }));
  EXPECT_TRUE(HoldsWithout({0, 1, 2}, [] { return write(STDERR_FILENO, "text", 4) == 4; }));
}

TEST(StandardStreamsTest, LeavesOpenStreamsAlone) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  EXPECT_TRUE(HoldsWithout({0, 2}, [&] {
    return dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO &&
           (OpenClosedStandardStreams(), write(STDOUT_FILENO, "x", 1) == 1);
  }));
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace simile::base
