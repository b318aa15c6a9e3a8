#include "cli/top/terminal_program.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

#include "base/signal_process.h"

namespace simile::cli::top {
namespace {

winsize MakeSize(unsigned short columns, unsigned short lines) {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = lines;
  return size;
}

}  // namespace

TerminalProgram::TerminalProgram(const std::vector<std::string>& arguments, unsigned short columns,
                                 unsigned short lines) {
  std::vector<std::string> words = {SIMILE_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const winsize size = MakeSize(columns, lines);
  int terminal = -1;
  pid_ = forkpty(&terminal, nullptr, nullptr, &size);
  if (pid_ == 0) {
    setenv("TERM", "xterm", 1);
    execv(SIMILE_PROGRAM, argv.data());
    _exit(127);
  }
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "forkpty");
  terminal_ = base::FileDescriptor(terminal);
}

TerminalProgram::~TerminalProgram() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool TerminalProgram::ReadMore() {
  std::array<char, 4'096> bytes;
  const ssize_t count = read(terminal_.get(), bytes.data(), bytes.size());
  if (count <= 0) return false;  // EIO once the program has ended
  output_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

bool TerminalProgram::AwaitOutput(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!ReadMore()) return false;
  }
  return true;
}

std::string TerminalProgram::TakeOutput() { return std::exchange(output_, {}); }

void TerminalProgram::Type(const std::string& keys) const { base::WriteAll(terminal_.get(), keys); }

void TerminalProgram::Resize(unsigned short columns, unsigned short lines) const {
  const winsize size = MakeSize(columns, lines);
  ioctl(terminal_.get(), TIOCSWINSZ, &size);
}

void TerminalProgram::Signal(int signal) const { EXPECT_TRUE(base::SignalProcess(pid_, signal)); }

void TerminalProgram::AwaitStopped() const { waitpid(pid_, nullptr, WUNTRACED); }

bool TerminalProgram::HasUsualMode() const {
  termios mode{};
  tcgetattr(terminal_.get(), &mode);
  return (mode.c_lflag & ICANON) != 0 && (mode.c_lflag & ECHO) != 0;
}

int TerminalProgram::AwaitExit() {
  while (ReadMore()) {
  }
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace simile::cli::top
