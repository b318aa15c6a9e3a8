#include "cli/doctor/finding_text.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/display_text.h"
#include "cli/help_text.h"
#include "cli/json_line.h"

namespace simile::cli {
namespace {

constexpr std::size_t kStateWidth = 7;
constexpr std::size_t kProbeWidth = 20;
constexpr std::size_t kTextWidthMin = 40;

struct StateWord {
  const char* label;
  const char* name;  // for programs
};

StateWord WordOf(doctor::State state) {
  switch (state) {
    case doctor::State::kOk:
      return {" ok", "ok"};
    case doctor::State::kWarning:
      return {" warn", "warning"};
    case doctor::State::kFailed:
      return {" FAIL", "failed"};
    case doctor::State::kSkipped:
      return {" --", "skipped"};
  }
  return {"", ""};
}

// The lines of a text in a column at most this wide, with two words before the first.
void AddColumns(const std::string& state, const std::string& label, const std::string& text,
                std::size_t width, std::string& output) {
  std::string before = fmt::format("{:<{}}{:<{}}", state, kStateWidth, label, kProbeWidth);
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    for (const std::string& line : Wrapped(Printable(paragraph), width)) {
      output += fmt::format("{}{}\n", before, line);
      before.assign(kStateWidth + kProbeWidth, ' ');
    }
  }
}

}  // namespace

std::string FindingsText(std::span<const doctor::Finding> findings, const Terminal& terminal) {
  std::size_t width = std::numeric_limits<std::size_t>::max();
  if (terminal.width > 0) {
    constexpr std::size_t kTaken = kStateWidth + kProbeWidth;
    width = std::max(kTextWidthMin, terminal.width > kTaken ? terminal.width - kTaken : 0);
  }
  std::string output;
  for (const doctor::Finding& finding : findings) {
    AddColumns(WordOf(finding.state).label, finding.probe, finding.text, width, output);
    if (!finding.fix.empty()) AddColumns("", "fix", finding.fix, width, output);
  }
  return output;
}

std::string FindingsJson(std::span<const doctor::Finding> findings, doctor::Outcome outcome) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const doctor::Finding& finding : findings) {
    list.push_back({{"probe", finding.probe},
                    {"state", WordOf(finding.state).name},
                    {"text", finding.text},
                    {"fix", finding.fix},
                    {"symptom", finding.symptom}});
  }
  const char* name = outcome == doctor::Outcome::kGpu      ? "gpu"
                     : outcome == doctor::Outcome::kBroken ? "broken"
                                                           : "cpu";
  return JsonLine(
      {{"findings", std::move(list)}, {"outcome", name}, {"exit_code", ExitCodeOf(outcome)}});
}

int ExitCodeOf(doctor::Outcome outcome) {
  return outcome == doctor::Outcome::kCpuAsked ? 0 : static_cast<int>(outcome);
}

}  // namespace simile::cli
