#include "cli/doctor/findings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/output_text.h"
#include "cli/server_text.h"
#include "cli/wire_names.h"
#include "doctor/symptoms.h"

namespace simile::cli {
namespace {

using doctor::Evidence;
using doctor::Finding;
using doctor::State;
using doctor::Symptom;

// The reason text of the backend registry.
constexpr std::string_view kCpuAskedReason = "the configuration asks for the CPU";
constexpr const char* kServer = "server";
constexpr const char* kCollections = "collections";
constexpr const char* kWork = "work";
constexpr const char* kCard = "card";

State ToState(v1::Finding::State state) {
  switch (state) {
    case v1::Finding::STATE_OK:
      return State::kOk;
    case v1::Finding::STATE_WARNING:
      return State::kWarning;
    case v1::Finding::STATE_FAILED:
      return State::kFailed;
    default:
      return State::kSkipped;
  }
}

bool OnGpu(const v1::BackendStatus& backend) { return backend.kind() == v1::BACKEND_KIND_GPU; }

// Adds the collections that the CPU answers although the server has a GPU.
void AddCollections(const ServerAnswers& answers, std::vector<Finding>& findings) {
  if (!OnGpu(answers.info.backend())) return;
  int on_gpu = 0;
  for (const v1::Collection& collection : answers.collections.collections()) {
    if (OnGpu(collection.backend())) {
      ++on_gpu;
    } else if (collection.state() != v1::Collection::STATE_LOADING) {
      findings.push_back(doctor::Diagnose(
          kCollections, Symptom::kCollectionOnCpu,
          {.subject = collection.name(), .detail = collection.backend().reason()}));
    }
  }
  if (on_gpu == answers.collections.collections_size()) {
    findings.push_back(doctor::OkFinding(
        kCollections, fmt::format("{} on the GPU", base::Counted(static_cast<std::uint64_t>(on_gpu),
                                                                 "collection"))));
  }
}

// Adds the passes that each backend made, and the batches that went from the GPU to the CPU.
void AddWork(const v1::GetStatsResponse& stats, std::vector<Finding>& findings) {
  std::string passes;
  std::string given_away;
  for (const v1::MetricValue& metric : stats.metrics()) {
    if (metric.name() == "simile_search_duration_seconds" && metric.histogram().count() > 0) {
      passes += fmt::format("{}{} on the {}", passes.empty() ? "" : ", ",
                            base::Counted(metric.histogram().count(), "batch"),
                            LabelOf(metric, "backend"));
    }
    if (metric.name() != "simile_fallback_total" || metric.number() <= 0) continue;
    const std::string reason = LabelOf(metric, "reason");
    if (reason != "out_of_memory" && reason != "call_failed" && reason != "late") continue;
    given_away += fmt::format("{}{} ({})", given_away.empty() ? "" : ", ",
                              base::Grouped(static_cast<std::uint64_t>(metric.number())), reason);
  }
  if (!given_away.empty()) {
    findings.push_back(doctor::Diagnose(
        kWork, Symptom::kBatchesOnCpu,
        {.detail = fmt::format("the CPU did work of the GPU since start: {}", given_away)}));
    return;
  }
  findings.push_back(doctor::OkFinding(
      kWork, passes.empty() ? "nothing was asked since the server started"
                            : fmt::format("{} since the server started", passes)));
}

// Adds the Xid errors that the driver reported while the server ran.
void AddXids(const v1::GetStatsResponse& stats, std::vector<Finding>& findings) {
  for (const v1::MetricValue& metric : stats.metrics()) {
    if (metric.name() != "simile_gpu_xid_errors_total" || metric.number() <= 0) continue;
    const std::string label = LabelOf(metric, "xid");
    std::uint64_t xid = 0;
    std::from_chars(label.data(), label.data() + label.size(), xid);
    Finding finding =
        doctor::Diagnose(kCard, doctor::SymptomOfXid(xid),
                         {.subject = fmt::format("GPU {}", LabelOf(metric, "gpu")),
                          .detail = fmt::format(
                              "Xid {}, {} since the server started", label,
                              base::Counted(static_cast<std::uint64_t>(metric.number()), "time"))});
    finding.state = State::kWarning;
    findings.push_back(std::move(finding));
  }
}

constexpr std::size_t kStateWidth = 7;
constexpr std::size_t kProbeWidth = 20;
constexpr std::size_t kTextWidthMin = 40;

struct StateWord {
  const char* label;
  const char* name;  // for programs
};

StateWord ToWord(State state) {
  switch (state) {
    case State::kOk:
      return {" ok", "ok"};
    case State::kWarning:
      return {" warn", "warning"};
    case State::kFailed:
      return {" FAIL", "failed"};
    case State::kSkipped:
      return {" --", "skipped"};
  }
  return {"", ""};
}

// Adds the lines of a text in a column of at most `width`. State and label precede the first line.
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

std::vector<Finding> DiagnoseServer(const ServerAnswers& answers) {
  std::vector<Finding> findings;
  if (answers.diagnosis) {
    for (const v1::Finding& found : answers.diagnosis->findings()) {
      findings.push_back(
          {found.probe(), ToState(found.state()), found.text(), found.fix(), found.symptom()});
    }
  } else if (OnGpu(answers.info.backend())) {
    findings.push_back(doctor::OkFinding(
        kServer, fmt::format("the GPU answers: {}", answers.info.backend().reason())));
  } else if (answers.info.backend().reason() == kCpuAskedReason) {
    findings.push_back(doctor::Diagnose(kServer, Symptom::kRoutedByConfiguration,
                                        {.detail = "backend.preference of the server"}));
  } else {
    findings.push_back(doctor::Diagnose(kServer, Symptom::kServerOnCpu,
                                        {.detail = answers.info.backend().reason()}));
  }
  AddCollections(answers, findings);
  if (answers.stats) {
    AddWork(*answers.stats, findings);
    AddXids(*answers.stats, findings);
  }
  return findings;
}

std::string FindingsText(std::span<const Finding> findings, const Terminal& terminal) {
  std::size_t width = std::numeric_limits<std::size_t>::max();
  if (terminal.width > 0) {
    constexpr std::size_t kTaken = kStateWidth + kProbeWidth;
    width = std::max(kTextWidthMin, terminal.width > kTaken ? terminal.width - kTaken : 0);
  }
  std::string output;
  for (const Finding& finding : findings) {
    AddColumns(ToWord(finding.state).label, finding.probe, finding.text, width, output);
    if (!finding.fix.empty()) AddColumns("", "fix", finding.fix, width, output);
  }
  return output;
}

std::string FindingsJson(std::span<const Finding> findings, doctor::Outcome outcome) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"probe", finding.probe},
                    {"state", ToWord(finding.state).name},
                    {"text", finding.text},
                    {"fix", finding.fix},
                    {"symptom", finding.symptom}});
  }
  const char* name = outcome == doctor::Outcome::kGpu      ? "gpu"
                     : outcome == doctor::Outcome::kBroken ? "broken"
                                                           : "cpu";
  return JsonLine(
      {{"findings", std::move(list)}, {"outcome", name}, {"exit_code", ToExitCode(outcome)}});
}

int ToExitCode(doctor::Outcome outcome) {
  return outcome == doctor::Outcome::kCpuAsked ? 0 : static_cast<int>(outcome);
}

}  // namespace simile::cli
