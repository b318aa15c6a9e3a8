#include "cli/server_text.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/quantity_text.h"
#include "cli/table.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kAbilitiesWidth = 68;  // together with the labels at most 80 columns
constexpr std::size_t kShortCommitDigits = 12;

std::map<std::string, std::uint64_t> LimitsByName(const v1::GetServerInfoResponse& info) {
  return {info.limits().begin(), info.limits().end()};
}

std::string ShortCommit(const std::string& commit) { return commit.substr(0, kShortCommitDigits); }

// Joins the words by commas into lines of at most `width` columns; a longer word gets its own line.
std::vector<std::string> WrappedList(const google::protobuf::RepeatedPtrField<std::string>& words,
                                     std::size_t width) {
  std::vector<std::string> lines(1);
  for (int i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

// Formats a limit. Its name contains the unit: times end in `_ms`, sizes contain `_bytes`.
std::string LimitText(const std::string& name, std::uint64_t value) {
  if (name.ends_with("_ms")) {
    return value % 1'000 == 0 ? base::Grouped(value / 1'000) + " s" : base::Grouped(value) + " ms";
  }
  return name.find("_bytes") == std::string::npos ? base::Grouped(value) : base::BytesText(value);
}

}  // namespace

std::string BackendText(const v1::BackendStatus& backend) {
  const std::string name = BackendName(backend.kind());
  return backend.reason().empty() ? name : fmt::format("{}: {}", name, backend.reason());
}

std::string BackendText(const v1::Receipt& receipt) {
  return fmt::format("{}: {}", BackendName(receipt.backend()), fmt::join(receipt.engines(), " + "));
}

std::string EngineText(const v1::BackendStatus& backend) {
  return fmt::format("{} on {}", backend.engine(), backend.device());
}

std::string DeviceMemoryTable(const v1::BackendStatus& backend, const Terminal& terminal) {
  if (backend.device_memory().empty()) return "";
  Table table({{"GPU memory"}, {"now", Align::kRight}, {"peak", Align::kRight}});
  for (const v1::DeviceMemory& memory : backend.device_memory()) {
    table.AddRow(
        {memory.kind(), base::BytesText(memory.bytes()), base::BytesText(memory.peak_bytes())});
  }
  return table.Render(terminal, 0);
}

Json BackendJson(const v1::BackendStatus& backend) {
  return {{"kind", BackendName(backend.kind())},
          {"device", backend.device()},
          {"engine", backend.engine()},
          {"reason", backend.reason()}};
}

Json DeviceMemoryJson(const v1::BackendStatus& backend) {
  Json list = Json::array();
  for (const v1::DeviceMemory& memory : backend.device_memory()) {
    list.push_back(
        {{"kind", memory.kind()}, {"bytes", memory.bytes()}, {"peak_bytes", memory.peak_bytes()}});
  }
  return list;
}

std::string InfoText(const v1::GetServerInfoResponse& info, const std::string& address,
                     bool names_caller, const Terminal& terminal) {
  Table facts({{}, {"", Align::kLeft, false}});
  facts.AddRow({"build", fmt::format("{}{}{}, {}", ShortCommit(info.commit()),
                                     info.commit().empty() ? "" : ", ", info.compiler(),
                                     info.build_type())});
  facts.AddRow({"started", TimeText(info.started_at())});
  facts.AddRow({"backend", BackendText(info.backend())});
  facts.AddRow({"engine", EngineText(info.backend())});
  facts.AddRow({"changes", info.changes_allowed() ? "allowed"
                           : names_caller
                               ? "refused to this caller: load, reload, rollback and unload need "
                                 "the role write"
                               : "refused; `simile serve --allow-changes` "
                                 "allows load, reload, rollback and unload"});
  facts.AddRow(
      {"admin", info.admin_allowed() ? "allowed"
                : names_caller
                    ? "refused to this caller: top and doctor --server need the role admin"
                    : "refused; `simile serve --allow-admin` allows top and doctor --server"});
  const char* label = "can";
  for (const std::string& line : WrappedList(info.capabilities(), kAbilitiesWidth)) {
    facts.AddRow({std::exchange(label, ""), line});
  }
  facts.AddRow({"limits", fmt::format("{}; `simile info --limits` lists them",
                                      base::Grouped(info.limits().size()))});
  const std::string title = fmt::format("simile {} at {}", info.version(), address);
  return Bold(Printable(title), terminal) + '\n' + facts.Render(terminal, 2);
}

std::string LimitsTable(const v1::GetServerInfoResponse& info, const Terminal& terminal) {
  Table table({{"limit"}, {"value", Align::kRight}});
  for (const auto& [name, value] : LimitsByName(info)) table.AddRow({name, LimitText(name, value)});
  return table.Render(terminal, 0);
}

std::string InfoJson(const v1::GetServerInfoResponse& info) {
  Json json = {{"version", info.version()},
               {"commit", info.commit()},
               {"compiler", info.compiler()},
               {"build_type", info.build_type()},
               {"started_at", Rfc3339Text(info.started_at())},
               {"backend", BackendJson(info.backend())},
               {"changes_allowed", info.changes_allowed()},
               {"admin_allowed", info.admin_allowed()},
               {"capabilities", info.capabilities()},
               {"limits", LimitsByName(info)}};
  return JsonLine(json);
}

}  // namespace simile::cli
