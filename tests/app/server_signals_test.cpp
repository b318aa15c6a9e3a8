#include "app/server_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "base/signal_process.h"
#include "base/terminal_pair.h"

namespace simile::app {
namespace {

using Kind = ServerSignals::Kind;

// A terminal whose shell, the leader of its session, has started a server.
class ServerInTerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!terminal_.exists()) GTEST_SKIP() << base::TerminalPair::kMissing;
  }
  void TearDown() override { EndShell(); }

  //   on_hang_up  what the shell does when its terminal is closed
  void Start(const std::function<void(pid_t server)>& on_hang_up) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    from_server_ = base::FileDescriptor(ends[0]);
    const base::FileDescriptor to_test(ends[1]);
    shell_ = fork();
    ASSERT_GE(shell_, 0);
    if (shell_ == 0) RunShell(to_test.get(), on_hang_up);
    ASSERT_EQ(read(from_server_.get(), &server_, sizeof server_), ssize_t{sizeof server_});
  }
  void CloseTerminal() { terminal_.Close(); }
  void SendHangUp() const { EXPECT_TRUE(base::SignalProcess(server_, SIGHUP)); }
  // What the server took the signal for.
  std::optional<Kind> Await() {
    Kind kind{};
    const bool was_sent = read(from_server_.get(), &kind, sizeof kind) == ssize_t{sizeof kind};
    EndShell();
    return was_sent ? std::optional(kind) : std::nullopt;
  }

 private:
  void EndShell() {
    if (shell_ <= 0) return;
    EXPECT_TRUE(base::SignalProcess(shell_, SIGKILL));
    EXPECT_EQ(waitpid(shell_, nullptr, 0), shell_);
    shell_ = -1;
  }
  [[noreturn]] void RunShell(int to_test, const std::function<void(pid_t server)>& on_hang_up) {
    sigset_t hang_up;
    sigemptyset(&hang_up);
    sigaddset(&hang_up, SIGHUP);
    sigprocmask(SIG_BLOCK, &hang_up, nullptr);
    setsid();
    const int own = open(terminal_.name().c_str(), O_RDWR);  // and so the session's
    terminal_.Close();
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(own, fd);
    close(own);
    const pid_t server = fork();
    if (server == 0) RunServer(to_test);
    close(to_test);
    int signal = 0;
    sigwait(&hang_up, &signal);
    on_hang_up(server);
    for (;;) pause();
  }
  [[noreturn]] static void RunServer(int to_test) {
    ServerSignals signals(false);
    const pid_t own = getpid();
    if (write(to_test, &own, sizeof own) != ssize_t{sizeof own}) std::abort();
    pollfd watched{signals.fd(), POLLIN, 0};
    poll(&watched, 1, -1);
    const Kind kind = signals.Next()->kind;
    if (write(to_test, &kind, sizeof kind) != ssize_t{sizeof kind}) std::abort();
    _exit(0);
  }

  base::TerminalPair terminal_;
  base::FileDescriptor from_server_;
  pid_t shell_ = -1;
  pid_t server_ = -1;
};

TEST_F(ServerInTerminalTest, ReloadsWhenItIsAskedTo) {
  ASSERT_NO_FATAL_FAILURE(Start([](pid_t /*server*/) {}));
  SendHangUp();
  EXPECT_EQ(Await(), Kind::kReload);
}

TEST_F(ServerInTerminalTest, ReloadsWhenItIsAskedToAfterItsTerminalWasClosed) {
  ASSERT_NO_FATAL_FAILURE(Start([](pid_t /*server*/) {}));
  CloseTerminal();
  SendHangUp();
  EXPECT_EQ(Await(), Kind::kReload);
}

TEST_F(ServerInTerminalTest, StopsWhenItsShellPassesOnThatTheTerminalWasClosed) {
  ASSERT_NO_FATAL_FAILURE(
      Start([](pid_t server) { static_cast<void>(base::SignalProcess(server, SIGHUP)); }));
  CloseTerminal();
  EXPECT_EQ(Await(), Kind::kStop);
}

TEST_F(ServerInTerminalTest, StopsWhenItsShellEndsWithTheTerminal) {
  ASSERT_NO_FATAL_FAILURE(Start([](pid_t /*server*/) { _exit(0); }));
  CloseTerminal();
  EXPECT_EQ(Await(), Kind::kStop);
}

}  // namespace
}  // namespace simile::app
