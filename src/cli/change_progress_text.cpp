#include "cli/change_progress_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/wire_names.h"

namespace simile::cli {

std::string ProgressText(const v1::ChangeProgress& progress) {
  if (progress.stage() == v1::ChangeProgress::STAGE_UNSPECIFIED) return "";
  if (progress.stage() == v1::ChangeProgress::STAGE_WAITING) return "waiting for other changes";
  std::string text = StageName(progress.stage());
  if (progress.stage() != v1::ChangeProgress::STAGE_READING) return text;
  const bool known = progress.bytes_total() > 0;
  if (known) {
    text += fmt::format(" {} of {}", base::BytesText(progress.bytes_read()),
                        base::BytesText(progress.bytes_total()));
  }
  // Last, because a line that is too long is cut at its end.
  if (!progress.file().empty()) text += (known ? ", " : " ") + progress.file();
  return text;
}

std::string ProgressLine(const std::string& label, const v1::ChangeProgress& progress) {
  const std::string text = ProgressText(progress);
  return fmt::format("{}: {:.0f} %{}{}", label, progress.share() * 100, text.empty() ? "" : ", ",
                     text);
}

nlohmann::ordered_json ProgressJson(const v1::ChangeProgress& progress) {
  return {{"stage", StageName(progress.stage())},
          {"file", progress.file()},
          {"share", progress.share()},
          {"bytes_read", progress.bytes_read()},
          {"bytes_total", progress.bytes_total()}};
}

}  // namespace simile::cli
