#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/nvml.h"
#include "backend/registry.h"
#include "doctor/machine.h"
#include "doctor/symptoms.h"

namespace simile::doctor {

// The state of a server that examines itself.
struct ServerState {
  bool gpu_answers = false;
  bool gpu_lost = false;
  bool gpu_left_alone = false;  // by its start, after too many losses
  std::string gpu_bus_id = {};  // of the GPU that was chosen, if one was
  std::string reason = {};      // why the backend that answers does
};

struct Options {
  Machine machine;
  std::string nvml_library = backend::kNvmlLibrary;  // as for dlopen
  // What a server would be started with: preference, gpu, gpu_searches, gpu_faults.
  backend::RegistryOptions backend;
  std::string preference_origin;  // "environment USE_GPU": where backend.preference comes from
  std::string journal_file;       // where gpu_faults come from
  // In a server: then no probe touches a device that answers, is lost or was left alone, nor takes
  // its memory.
  std::optional<ServerState> server;
};

// How far an examination has come. Called from the thread that examines.
struct Reporter {
  std::function<void(std::string_view probe)> began;
  std::function<void(Finding finding)> found;
};

// Probes from the device nodes up to a search on the GPU, in this order; each tells what it saw.
// Calls into the driver, so that it may never return or end the process: callers bound it
// (docs/operations.md promises ten seconds).
void ExamineGpu(const Options& options, const Reporter& reporter);

// What keeps a usable GPU from being used: lost GPUs, the configuration, Docker. Reads files only.
std::vector<Finding> ExamineSurroundings(const Options& options);

// Whether the CPU engine answers, equal to the plain scan bit for bit, and how fast: what serves
// while there is no GPU. Takes about half a second.
Finding ExamineCpu(const backend::RegistryOptions& options);

// Adds what is missing when ExamineGpu did not come to its end.
//   began   the probe that was running; empty when none had begun
//   reason  what became of it: HangAfter or CrashBy
void AddUnfinished(std::string_view began, Finding reason, std::vector<Finding>& findings);

Finding HangAfter(std::chrono::seconds limit);
Finding CrashBy(const std::string& how);

// Leaves one failed probe of the GPU, the first: later ones follow from it, but not what the server
// says of itself. When the GPU answers after all, its failures become warnings. Pure.
void Conclude(std::vector<Finding>& findings);

enum class Outcome : std::uint8_t {
  kGpu,      // the GPU answers
  kCpuOnly,  // the CPU answers
  kBroken,   // nothing does, or a GPU is demanded and cannot be used
  kCpuAsked  // the CPU answers, as the configuration asks
};
Outcome FindOutcome(std::span<const Finding> findings, backend::Preference preference);

}  // namespace simile::doctor
