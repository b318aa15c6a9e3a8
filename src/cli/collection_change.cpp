#include "cli/collection_change.h"

#include <fmt/format.h>

#include "cli/collection_json.h"
#include "cli/collection_text.h"
#include "cli/exit_code.h"
#include "cli/progress_bar.h"

namespace simile::cli {
namespace {

// How long the bar waits for one look at the progress.
constexpr double kLookTimeoutSeconds = 2;

absl::StatusOr<v1::Collection> ChangeUnderBar(
    const ClientFlags& flags, const std::string& verb, const std::string& name,
    const std::function<absl::StatusOr<v1::Collection>(const Connection&)>& change) {
  const Connection connection = Connect(flags, std::nullopt);
  ClientFlags look_flags = flags;
  look_flags.timeout_s = kLookTimeoutSeconds;
  const Connection look = Connect(look_flags, kLookTimeoutSeconds);
  const ProgressBar bar(fmt::format("{} {}", verb, name), [&]() -> std::optional<double> {
    const absl::StatusOr<v1::Collection> now = look.Get(name);
    if (!now.ok()) return std::nullopt;
    return now->progress();
  });
  return change(connection);
}

}  // namespace

int ShowChange(const ClientFlags& flags, const std::string& verb, const std::string& name,
               const std::function<absl::StatusOr<v1::Collection>(const Connection&)>& change) {
  const absl::StatusOr<v1::Collection> changed = ChangeUnderBar(flags, verb, name, change);
  if (!changed.ok()) return Fail(changed.status());
  if (flags.json) {
    fmt::print("{}", CollectionJson(*changed));
    return kSucceeded;
  }
  fmt::print("{}\n", CollectionLine(*changed));
  SuggestNext("simile list " + name);
  return kSucceeded;
}

}  // namespace simile::cli
