#include "app/readiness.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;

// A service manager: a datagram socket with a name in the file system, or an abstract one ("@...").
class FakeServiceManager {
 public:
  explicit FakeServiceManager(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), bytes), 0) << name;
  }

  // The next message; empty when there is none.
  std::string Next() const {
    char buffer[256];
    const ssize_t got = recv(fd_.get(), buffer, sizeof buffer, 0);
    return got < 0 ? "" : std::string(buffer, static_cast<std::size_t>(got));
  }

 private:
  const base::FileDescriptor fd_;
};

class ReadinessTest : public testing::Test {
 protected:
  std::string FileText() const {
    std::ifstream stream(file_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  bool FileExists() const { return std::filesystem::exists(file_); }
  // A path in the scratch folder that is short wherever that is: a socket's has 107 bytes at most.
  std::string SocketPath(const std::string& name) const {
    return "/proc/self/fd/" + std::to_string(folder_.get()) + "/" + name;
  }

  const ScratchFolder scratch_;
  const base::FileDescriptor folder_{
      open(scratch_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const std::filesystem::path file_ = scratch_.path() / "ready";
  std::ostringstream log_text_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kInfo, &log_text_}};
};

TEST_F(ReadinessTest, KeepsAFileFromAnnounceToWithdraw) {
  Readiness readiness(file_, "", log_);
  ASSERT_TRUE(readiness.RemoveStaleFile().ok()) << "no file is no stale file";
  ASSERT_TRUE(readiness.Announce("127.0.0.1:50051").ok());
  EXPECT_EQ(FileText(), "127.0.0.1:50051\n");
  readiness.Withdraw();
  EXPECT_FALSE(FileExists());
  readiness.Withdraw();
  EXPECT_EQ(log_text_.str(), "");
}

TEST_F(ReadinessTest, RemovesTheFileOfAnEarlierServer) {
  scratch_.Write("ready", "10.0.0.1:1");
  ASSERT_TRUE(Readiness(file_, "", log_).RemoveStaleFile().ok());
  EXPECT_FALSE(FileExists());
}

// A load may end on its thread after a signal has begun the stop on another.
TEST_F(ReadinessTest, AnnouncesNothingOnceWithdrawn) {
  const std::string name = SocketPath("notify");
  const FakeServiceManager manager(name);
  Readiness readiness(file_, name, log_);
  readiness.Withdraw();
  EXPECT_TRUE(readiness.Announce("127.0.0.1:50051").ok());
  EXPECT_FALSE(FileExists());
  EXPECT_EQ(manager.Next(), "STOPPING=1\nSTATUS=draining");
  EXPECT_EQ(manager.Next(), "");
}

TEST_F(ReadinessTest, NotifiesTheServiceManagerByEitherKindOfSocket) {
  for (const std::string& name :
       {SocketPath("notify"), "@simile-test-" + std::to_string(getpid())}) {
    const FakeServiceManager manager(name);
    Readiness readiness("", name, log_);
    ASSERT_TRUE(readiness.Announce("[::]:50051").ok());
    EXPECT_EQ(manager.Next(), "READY=1\nSTATUS=serving on [::]:50051");
    readiness.Withdraw();
    EXPECT_EQ(manager.Next(), "STOPPING=1\nSTATUS=draining");
  }
  EXPECT_EQ(log_text_.str(), "");
}

TEST_F(ReadinessTest, LogsWhatTheServiceManagerDoesNotTake) {
  Readiness missing("", SocketPath("nobody"), log_);
  EXPECT_TRUE(missing.Announce("127.0.0.1:50051").ok());
  EXPECT_THAT(log_text_.str(), HasSubstr("No such file or directory"));
  Readiness too_long("", std::string(200, 'x'), log_);
  EXPECT_TRUE(too_long.Announce("127.0.0.1:50051").ok());
  EXPECT_THAT(log_text_.str(), HasSubstr("File name too long"));
}

}  // namespace
}  // namespace simile::app
