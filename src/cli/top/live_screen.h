#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "cli/terminal.h"

namespace simile::cli::top {

// A picture that fills the terminal of standard output, in its alternate screen, so that what was
// there before comes back afterwards. Keys are read without echo. The terminal is restored by the
// destructor, and while the program is stopped by Ctrl-Z.
// REQUIRES: standard output is a terminal. Made by the main thread before any other, because
// threads inherit the blocked signals.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // Replaces the picture; begins it when it is the first.
  void Draw(const std::string& text);
  // Ends the picture. Idempotent; Draw begins another one.
  void Leave();

  // The terminal as it is now: its size may change at any time.
  Terminal terminal() const;
  std::size_t height() const;  // lines; 0: unknown

  enum class Event : std::uint8_t {
    kQuit,     // `q`, or a signal: see exit_code
    kRedraw,   // the size changed, or the program goes on after Ctrl-Z
    kReady,    // the descriptor is readable
    kTimeout,  // none of these within the time
  };
  // Waits for the first of these.
  //   ready_fd  -1 for none
  Event Await(int ready_fd, std::chrono::milliseconds timeout);
  // After kQuit: 0 for `q`, else as a shell reports a program that the signal ended.
  int exit_code() const { return exit_code_; }

 private:
  void Enter();
  std::optional<Event> ReadSignal();
  std::optional<Event> ReadKey();
  void Stop();  // as Ctrl-Z does, until the program goes on

  base::FileDescriptor signals_;
  std::optional<termios> former_mode_;  // of the keyboard, while the picture is shown
  bool active_ = false;
  bool keys_readable_ = true;
  int exit_code_ = 0;
};

}  // namespace simile::cli::top
