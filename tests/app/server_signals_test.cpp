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

namespace simile::app {
namespace {

using Kind = ServerSignals::Kind;

// A terminal whose shell, the leader of its session, has started a server.
class ServerInTerminalTest : public testing::Test {
 protected:
  //   on_hang_up  what the shell does when its terminal is closed
  void Start(const std::function<void(pid_t server)>& on_hang_up) {
    terminal_ = base::FileDescriptor(posix_openpt(O_RDWR | O_NOCTTY));
    ASSERT_EQ(grantpt(terminal_.get()), 0);
    ASSERT_EQ(unlockpt(terminal_.get()), 0);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    from_server_ = base::FileDescriptor(ends[0]);
    const base::FileDescriptor to_test(ends[1]);
    shell_ = fork();
    if (shell_ == 0) RunShell(to_test.get(), on_hang_up);
    ASSERT_EQ(read(from_server_.get(), &server_, sizeof server_), ssize_t{sizeof server_});
  }
  void CloseTerminal() { terminal_ = {}; }
  void SendHangUp() const { ASSERT_EQ(kill(server_, SIGHUP), 0); }
  // What the server took the signal for.
  std::optional<Kind> Await() {
    Kind kind{};
    const bool was_sent = read(from_server_.get(), &kind, sizeof kind) == ssize_t{sizeof kind};
    kill(shell_, SIGKILL);
    waitpid(shell_, nullptr, 0);
    return was_sent ? std::optional(kind) : std::nullopt;
  }

 private:
  [[noreturn]] void RunShell(int to_test, const std::function<void(pid_t server)>& on_hang_up) {
    sigset_t hang_up;
    sigemptyset(&hang_up);
    sigaddset(&hang_up, SIGHUP);
    sigprocmask(SIG_BLOCK, &hang_up, nullptr);
    setsid();
    const int own = open(ptsname(terminal_.get()), O_RDWR);  // and so the session's
    terminal_ = {};
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

  base::FileDescriptor terminal_;
  base::FileDescriptor from_server_;
  pid_t shell_ = 0;
  pid_t server_ = 0;
};

TEST_F(ServerInTerminalTest, ReloadsWhenItIsAskedTo) {
  Start([](pid_t /*server*/) {});
  SendHangUp();
  EXPECT_EQ(Await(), Kind::kReload);
}

TEST_F(ServerInTerminalTest, ReloadsWhenItIsAskedToAfterItsTerminalWasClosed) {
  Start([](pid_t /*server*/) {});
  CloseTerminal();
  SendHangUp();
  EXPECT_EQ(Await(), Kind::kReload);
}

TEST_F(ServerInTerminalTest, StopsWhenItsShellPassesOnThatTheTerminalWasClosed) {
  Start([](pid_t server) { kill(server, SIGHUP); });
  CloseTerminal();
  EXPECT_EQ(Await(), Kind::kStop);
}

TEST_F(ServerInTerminalTest, StopsWhenItsShellEndsWithTheTerminal) {
  Start([](pid_t /*server*/) { _exit(0); });
  CloseTerminal();
  EXPECT_EQ(Await(), Kind::kStop);
}

}  // namespace
}  // namespace simile::app
