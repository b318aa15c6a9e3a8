#include "cli/exit_code.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/file_descriptor.h"
#include "cli/display_text.h"
#include "cli/error_details.h"
#include "cli/terminal.h"

namespace simile::cli {

namespace {

// A mistake in the arguments, whether this program or the server found it; not one in the files
// that are loaded.
bool IsWrongUsage(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return false;
  const std::string reason = DetailsOf(status).reason;  // of the server; empty for this program's
  const auto& files = base::InfoOf(base::ErrorReason::kInvalidFiles);
  return reason.empty() ? base::ReasonOf(status) != files.reason : reason != files.name;
}

}  // namespace

int Fail(const absl::Status& status, bool json) {
  if (json) {
    fmt::print("{}", ErrorJson(status));
    std::fflush(stdout);  // so that the message follows it
  }
  const Terminal terminal = StandardError();
  // An error that nobody can read is no second error.
  base::WriteAll(STDERR_FILENO, fmt::format("{} {}\n", Bold("error:", terminal),
                                            Printable(ErrorText(status), LineBreaks::kKept)));
  return IsWrongUsage(status) ? kWrongUsage : kFailed;
}

void SuggestNext(const std::string& command) {
  const Terminal terminal = StandardError();
  if (!terminal.is_terminal) return;
  std::fflush(stdout);  // so that the suggestion follows the answer
  base::WriteAll(STDERR_FILENO, fmt::format("{}\n", Dim("next: " + command, terminal)));
}

}  // namespace simile::cli
