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
  bool gpu_left_alone = false;  // the start did not open it, after too many losses
  std::string gpu_bus_id = {};  // bus id of the chosen GPU; empty if none was chosen
  std::string reason = {};      // why the backend that answers was chosen
};

struct Options {
  Machine machine;
  std::string nvml_library = backend::kNvmlLibrary;  // name or path, as for dlopen
  // The options that a server would start with: preference, gpu, gpu_searches, gpu_faults.
  backend::RegistryOptions backend;
  std::string preference_origin;  // "environment USE_GPU": where backend.preference comes from
  std::string journal_file;       // the file that gpu_faults were read from
  // Set inside a server. Then no probe takes device memory, or touches a device that answers, is
  // lost or was left alone.
  std::optional<ServerState> server;
};

// Callbacks for the progress of an examination, called on the thread that examines.
struct Reporter {
  std::function<void(std::string_view probe)> began;
  std::function<void(Finding finding)> found;
};

// Runs the probes in order, from the device nodes up to a search on the GPU, and reports each
// finding. Calls into the driver, which may hang or end the process. Callers must bound the time
// (docs/operations.md promises ten seconds).
void ExamineGpu(const Options& options, const Reporter& reporter);

// Finds reasons not to use a usable GPU: earlier losses, the configuration, Docker. Reads only
// files.
std::vector<Finding> ExamineSurroundings(const Options& options);

// Checks that the CPU engine, which serves without a GPU, answers with the same bits as the plain
// scan, and measures its speed. Takes about half a second.
Finding ExamineCpu(const backend::RegistryOptions& options);

// Adds the missing findings of an ExamineGpu that did not finish.
//   began   the probe that was running; empty if none had begun
//   reason  what happened to it: HangAfter or CrashBy
void AddUnfinished(std::string_view began, Finding reason, std::vector<Finding>& findings);

Finding HangAfter(std::chrono::seconds limit);
Finding CrashBy(const std::string& how);

// Keeps only the first failed probe of the GPU, because later failures follow from it. Keeps
// failures that the server reports about itself. If the GPU answers after all, failures become
// warnings. Pure.
void Conclude(std::vector<Finding>& findings);

enum class Outcome : std::uint8_t {
  kGpu,      // the GPU answers
  kCpuOnly,  // the CPU answers
  kBroken,   // nothing answers, or a GPU is demanded and cannot be used
  kCpuAsked  // the CPU answers, as the configuration asks
};
Outcome FindOutcome(std::span<const Finding> findings, backend::Preference preference);

}  // namespace simile::doctor
