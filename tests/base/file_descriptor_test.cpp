#include "base/file_descriptor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

int OpenNothing() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(FileDescriptorTest, OwnsNothingWhenNew) {
  FileDescriptor none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(FileDescriptor(-1).valid());
  none.Close();
  EXPECT_EQ(none.Release(), -1);
}

TEST(FileDescriptorTest, ClosesItsDescriptorAndKeepsErrno) {
  const int fd = OpenNothing();
  {
    const FileDescriptor owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(IsOpen(fd));
    errno = ENOENT;
  }
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptorTest, DoesNotCloseAReleasedDescriptor) {
  const int fd = OpenNothing();
  FileDescriptor owner(fd);
  EXPECT_EQ(owner.Release(), fd);
  EXPECT_FALSE(owner.valid());
  owner.Close();
  EXPECT_TRUE(IsOpen(fd));
  FileDescriptor again(fd);
  again.Close();
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptorTest, ClosesTheTargetsDescriptorWhenMoved) {
  const int first = OpenNothing();
  const int second = OpenNothing();
  FileDescriptor from(first);
  FileDescriptor to(second);
  to = std::move(from);
  EXPECT_EQ(to.get(), first);
  EXPECT_TRUE(IsOpen(first));
  EXPECT_FALSE(IsOpen(second));
  const FileDescriptor last(std::move(to));
  EXPECT_EQ(last.get(), first);
}

TEST(FileDescriptorTest, KeepsItsDescriptorWhenAssignedToItself) {
  FileDescriptor owner(OpenNothing());
  FileDescriptor& same = owner;
  owner = std::move(same);
  EXPECT_TRUE(IsOpen(owner.get()));
}

using std::chrono::milliseconds;
using std::chrono::minutes;

class BoundedWriteTest : public testing::Test {
 protected:
  BoundedWriteTest() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader_ = FileDescriptor(ends[0]);
    writer_ = FileDescriptor(ends[1]);
  }
  std::string Read(std::size_t bytes_max) const {
    std::string text(bytes_max, ' ');
    const ssize_t count = read(reader_.get(), text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
  }

  FileDescriptor reader_;
  FileDescriptor writer_;
};

TEST_F(BoundedWriteTest, WritesWhatAPipeTakes) {
  const BoundedWrite result = WriteWithin(writer_.get(), "one\ntwo\n", minutes(1));
  EXPECT_EQ(result.written_bytes, 8U);
  EXPECT_FALSE(result.failed);
  EXPECT_EQ(Read(100), "one\ntwo\n");
}

TEST_F(BoundedWriteTest, StopsAtAFullPipeAfterAWholeLine) {
  const std::string line = std::string(999, 'x') + "\n";
  std::string text;
  while (text.size() < 1U << 20) text += line;
  const BoundedWrite full = WriteWithin(writer_.get(), text, milliseconds(0));
  EXPECT_GT(full.written_bytes, 0U);
  EXPECT_LT(full.written_bytes, text.size());
  EXPECT_EQ(full.written_bytes % line.size(), 0U);
  EXPECT_FALSE(full.failed);
  EXPECT_EQ(WriteWithin(writer_.get(), line, milliseconds(1)).written_bytes, 0U);
  Read(PIPE_BUF);
  EXPECT_EQ(WriteWithin(writer_.get(), line, minutes(1)).written_bytes, line.size());
}

TEST_F(BoundedWriteTest, WritesALineLongerThanAPipeTakesAtOnce) {
  const std::string line = std::string(3 * PIPE_BUF, 'x') + "\n";
  EXPECT_EQ(WriteWithin(writer_.get(), line, minutes(1)).written_bytes, line.size());
}

TEST_F(BoundedWriteTest, FailsWhereNothingIsTakenAnyMore) {
  std::signal(SIGPIPE, SIG_IGN);
  reader_.Close();
  EXPECT_TRUE(WriteWithin(writer_.get(), "text", minutes(1)).failed);
  const FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_TRUE(WriteWithin(full.get(), "text", minutes(1)).failed);
}

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
