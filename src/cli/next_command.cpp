#include "cli/next_command.h"

#include <fmt/format.h>

#include "cli/display_text.h"

namespace simile::cli {

std::string NextCommand(std::string_view words, const ClientFlags& client,
                        const std::optional<std::string>& collection) {
  std::string command = fmt::format("simile {}", words);
  if (collection) command += fmt::format(" --collection {}", ShellWord(*collection));
  if (client.server) command += fmt::format(" --server {}", ShellWord(*client.server));
  return Printable(command);
}

}  // namespace simile::cli
