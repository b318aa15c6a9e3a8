#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <absl/status/status.h>

#include "backend/gpu_choices.h"
#include "observe/log.h"

namespace simile::app {

// Keeps in the tuning file what loads measured of the GPU's passes: an entry for each card, driver,
// build of this program and size of collection. A file that cannot be read counts as empty.
class GpuChoiceFile final : public backend::GpuChoiceStore {
 public:
  // Who is told of measurements.
  struct Told {
    const observe::Logger& log;           // borrowed
    std::uint32_t batch_queries_max = 0;  // a warning says what this limit costs
  };
  //   file    the tuning file; empty: nothing is kept, and each load measures
  //   driver  its version, "570.133.20"; empty where nobody says
  GpuChoiceFile(std::filesystem::path file, std::string driver, std::optional<Told> told);

  backend::GpuChoices Read(const backend::GpuSegmentKey& key) override;
  void Write(const backend::GpuSegmentKey& key, const backend::GpuChoices& choices) override;

  // Writes the entry, and keeps the newest 16. Errors: those of the tuning file.
  absl::Status Keep(const backend::GpuSegmentKey& key, const backend::GpuChoices& choices) const;

 private:
  void WarnOfLimit(const backend::GpuChoices& choices) const;

  const std::filesystem::path file_;
  const std::string driver_;
  const std::optional<Told> told_;
};

}  // namespace simile::app
