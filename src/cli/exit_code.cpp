#include "cli/exit_code.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/display_text.h"
#include "cli/terminal.h"

namespace simile::cli {

int Fail(const absl::Status& status) {
  const Terminal terminal = StandardError();
  fmt::print(stderr, "{} {}\n", Bold("error:", terminal),
             Printable(std::string(status.message()), LineBreaks::kKept));
  return kFailed;
}

void SuggestNext(const std::string& command) {
  const Terminal terminal = StandardError();
  if (!terminal.is_terminal) return;
  std::fflush(stdout);  // so that the suggestion follows the answer
  fmt::print(stderr, "{}\n", Dim("next: " + command, terminal));
}

}  // namespace simile::cli
