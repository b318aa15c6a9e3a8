#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "backend/gpu_search.h"
#include "backend/nvml.h"
#include "doctor/driver_api.h"
#include "doctor/examination.h"
#include "doctor/machine.h"
#include "doctor/symptoms.h"
#include "simile/backend.h"

namespace simile::doctor {

// The names of the probes.
inline constexpr std::string_view kNodes = "device nodes";
inline constexpr std::string_view kManagement = "management library";
inline constexpr std::string_view kCard = "card";
inline constexpr std::string_view kDriver = "driver";
inline constexpr std::string_view kPlugin = "plug-in";
inline constexpr std::string_view kRuntime = "runtime";
inline constexpr std::string_view kBlas = "cuBLAS, memory";
inline constexpr std::string_view kKernels = "kernel test";

// How many queries are used to compare the backends.
inline constexpr std::size_t kComparedQueries = 64;

// One examination, from the device nodes up to a search. Call the probes in the order of their
// declarations, because each stores results for later ones. Used by one thread. Calls into the
// driver; see ExamineGpu.
class GpuExamination {
 public:
  // Borrows the options.
  explicit GpuExamination(const Options& options);

  // Why a server's device and driver must not be touched; empty if they may.
  std::string WhyLeftAlone() const;

  Finding ExamineNodes() const;
  Finding ExamineManagement();
  Finding ExamineCard();
  Finding ExamineDriver();
  Finding ExaminePlugin();
  Finding ExamineRuntime();
  Finding ExamineBlas();
  Finding ExamineKernels() const;

 private:
  // The environment variable's value; empty if it is not set.
  std::string Variable(const char* name) const { return machine_.variable(name).value_or(""); }
  Finding WithoutCardNodes(std::string_view missing) const;
  Finding ForManagementError(std::string_view probe, const std::string& subject,
                             const absl::Status& status) const;
  Finding ForCard(unsigned index, const backend::GpuReading& card) const;
  Finding ForXid(const XidRecord& record) const;
  std::optional<std::size_t> CardInUse() const;
  Finding ForDriverError(std::string_view probe, int code, const std::string& detail) const;
  Finding ForNoDevice(std::string_view probe, const std::string& detail) const;
  std::string Holders() const;
  Finding ReadPlugins();
  std::vector<std::string> BlasNames() const;
  std::string BlasText() const;

  const Options& options_;
  const Machine& machine_;
  const Place place_;
  const std::string module_;
  const backend::GpuSearch search_;
  std::unique_ptr<backend::Nvml> nvml_;  // null: the library is not usable
  unsigned card_count_ = 0;
  std::vector<std::string> uuids_;  // of the cards, by number; empty for a card that reports none
  DriverAnswer driver_;
  bool driver_works_ = false;
  std::optional<backend::FoundPlugin> plugin_;
  std::string toolkit_;  // of the plug-in that is or would be used: "CUDA 13.0"; empty: no plug-in
  std::optional<backend::FoundDevice> device_;
  std::unique_ptr<Backend> gpu_;
};

}  // namespace simile::doctor
