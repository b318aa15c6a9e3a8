#include "observe/line_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"

namespace simile::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::EndsWith;
using ::testing::StartsWith;

// A pipe, and a writer into it that keeps little.
class LineWriterTest : public testing::Test {
 protected:
  static constexpr int kPipeBytes = 4'096;
  static constexpr std::size_t kWaitingBytesMax = 10'000;

  LineWriterTest() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader_ = base::FileDescriptor(ends[0]);
    writer_end_ = base::FileDescriptor(ends[1]);
    EXPECT_EQ(fcntl(writer_end_.get(), F_SETPIPE_SZ, kPipeBytes), kPipeBytes);
    LineWriter::Options options;
    options.fd = writer_end_.get();
    options.waiting_bytes_max = kWaitingBytesMax;
    options.dropped_line = [](std::uint64_t count) { return fmt::format("dropped {}\n", count); };
    options.end_wait = milliseconds(0);
    writer_.emplace(std::move(options));
  }

  // Adds numbered lines until the pipe is full and 100 lines were dropped. Returns how many.
  std::uint64_t AddUntilDropped() {
    std::uint64_t count = 0;
    for (; writer_->lines_dropped() < 100; ++count) writer_->Add(fmt::format("line {}\n", count));
    return count;
  }
  // Reads until the text ends so.
  std::string ReadUntil(const std::string& end) const {
    std::string text;
    std::array<char, 4096> bytes;
    while (!text.ends_with(end)) {
      const ssize_t count = read(reader_.get(), bytes.data(), bytes.size());
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  // Reads the lines from `line 0` on until so many were read or reported as dropped, each report in
  // the place of the lines that it reports. Returns how many were dropped.
  std::uint64_t ReadAll(std::uint64_t count) const {
    std::uint64_t next = 0;
    std::uint64_t dropped = 0;
    std::string rest;
    while (next < count) {
      rest += ReadUntil("\n");
      for (std::size_t end = 0; (end = rest.find('\n')) != std::string::npos;) {
        unsigned long long number = 0;
        if (std::sscanf(rest.c_str(), "dropped %llu", &number) == 1) {
          dropped += number;
          next += number;
        } else {
          EXPECT_EQ(rest.substr(0, end), fmt::format("line {}", next));
          ++next;
        }
        rest.erase(0, end + 1);
      }
    }
    EXPECT_EQ(next, count);
    return dropped;
  }

  base::FileDescriptor reader_;
  base::FileDescriptor writer_end_;
  std::optional<LineWriter> writer_;
};

TEST_F(LineWriterTest, WritesLinesInTheirOrder) {
  std::string expected;
  for (int line = 0; line < 100; ++line) {
    const std::string text = fmt::format("line {}\n", line);
    writer_->Add(text);
    expected += text;
  }
  EXPECT_EQ(ReadUntil("line 99\n"), expected);
  EXPECT_TRUE(writer_->Flush(minutes(1)));
  EXPECT_EQ(writer_->lines_dropped(), 0U);
}

TEST_F(LineWriterTest, DropsLinesThatNobodyReadsAndSaysHowMany) {
  const std::uint64_t added = AddUntilDropped();
  EXPECT_FALSE(writer_->Flush(milliseconds(0)));
  EXPECT_EQ(ReadAll(added), 100U);
  EXPECT_TRUE(writer_->Flush(minutes(1)));
  writer_->Add("after\n");
  EXPECT_EQ(ReadUntil("after\n"), "after\n");
  EXPECT_EQ(writer_->lines_dropped(), 100U);
}

TEST_F(LineWriterTest, SaysThatALineWasLostThoughNoneFollows) {
  writer_->Add(std::string(kWaitingBytesMax + 1, 'x'));
  EXPECT_EQ(ReadUntil("\n"), "dropped 1\n");
  writer_->CountLost();
  EXPECT_EQ(ReadUntil("\n"), "dropped 1\n");
  EXPECT_EQ(writer_->lines_dropped(), 2U);
}

TEST_F(LineWriterTest, EndsWhileNobodyReads) {
  writer_->Add("read later\n");
  EXPECT_TRUE(writer_->Flush(minutes(1)));
  AddUntilDropped();
  writer_.reset();
  writer_end_.Close();
  EXPECT_THAT(ReadUntil("never"), StartsWith("read later\n"));
}

TEST_F(LineWriterTest, CountsTheLinesThatABrokenPipeTakesNoMore) {
  std::signal(SIGPIPE, SIG_IGN);
  reader_.Close();
  writer_->Add("one\n");
  writer_->Add("two\n");
  EXPECT_TRUE(writer_->Flush(minutes(1)));
  EXPECT_EQ(writer_->lines_dropped(), 2U);
}

TEST_F(LineWriterTest, WaitsForAnUrgentLine) {
  // In a pipe that takes it; one wait is all that another costs.
  writer_->AddUrgent("urgent\n");
  writer_->Add("more\n");
  EXPECT_THAT(ReadUntil("more\n"), EndsWith("urgent\nmore\n"));
  AddUntilDropped();
  for (int line = 0; line < 10'000; ++line) writer_->AddUrgent("urgent\n");
}

TEST_F(LineWriterTest, KeepsTheLinesOfSeveralThreadsWhole) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int line = 0; line < 500; ++line) {
        writer_->Add(fmt::format("thread {} line {}\n", thread, line));
      }
    });
  }
  std::string text;
  std::thread reader([&] { text = ReadUntil("end\n"); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(writer_->Flush(minutes(1)));
  writer_->Add("end\n");
  reader.join();
  std::array<int, 4> next{};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line == "end" || line.starts_with("dropped")) continue;
    int thread = 0;
    int number = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "thread %d line %d", &thread, &number), 2) << line;
    EXPECT_GE(number, next[static_cast<std::size_t>(thread)]) << line;
    next[static_cast<std::size_t>(thread)] = number + 1;
  }
}

}  // namespace
}  // namespace simile::observe
