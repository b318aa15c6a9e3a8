#include "cli/top/live_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace simile::cli::top {
namespace {

// Control sequences that xterm and all that follow it understand.
constexpr const char* kEnterScreen = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr const char* kLeaveScreen = "\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kEraseLine = "\x1b[K";
constexpr const char* kEraseBelow = "\x1b[J";

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

LiveScreen::LiveScreen() {
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = base::FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

LiveScreen::~LiveScreen() {
  Leave();
  const sigset_t signals = HandledSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void LiveScreen::Enter() {
  if (active_) return;
  termios mode{};
  if (tcgetattr(STDIN_FILENO, &mode) == 0) {
    former_mode_ = mode;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  base::WriteAll(STDOUT_FILENO, kEnterScreen);
  active_ = true;
}

void LiveScreen::Leave() {
  if (!active_) return;
  base::WriteAll(STDOUT_FILENO, kLeaveScreen);
  // Keys that nobody read are not for the shell.
  if (former_mode_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &*former_mode_);
  former_mode_.reset();
  active_ = false;
}

void LiveScreen::Draw(const std::string& text) {
  Enter();
  std::string picture = kHome;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    if (from > 0) picture += "\r\n";  // none after the last line, which would scroll the screen
    picture.append(text, from, end - from).append(kEraseLine);
    from = end + 1;
  }
  picture += kEraseBelow;
  base::WriteAll(STDOUT_FILENO, picture);
}

Terminal LiveScreen::terminal() const { return StandardOutput(); }

std::size_t LiveScreen::height() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

LiveScreen::Event LiveScreen::Await(int ready_fd, std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Event::kTimeout;
    // poll skips negative descriptors.
    pollfd watched[] = {{signals_.get(), POLLIN, 0},
                        {keys_readable_ ? STDIN_FILENO : -1, POLLIN, 0},
                        {ready_fd, POLLIN, 0}};
    if (poll(watched, 3, static_cast<int>(left.count())) <= 0) continue;
    if (watched[0].revents != 0) {
      if (const auto event = ReadSignal()) return *event;
    }
    if (watched[1].revents != 0) {
      if (const auto event = ReadKey()) return *event;
    }
    if (watched[2].revents != 0) return Event::kReady;
  }
}

std::optional<LiveScreen::Event> LiveScreen::ReadSignal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const auto signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGTSTP) Stop();
  if (signal == SIGTSTP || signal == SIGWINCH) return Event::kRedraw;
  exit_code_ = 128 + signal;
  return Event::kQuit;
}

std::optional<LiveScreen::Event> LiveScreen::ReadKey() {
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) != 1) {
    keys_readable_ = false;  // its end: the signals are left
    return std::nullopt;
  }
  if (key != 'q' && key != 'Q') return std::nullopt;
  exit_code_ = 0;
  return Event::kQuit;
}

void LiveScreen::Stop() {
  Leave();
  raise(SIGSTOP);
}

}  // namespace simile::cli::top
