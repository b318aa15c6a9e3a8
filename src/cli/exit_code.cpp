#include "cli/exit_code.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/display_text.h"
#include "cli/error_details.h"
#include "cli/terminal.h"

namespace simile::cli {

int Fail(const absl::Status& status, bool json) {
  if (json) {
    fmt::print("{}", ErrorJson(status));
    std::fflush(stdout);  // so that the message follows it
  }
  const Terminal terminal = StandardError();
  fmt::print(stderr, "{} {}\n", Bold("error:", terminal),
             Printable(ErrorText(status), LineBreaks::kKept));
  return kFailed;
}

void SuggestNext(const std::string& command) {
  const Terminal terminal = StandardError();
  if (!terminal.is_terminal) return;
  std::fflush(stdout);  // so that the suggestion follows the answer
  fmt::print(stderr, "{}\n", Dim("next: " + command, terminal));
}

}  // namespace simile::cli
