#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config/settings.h"
#include "app/gpu/fault_journal.h"
#include "base/file_descriptor.h"
#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/server_text.h"
#include "cli/settings_flags.h"
#include "cli/terminal.h"
#include "cli/wire_names.h"
#include "doctor/examination.h"
#include "doctor/machine.h"
#include "doctor/symptoms.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;
using doctor::Evidence;
using doctor::Finding;
using doctor::Outcome;
using doctor::State;
using doctor::Symptom;

// The answers of a running server to doctor's calls.
struct ServerAnswers {
  std::string address;
  v1::GetServerInfoResponse info;
  v1::ListCollectionsResponse collections;
  // Only from a server that runs with --allow-admin.
  std::optional<v1::DiagnoseResponse> diagnosis;
  std::optional<v1::GetStatsResponse> stats;
};

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

// Why the server's GPU does not answer, or does not answer everything. Reports the server's own
// probes, the collections and batches that the CPU answered, and the faults that the driver
// reported. Pure.
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

// Each finding as ` FAIL  driver              kernel module 570.86.15, library ...`, with its fix
// in the lines below. Wraps at words on a terminal; writes one line per text to a file or a pipe.
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

// 0: the GPU answers, or the CPU as configured. 1: the CPU answers. 2: nothing answers, or a GPU is
// demanded and cannot be used.
int ToExitCode(Outcome outcome) {
  return outcome == Outcome::kCpuAsked ? 0 : static_cast<int>(outcome);
}

// {"findings": [{"probe", "state", "text", "fix", "symptom"}], "outcome", "exit_code"}
std::string FindingsJson(std::span<const Finding> findings, Outcome outcome) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"probe", finding.probe},
                    {"state", ToWord(finding.state).name},
                    {"text", finding.text},
                    {"fix", finding.fix},
                    {"symptom", finding.symptom}});
  }
  const char* name = outcome == Outcome::kGpu      ? "gpu"
                     : outcome == Outcome::kBroken ? "broken"
                                                   : "cpu";
  return JsonLine(
      {{"findings", std::move(list)}, {"outcome", name}, {"exit_code", ToExitCode(outcome)}});
}

// The child writes a line when a probe begins, a line with the probe's finding, and a line at the
// end.
constexpr const char* kBegan = "began";
constexpr const char* kDone = "done";

// Prepares the child. Hides output and crashes of libraries that the probes call.
void PrepareChild() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
}

// Runs in the child: examines the GPU and writes a line for each step.
void WriteFindings(const doctor::Options& options, int to) {
  const auto write_line = [to](const Json& json) {
    if (!base::WriteAll(to, JsonLine(json))) _exit(1);
  };
  doctor::ExamineGpu(options, {.began =
                                   [&](std::string_view probe) {
                                     write_line({{kBegan, std::string(probe)}});
                                   },
                               .found =
                                   [&](const Finding& finding) {
                                     write_line({{"probe", finding.probe},
                                                 {"state", static_cast<int>(finding.state)},
                                                 {"text", finding.text},
                                                 {"fix", finding.fix},
                                                 {"symptom", finding.symptom}});
                                   }});
  write_line({{kDone, true}});
}

// The lines that the child has written so far, parsed.
struct ChildReport {
  std::vector<Finding> findings;
  std::string began;
  bool done = false;

  void Add(const std::string& line) {
    const Json json = Json::parse(line);
    if (json.contains(kDone)) {
      done = true;
    } else if (json.contains(kBegan)) {
      began = json.at(kBegan);
    } else {
      findings.push_back({json.at("probe"), static_cast<State>(json.at("state").get<int>()),
                          json.at("text"), json.at("fix"), json.at("symptom")});
    }
  }
};

int MillisecondsUntil(SteadyClock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
  return left.count() < 0 ? 0 : static_cast<int>(left.count());
}

// Reads the child's lines until it closes its pipe or the time is over.
void ReadReport(int from, SteadyClock::time_point end, ChildReport& report) {
  std::string pending;
  std::array<char, 4'096> block;
  for (;;) {
    pollfd readable{from, POLLIN, 0};
    const int ready = poll(&readable, 1, MillisecondsUntil(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    const ssize_t bytes = read(from, block.data(), block.size());
    if (bytes <= 0) return;
    pending.append(block.data(), static_cast<std::size_t>(bytes));
    for (std::size_t line; (line = pending.find('\n')) != std::string::npos;) {
      report.Add(pending.substr(0, line));
      pending.erase(0, line + 1);
    }
  }
}

// Waits for the child's end, which may hang in the kernel even after the pipe was closed. Returns
// the child's status. If it does not end in time, kills it and returns nullopt.
std::optional<int> AwaitEnd(pid_t child, SteadyClock::time_point end) {
  constexpr std::chrono::milliseconds kPause{5};
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 || SteadyClock::now() >= end) break;
    std::this_thread::sleep_for(kPause);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, WNOHANG);
  return std::nullopt;
}

// "signal 11 (Segmentation fault)"
std::string HowEnded(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

// Runs doctor::ExamineGpu in a child process and returns its findings within the limit, whatever
// the driver does. A probe that hangs or crashes is a finding. Uses a process, not a thread,
// because a call that hangs in the kernel would keep this process from exiting. Abandons a child
// that cannot be killed. REQUIRES: this process has one thread. Errors: kUnavailable if no process
// can be started.
absl::StatusOr<std::vector<Finding>> ExamineInChild(const doctor::Options& options,
                                                    std::chrono::seconds limit) {
  const SteadyClock::time_point end = SteadyClock::now() + limit;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(fmt::format("no pipe to a process: {}", std::strerror(errno)));
  }
  base::FileDescriptor from(ends[0]);
  base::FileDescriptor to(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    return absl::UnavailableError(fmt::format("no process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    PrepareChild();
    try {
      WriteFindings(options, to.get());
    } catch (const std::exception&) {
      _exit(1);
    }
    _exit(0);  // without destructors, which may hang in a driver
  }
  to.Close();
  ChildReport report;
  ReadReport(from.get(), end, report);
  const std::optional<int> status = AwaitEnd(child, end);
  if (!report.done || !status) {
    doctor::AddUnfinished(report.began,
                          status ? doctor::CrashBy(HowEnded(*status)) : doctor::HangAfter(limit),
                          report.findings);
  }
  return std::move(report.findings);
}

constexpr int kExitBroken = 2;
// The GPU's part of the command's ten seconds; the rest measures the CPU.
constexpr std::chrono::seconds kGpuLimit{8};
constexpr double kServerTimeoutSeconds = 12;  // a server's own examination takes up to 10 s
constexpr const char* kPreference = "backend.preference";
constexpr std::array<std::string_view, 3> kSettings = {kPreference, "gpu.device",
                                                       "gpu.memory_fraction"};

struct DoctorFlags {
  SettingsFlags settings;
  ClientFlags client;
  std::optional<std::string> root;
};

// Options to examine the backend that `serve` would use with these settings.
doctor::Options OptionsFor(const DoctorFlags& flags, const app::ConfigReading& reading) {
  doctor::Options options;
  options.machine = doctor::ThisMachine(flags.root.value_or("/"));
  options.backend = reading.config.backend;
  options.journal_file = reading.config.gpu_fault_journal.string();
  for (std::size_t i = 0; i < app::Settings().size(); ++i) {
    if (app::Settings()[i].key == kPreference) options.preference_origin = reading.origins[i];
  }
  // A journal that cannot be read counts as empty, as it does for `serve`.
  if (auto faults = app::ReadFaultJournal(options.journal_file); faults.ok()) {
    options.backend.gpu_faults = *std::move(faults);
  }
  return options;
}

void PrintOutcome(Outcome outcome, const Finding& cpu) {
  switch (outcome) {
    case Outcome::kGpu:
      fmt::print("The GPU answers. Exit code 0.\n");
      return;
    case Outcome::kCpuOnly:
      fmt::print("Serving on the CPU meanwhile: {}. Exit code 1.\n", cpu.text);
      return;
    case Outcome::kCpuAsked:
      fmt::print("Serving on the CPU, as the configuration asks: {}. Exit code 0.\n", cpu.text);
      return;
    case Outcome::kBroken:
      fmt::print("{}. Exit code 2.\n",
                 cpu.state == State::kOk
                     ? "A GPU is demanded (backend.preference) and cannot be used: `simile serve` "
                       "refuses to start"
                     : "Neither the GPU nor the CPU can answer");
      return;
  }
}

int ExamineThisMachine(const DoctorFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = flags.settings.Read();
  if (!reading.ok()) {
    Fail(reading.status(), flags.client.json);
    return kWrongUsage;
  }
  const doctor::Options options = OptionsFor(flags, *reading);
  absl::StatusOr<std::vector<Finding>> findings = ExamineInChild(options, kGpuLimit);
  if (!findings.ok()) {
    Fail(findings.status(), flags.client.json);
    return kExitBroken;
  }
  for (Finding& finding : doctor::ExamineSurroundings(options)) {
    findings->push_back(std::move(finding));
  }
  doctor::Conclude(*findings);
  const Finding cpu = doctor::ExamineCpu(options.backend);
  findings->push_back(cpu);
  const Outcome outcome = doctor::FindOutcome(*findings, options.backend.preference);
  if (flags.client.json) {
    fmt::print("{}", FindingsJson(*findings, outcome));
  } else {
    // The last line repeats the CPU's finding, so drops its row, unless the CPU failed.
    if (cpu.state == State::kOk) findings->pop_back();
    fmt::print("{}", FindingsText(*findings, StandardOutput()));
    PrintOutcome(outcome, cpu);
  }
  return ToExitCode(outcome);
}

int ExamineServer(const DoctorFlags& flags) {
  const Connection connection = Connect(flags.client, kServerTimeoutSeconds);
  ServerAnswers answers;
  answers.address = connection.address();
  absl::StatusOr<v1::GetServerInfoResponse> info = connection.GetServerInfo();
  absl::StatusOr<v1::ListCollectionsResponse> collections =
      info.ok() ? connection.List() : absl::StatusOr<v1::ListCollectionsResponse>(info.status());
  if (!collections.ok()) {
    Fail(collections.status(), flags.client.json);
    return kExitBroken;
  }
  answers.info = *std::move(info);
  answers.collections = *std::move(collections);
  if (answers.info.admin_allowed()) {
    absl::StatusOr<v1::DiagnoseResponse> diagnosis = connection.Diagnose();
    absl::StatusOr<v1::GetStatsResponse> stats = connection.GetStats();
    if (!diagnosis.ok() || !stats.ok()) {
      Fail(diagnosis.ok() ? stats.status() : diagnosis.status(), flags.client.json);
      return kExitBroken;
    }
    answers.diagnosis = *std::move(diagnosis);
    answers.stats = *std::move(stats);
  }
  const std::vector<Finding> findings = DiagnoseServer(answers);
  const Outcome outcome = doctor::FindOutcome(findings, backend::Preference::kAuto);
  if (flags.client.json) {
    fmt::print("{}", FindingsJson(findings, outcome));
    return ToExitCode(outcome);
  }
  fmt::print("{}", FindingsText(findings, StandardOutput()));
  if (!answers.info.admin_allowed()) {
    fmt::print("{} also tells what its probes find.\n",
               connection.security().names_caller() ? "To a caller with the role admin the server"
                                                    : "A server that runs with --allow-admin");
  }
  const bool shares_work =
      std::ranges::find(findings, "batches_on_cpu", &Finding::symptom) != findings.end();
  const char* who = outcome == Outcome::kCpuAsked ? "The CPU answers, as its configuration asks,"
                    : outcome != Outcome::kGpu    ? "The CPU answers, in whole or in part,"
                    : shares_work                 ? "The GPU answers, but not everything,"
                                                  : "The GPU answers everything";
  fmt::print("{} at {}. Exit code {}.\n", who, answers.address, ToExitCode(outcome));
  return ToExitCode(outcome);
}

absl::Status CheckDoctorFlags(const DoctorFlags& flags) {
  const bool of_this_machine = flags.root || flags.settings.any_given();
  if (flags.client.server && of_this_machine) {
    return absl::InvalidArgumentError(
        "--server asks a server, which has its own settings; leave out the flags of this machine");
  }
  if (!flags.client.server && flags.client.timeout_s) {
    return absl::InvalidArgumentError("--timeout is for --server; this machine takes at most 10 s");
  }
  return absl::OkStatus();
}

}  // namespace

void AddDoctorCommand(CommandLine& line) {
  auto flags = std::make_shared<DoctorFlags>();
  Command command = line.Add("doctor", "Find out why no GPU answers, and what to do");
  flags->settings.AddTo(command, kSettings);
  command.File("--root", flags->root, "FOLDER",
               "Look for devices and system files below it, e.g. a host's / in a container");
  AddClientFlags(command, flags->client,
                 fmt::format("with --server; default {:.0f}", kServerTimeoutSeconds),
                 "Ask this server instead of examining this machine");
  command.Check([flags] { return CheckDoctorFlags(*flags); });
  command
      .Footer(
          "simile doctor\n"
          "simile doctor --server localhost:50051\n"
          "Without --server it examines this machine, in at most 10 s; in a container, run it in "
          "the container, and on its host.\n"
          "With --server it asks a running one why its GPU is idle; one that runs with "
          "--allow-admin "
          "tells more.\n"
          "Exit codes: 0 the GPU answers, 1 the CPU does, 2 nothing does, or a GPU is demanded and "
          "cannot be used, or there is no such server.")
      .Run([flags] {
        return flags->client.server ? ExamineServer(*flags) : ExamineThisMachine(*flags);
      });
}

}  // namespace simile::cli
