#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "cli/environment.h"

namespace simile::cli {
namespace {

constexpr std::size_t kDefaultWidth = 80;

Terminal Describe(int descriptor) {
  Terminal terminal;
  terminal.is_terminal = isatty(descriptor) == 1;
  if (!terminal.is_terminal) return terminal;
  const char* kind = std::getenv("TERM");
  // https://no-color.org: any non-empty value
  terminal.colour =
      !ReadVariable("NO_COLOR") && kind != nullptr && std::string_view(kind) != "dumb";
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  terminal.width = known ? size.ws_col : kDefaultWidth;
  return terminal;
}

std::string InCode(std::string_view text, std::string_view code, const Terminal& terminal) {
  return terminal.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

Terminal StandardOutput() { return Describe(STDOUT_FILENO); }
Terminal StandardError() { return Describe(STDERR_FILENO); }

std::string Bold(std::string_view text, const Terminal& terminal) {
  return InCode(text, "1", terminal);
}
std::string Dim(std::string_view text, const Terminal& terminal) {
  return InCode(text, "2", terminal);
}

}  // namespace simile::cli
