#include "base/bounded_write.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"

namespace simile::base {
namespace {

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

}  // namespace
}  // namespace simile::base
