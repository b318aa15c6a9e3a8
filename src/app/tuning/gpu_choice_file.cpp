#include "app/tuning/gpu_choice_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/config/json_file.h"
#include "app/tuning/better_tuning.h"
#include "backend/build_id.h"
#include "backend/nvml.h"

namespace simile::app {
namespace {

using backend::GpuChoices;
using backend::GpuPassChoice;
using backend::GpuSegmentKey;
using Json = nlohmann::ordered_json;

constexpr const char* kSegments = "gpu_segments";
constexpr const char* kPasses = "passes";
constexpr const char* kGatherShare = "gather_share";
constexpr const char* kSufficientBatch = "sufficient_batch";
constexpr std::size_t kSegmentsMax = 64;
constexpr unsigned kNumberMax = 1U << 30;

Json KeyJson(const GpuSegmentKey& key, const std::string& driver) {
  return {{"card", key.card},      {"driver", driver},     {"build", backend::kBuildId},
          {"rows", key.row_count}, {"stride", key.stride}, {"int8", key.has_int8}};
}

Json PassJson(const GpuPassChoice& pass) {
  return {{"queries_max", pass.queries_max},
          {"hits_max", pass.hits_max},
          {"variant", pass.variant},
          {"finish", backend::FinishText(pass.finish)},
          {"is_mapped", pass.is_mapped},
          {"second_gate_share", pass.second_gate_share},
          {"tile_factor", pass.tile_factor},
          {"seconds", pass.seconds},
          {"rules_seconds", pass.rules_seconds}};
}

// Reads members of one JSON object, and notes when one is missing or of another type.
class Members {
 public:
  explicit Members(const Json& object) : object_(object), ok_(object.is_object()) {}

  unsigned Number(const char* name) {
    const Json* const found = Find(name, [](const Json& value) {
      return value.is_number_unsigned() && value.get<std::uint64_t>() <= kNumberMax;
    });
    return found != nullptr ? found->get<unsigned>() : 0;
  }
  double Real(const char* name) {
    const Json* const found =
        Find(name, [](const Json& value) { return value.is_number() && value.get<double>() >= 0; });
    return found != nullptr ? found->get<double>() : 0;
  }
  bool Bool(const char* name) {
    const Json* const found = Find(name, [](const Json& value) { return value.is_boolean(); });
    return found != nullptr && found->get<bool>();
  }
  std::string Text(const char* name) {
    const Json* const found = Find(name, [](const Json& value) { return value.is_string(); });
    return found != nullptr ? found->get<std::string>() : "";
  }
  backend::FinishForm Finish() {
    const auto found =
        std::ranges::find(backend::kFinishForms, Text("finish"), &backend::FinishText);
    if (found != backend::kFinishForms.end()) return *found;
    ok_ = false;
    return {};
  }
  const Json* Array(const char* name) {
    return Find(name, [](const Json& value) { return value.is_array(); });
  }
  bool ok() const { return ok_; }

 private:
  template <class IsValid>
  const Json* Find(const char* name, IsValid is_valid) {
    const auto found = ok_ ? object_.find(name) : object_.end();
    if (!ok_ || found == object_.end() || !is_valid(*found)) {
      ok_ = false;
      return nullptr;
    }
    return &*found;
  }

  const Json& object_;
  bool ok_;
};

// Nothing if a member is missing or of another type, because then every number is doubtful.
std::optional<GpuChoices> Parse(const Json& entry) {
  Members members(entry);
  GpuChoices choices;
  choices.gather_share = members.Number(kGatherShare);
  choices.sufficient_batch = members.Number(kSufficientBatch);
  const Json* const passes = members.Array(kPasses);
  if (!members.ok()) return std::nullopt;
  for (const Json& each : *passes) {
    Members pass(each);
    choices.passes.push_back({pass.Number("queries_max"), pass.Number("hits_max"),
                              pass.Text("variant"), pass.Finish(), pass.Bool("is_mapped"),
                              pass.Number("second_gate_share"), pass.Real("tile_factor"),
                              pass.Real("seconds"), pass.Real("rules_seconds")});
    if (!pass.ok()) return std::nullopt;
  }
  return choices;
}

}  // namespace

std::string DriverFor(backend::Preference preference) {
  return preference == backend::Preference::kCpu ? "" : backend::NvmlLibraryVersion();
}

GpuChoiceFile::GpuChoiceFile(std::filesystem::path file, std::string driver,
                             std::optional<LoadLog> load_log)
    : file_(std::move(file)), driver_(std::move(driver)), load_log_(load_log) {}

GpuChoices GpuChoiceFile::Read(const GpuSegmentKey& key) {
  if (file_.empty()) return {};
  const absl::StatusOr<Json> content = ReadTuningFile(file_);
  if (!content.ok() || !content->contains(kSegments)) return {};
  const Json wanted = KeyJson(key, driver_);
  for (const Json& entry : content->at(kSegments)) {
    if (!IsEntryFor(entry, wanted)) continue;
    const auto choices = Parse(entry);
    if (!choices) return {};
    WarnOfLimit(key, *choices);
    return *choices;
  }
  return {};
}

void GpuChoiceFile::Write(const GpuSegmentKey& key, const GpuChoices& choices) {
  const backend::MeasuredChoices measured{key, choices};
  const absl::Status written = file_.empty() ? absl::OkStatus() : WriteEntries({&measured, 1});
  if (!load_log_) return;
  const auto faster = std::ranges::count_if(
      choices.passes, [](const GpuPassChoice& pass) { return pass.seconds < pass.rules_seconds; });
  load_log_->log.Info("measured the GPU's passes", {{"rows", key.row_count},
                                                    {"dim", key.stride},
                                                    {"classes", choices.passes.size()},
                                                    {"faster_than_the_rules", faster}});
  // A read-only home folder is normal in a container.
  if (!written.ok()) {
    load_log_->log.Info("the GPU's times are not kept",
                        {{"reason", std::string(written.message())}});
  }
  WarnOfLimit(key, choices);
}

absl::Status GpuChoiceFile::WriteEntries(std::span<const backend::MeasuredChoices> measured) const {
  absl::StatusOr<Json> content = ReadTuningFile(file_);
  if (!content.ok()) return content.status();
  Json& segments = (*content)[kSegments];
  if (!segments.is_array()) segments = Json::array();
  for (const auto& [key, choices] : measured) {
    const Json of = KeyJson(key, driver_);
    Json entry = of;
    entry[kGatherShare] = choices.gather_share;
    entry[kSufficientBatch] = choices.sufficient_batch;
    entry[kPasses] = Json::array();
    for (const GpuPassChoice& pass : choices.passes) entry[kPasses].push_back(PassJson(pass));
    std::erase_if(segments.get_ref<Json::array_t&>(),
                  [&](const Json& other) { return IsEntryFor(other, of); });
    segments.push_back(std::move(entry));
  }
  const Json of_ours = {{"driver", driver_}, {"build", backend::kBuildId}};
  while (segments.size() > kSegmentsMax) {
    const auto foreign = std::ranges::find_if(
        segments, [&](const Json& entry) { return !IsEntryFor(entry, of_ours); });
    segments.erase(foreign != segments.end() ? foreign : segments.begin());
  }
  return WriteTuningFile(file_, *content);
}

// Warns where limits.batch_queries_max keeps the GPU below kSufficientShare of its best rate.
// Compares the classes of passes with the fewest hits.
void GpuChoiceFile::WarnOfLimit(const GpuSegmentKey& key, const GpuChoices& choices) {
  if (!load_log_ || choices.passes.empty() || warned_of_ == key) return;
  const unsigned hits = std::ranges::min(choices.passes, {}, &GpuPassChoice::hits_max).hits_max;
  const auto rate = [](const GpuPassChoice& pass) { return pass.queries_max / pass.seconds; };
  // The class of passes as large as the limit. Smaller classes are within the limit, too.
  unsigned class_max = 0;
  for (const GpuPassChoice& pass : choices.passes) {
    const bool covers = pass.queries_max >= load_log_->batch_queries_max;
    if (covers && (class_max == 0 || pass.queries_max < class_max)) class_max = pass.queries_max;
  }
  if (class_max == 0) return;
  double best_rate = 0;
  double rate_within_limit = 0;
  std::uint32_t best_batch = 0;
  for (const GpuPassChoice& pass : choices.passes) {
    if (pass.hits_max != hits || pass.seconds <= 0) continue;
    if (rate(pass) > best_rate) {
      best_rate = rate(pass);
      best_batch = pass.queries_max;
    }
    if (pass.queries_max <= class_max) rate_within_limit = std::max(rate_within_limit, rate(pass));
  }
  if (rate_within_limit >= kSufficientShare * best_rate) return;
  warned_of_ = key;
  load_log_->log.Warn("limits.batch_queries_max makes the GPU slower",
                      {{"limit", load_log_->batch_queries_max},
                       {"queries_per_s", std::round(rate_within_limit)},
                       {"best_batch", best_batch},
                       {"best_queries_per_s", std::round(best_rate)}});
}

}  // namespace simile::app
