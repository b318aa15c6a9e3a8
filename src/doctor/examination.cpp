#include "doctor/examination.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "backend/failover_backend.h"
#include "base/message_text.h"
#include "doctor/gpu_examination.h"
#include "doctor/self_check.h"
#include "doctor/symptoms.h"
#include "simile/clock.h"

namespace simile::doctor {
namespace {

struct Probe {
  std::string_view name;
  bool uses_device;  // skipped if a server's device must not be touched
  Finding (*examine)(GpuExamination& gpu);
};
constexpr Probe kGpuProbes[] = {
    {kNodes, false, [](GpuExamination& gpu) { return gpu.ExamineNodes(); }},
    {kManagement, false, [](GpuExamination& gpu) { return gpu.ExamineManagement(); }},
    {kCard, false, [](GpuExamination& gpu) { return gpu.ExamineCard(); }},
    {kDriver, true, [](GpuExamination& gpu) { return gpu.ExamineDriver(); }},
    {kPlugin, true, [](GpuExamination& gpu) { return gpu.ExaminePlugin(); }},
    {kRuntime, true, [](GpuExamination& gpu) { return gpu.ExamineRuntime(); }},
    {kBlas, true, [](GpuExamination& gpu) { return gpu.ExamineBlas(); }},
    {kKernels, true, [](GpuExamination& gpu) { return gpu.ExamineKernels(); }},
};
constexpr std::string_view kServer = "server";
constexpr std::string_view kJournal = "fault journal";
constexpr std::string_view kConfiguration = "configuration";
constexpr std::string_view kContainers = "containers";
constexpr std::string_view kCpu = "CPU engine";

Finding ExamineServer(const ServerState& server) {
  if (server.gpu_lost) {
    return Diagnose(kServer, Symptom::kLostByServer, {.detail = server.reason});
  }
  if (server.gpu_answers)
    return OkFinding(kServer, fmt::format("the GPU answers: {}", server.reason));
  return Diagnose(kServer, Symptom::kServerOnCpu, {.detail = server.reason});
}

Finding ExamineJournal(const Options& options) {
  static const RealClock real_clock;
  const auto now = real_clock.WallNow();
  const std::vector<backend::GpuFault>& faults = options.backend.gpu_faults;
  const std::string not_tried = backend::WhyNotTried(faults, now);
  if (!not_tried.empty()) {
    return Diagnose(kJournal, Symptom::kLostTooOften,
                    {.subject = options.journal_file, .detail = not_tried});
  }
  const auto recent = std::ranges::count_if(faults, [now](const backend::GpuFault& fault) {
    return fault.at <= now && now - fault.at < backend::kGpuFaultsWindow;
  });
  if (recent > 0) {
    return Diagnose(
        kJournal, Symptom::kLostRecently,
        {.detail = fmt::format("the GPU was lost in the last {} minutes ({}), the last time to {}",
                               backend::kGpuFaultsWindow.count(),
                               base::Counted(static_cast<std::uint64_t>(recent), "time"),
                               faults.back().reason)});
  }
  return OkFinding(kJournal, "no GPU was lost in the last ten minutes");
}

Finding ExamineConfiguration(const Options& options) {
  const std::string from =
      options.preference_origin.empty() ? "" : fmt::format(", {}", options.preference_origin);
  if (options.backend.preference == backend::Preference::kCpu) {
    return Diagnose(kConfiguration, Symptom::kRoutedByConfiguration,
                    {.detail = fmt::format("backend.preference = cpu{}", from)});
  }
  const char* wanted = options.backend.preference == backend::Preference::kGpu ? "gpu" : "auto";
  return OkFinding(kConfiguration, fmt::format("backend.preference = {}{}", wanted, from));
}

// Checks on a host whether Docker can give the card to containers. Nothing inside a container, or
// without a driver or Docker.
std::optional<Finding> ExamineContainers(const Machine& machine) {
  if (FindPlace(machine) != Place::kHost || ModuleVersion(machine).empty()) return std::nullopt;
  const ContainerToolkit toolkit = ReadContainerToolkit(machine);
  if (!toolkit.docker) return std::nullopt;
  if (!toolkit.installed) return Diagnose(kContainers, Symptom::kToolkitMissing, {});
  if (!toolkit.version.empty() && IsOlder(toolkit.version, kSafeToolkit)) {
    return Diagnose(kContainers, Symptom::kToolkitOld, {.value = toolkit.version});
  }
  if (!toolkit.registered) return Diagnose(kContainers, Symptom::kRuntimeNotRegistered, {});
  return OkFinding(kContainers,
                   fmt::format("Docker, nvidia-container-toolkit {}", toolkit.version));
}

bool IsGpuProbe(const Finding& finding) {
  return std::ranges::find(kGpuProbes, finding.probe, &Probe::name) != std::end(kGpuProbes);
}

// Whether the GPU answered a search, or answers for the server.
bool GpuAnswers(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& finding) {
    return (finding.probe == kKernels || finding.probe == kServer) && finding.state == State::kOk;
  });
}

// Marks failures after the first as skipped, because they follow from it. A missing management
// library counts as a consequence, too.
void SkipWhatFollows(std::vector<Finding>& findings) {
  bool failed = false;
  for (Finding& finding : findings) {
    if (!IsGpuProbe(finding)) continue;
    const bool is_failure = finding.state == State::kFailed;
    const bool follows =
        is_failure || (finding.probe == kManagement && finding.state == State::kWarning);
    if (failed && follows) {
      finding.state = State::kSkipped;
      finding.fix.clear();
    }
    failed = failed || is_failure;
  }
}

}  // namespace

void ExamineGpu(const Options& options, const Reporter& reporter) {
  GpuExamination gpu(options);
  const std::string left_alone = gpu.WhyLeftAlone();
  for (const Probe& probe : kGpuProbes) {
    if (probe.uses_device && !left_alone.empty()) {
      reporter.found(SkippedFinding(probe.name, left_alone));
      continue;
    }
    reporter.began(probe.name);
    reporter.found(probe.examine(gpu));
  }
}

std::vector<Finding> ExamineSurroundings(const Options& options) {
  std::vector<Finding> findings;
  if (options.server) findings.push_back(ExamineServer(*options.server));
  findings.push_back(ExamineJournal(options));
  findings.push_back(ExamineConfiguration(options));
  if (std::optional<Finding> containers = ExamineContainers(options.machine)) {
    findings.push_back(*std::move(containers));
  }
  return findings;
}

Finding ExamineCpu(const backend::RegistryOptions& options) {
  const auto broken = [](const absl::Status& status) {
    return Diagnose(kCpu, Symptom::kCpuBroken, {.detail = std::string(status.message())});
  };
  const absl::StatusOr<CheckSample> sample = MakeCheckSample();
  if (!sample.ok()) return broken(sample.status());
  backend::RegistryOptions configured = options;
  configured.preference = backend::Preference::kCpu;
  backend::RegistryOptions plain = configured;
  plain.cpu_engine = backend::CpuEngine::kScan;
  const absl::StatusOr<backend::Chosen> engine = backend::ChooseBackend(configured);
  if (!engine.ok()) return broken(engine.status());
  const absl::StatusOr<backend::Chosen> reference = backend::ChooseBackend(plain);
  if (!reference.ok()) return broken(reference.status());
  const auto segment = MakeSegment(*engine->backend, *sample);
  if (!segment.ok()) return broken(segment.status());
  const auto scanned = MakeSegment(*reference->backend, *sample);
  if (!scanned.ok()) return broken(scanned.status());
  const auto answer = AnswerQueries(**segment, *sample, kComparedQueries);
  if (!answer.ok()) return broken(answer.status());
  const auto expected = AnswerQueries(**scanned, *sample, kComparedQueries);
  if (!expected.ok()) return broken(expected.status());
  if (const std::string difference = FindDifference(*answer, *expected); !difference.empty()) {
    return broken(absl::InternalError(difference));
  }
  const absl::StatusOr<double> rate = MeasureRate(**segment, *sample);
  if (!rate.ok()) return broken(rate.status());
  const BackendInfo& info = engine->backend->info();
  return OkFinding(kCpu,
                   fmt::format("{} on {}: {} queries/s at batch 1,000 over {} x {}", info.engine,
                               info.device, base::Grouped(static_cast<std::uint64_t>(*rate)),
                               base::Grouped(sample->rows->row_count()), sample->rows->dim()));
}

void AddUnfinished(std::string_view began, Finding reason, std::vector<Finding>& findings) {
  const Probe* at = began.empty() ? kGpuProbes : std::ranges::find(kGpuProbes, began, &Probe::name);
  reason.probe = at->name;
  findings.push_back(std::move(reason));
  while (++at != std::end(kGpuProbes)) findings.push_back(SkippedFinding(at->name, "not reached"));
}

Finding HangAfter(std::chrono::seconds limit) {
  return Diagnose("", Symptom::kHang, {.value = fmt::format("{} s", limit.count())});
}

Finding CrashBy(const std::string& how) { return Diagnose("", Symptom::kCrash, {.detail = how}); }

namespace {

// Whether the configuration asks for the CPU, so that an idle GPU is no fault.
bool AsksForCpu(std::span<const Finding> findings) {
  const auto row =
      std::ranges::find(SymptomRows(), Symptom::kRoutedByConfiguration, &SymptomRow::symptom);
  return std::ranges::find(findings, row->name, &Finding::symptom) != findings.end();
}

}  // namespace

void Conclude(std::vector<Finding>& findings) {
  const bool answers = GpuAnswers(findings);
  if (!answers) SkipWhatFollows(findings);
  if (!answers && !AsksForCpu(findings)) return;
  for (Finding& finding : findings) {
    if (IsGpuProbe(finding) && finding.state == State::kFailed) finding.state = State::kWarning;
  }
}

Outcome FindOutcome(std::span<const Finding> findings, backend::Preference preference) {
  bool failed = false;
  for (const Finding& finding : findings) {
    if (finding.state != State::kFailed) continue;
    if (finding.probe == kCpu) return Outcome::kBroken;
    failed = true;
  }
  if (AsksForCpu(findings)) return Outcome::kCpuAsked;
  if (!failed) return Outcome::kGpu;
  return preference == backend::Preference::kGpu ? Outcome::kBroken : Outcome::kCpuOnly;
}

}  // namespace simile::doctor
