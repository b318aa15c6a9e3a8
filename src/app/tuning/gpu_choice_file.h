#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include <absl/status/status.h>

#include "backend/gpu_choices.h"
#include "backend/registry.h"
#include "observe/log.h"

namespace simile::app {

// The version of the GPU's driver, for the entries of the file. Empty where the version is unknown,
// or the preference is the CPU.
std::string DriverFor(backend::Preference preference);

// Keeps the loads' measurements of the GPU's passes in the tuning file: an entry for each card,
// driver, build of this program and size of collection. A file that cannot be read counts as empty.
class GpuChoiceFile final : public backend::GpuChoiceStore {
 public:
  // Where a server logs the measurements of loads.
  struct LoadLog {
    const observe::Logger& log;           // borrowed
    std::uint32_t batch_queries_max = 0;  // a warning says what this limit costs
  };
  //   file    the tuning file; empty: nothing is kept, and each load measures
  //   driver  its version, "570.133.20"; empty where it is unknown
  GpuChoiceFile(std::filesystem::path file, std::string driver, std::optional<LoadLog> load_log);

  backend::GpuChoices Read(const backend::GpuSegmentKey& key) override;
  void Write(const backend::GpuSegmentKey& key, const backend::GpuChoices& choices) override;

  // Writes entries in one step. Beyond 64 entries drops the oldest, entries of other drivers and
  // builds first. Errors: those of the tuning file.
  absl::Status WriteEntries(std::span<const backend::MeasuredChoices> measured) const;

 private:
  void WarnOfLimit(const backend::GpuSegmentKey& key, const backend::GpuChoices& choices);

  const std::filesystem::path file_;
  const std::string driver_;
  const std::optional<LoadLog> load_log_;
  std::optional<backend::GpuSegmentKey> warned_of_;
};

}  // namespace simile::app
