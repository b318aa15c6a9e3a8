#include "app/gpu_choice_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/tuning_file.h"
#include "backend/build_id.h"

namespace simile::app {
namespace {

using backend::GpuChoices;
using backend::GpuPassChoice;
using backend::GpuSegmentKey;
using Json = nlohmann::ordered_json;

constexpr const char* kSegments = "gpu_segments";
constexpr const char* kPasses = "passes";
constexpr const char* kGatherShare = "gather_share";
constexpr const char* kQueriesOfPass = "queries_of_pass";
constexpr std::size_t kSegmentsMax = 16;
constexpr unsigned kNumberMax = 1U << 30;

Json KeyJson(const GpuSegmentKey& key, const std::string& driver) {
  return {{"card", key.card},           {"driver", driver},
          {"build", backend::kBuildId}, {"rows", key.row_count},
          {"stride", key.stride},       {"int8", key.has_int8}};
}

bool Matches(const Json& entry, const Json& key) {
  return entry.is_object() && std::ranges::all_of(key.items(), [&](const auto& member) {
           return entry.contains(member.key()) && entry.at(member.key()) == member.value();
         });
}

Json PassJson(const GpuPassChoice& pass) {
  return {{"queries_max", pass.queries_max},
          {"hits_max", pass.hits_max},
          {"variant", pass.variant},
          {"finishes_in_one_launch", pass.finishes_in_one_launch},
          {"is_mapped", pass.is_mapped},
          {"second_gate_share", pass.second_gate_share},
          {"tile_rows", pass.tile_rows},
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
  double Seconds(const char* name) {
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

// Nothing where anything in it is not as Keep left it: then all is doubtful.
std::optional<GpuChoices> Parse(const Json& entry) {
  Members members(entry);
  GpuChoices choices;
  choices.gather_share = members.Number(kGatherShare);
  choices.queries_of_pass = members.Number(kQueriesOfPass);
  const Json* const passes = members.Array(kPasses);
  if (!members.ok()) return std::nullopt;
  for (const Json& each : *passes) {
    Members pass(each);
    choices.passes.push_back(
        {pass.Number("queries_max"), pass.Number("hits_max"), pass.Text("variant"),
         pass.Bool("finishes_in_one_launch"), pass.Bool("is_mapped"),
         pass.Number("second_gate_share"), pass.Number("tile_rows"), pass.Seconds("seconds"),
         pass.Seconds("rules_seconds")});
    if (!pass.ok()) return std::nullopt;
  }
  return choices;
}

}  // namespace

GpuChoiceFile::GpuChoiceFile(std::filesystem::path file, std::string driver,
                             std::optional<Told> told)
    : file_(std::move(file)), driver_(std::move(driver)), told_(told) {}

GpuChoices GpuChoiceFile::Read(const GpuSegmentKey& key) {
  if (file_.empty()) return {};
  const absl::StatusOr<Json> content = ReadTuningFile(file_);
  if (!content.ok() || !content->contains(kSegments)) return {};
  const Json wanted = KeyJson(key, driver_);
  for (const Json& entry : content->at(kSegments)) {
    if (!Matches(entry, wanted)) continue;
    const auto choices = Parse(entry);
    if (!choices) return {};
    WarnOfLimit(*choices);
    return *choices;
  }
  return {};
}

void GpuChoiceFile::Write(const GpuSegmentKey& key, const GpuChoices& choices) {
  const absl::Status kept = file_.empty() ? absl::OkStatus() : Keep(key, choices);
  if (!told_) return;
  const auto faster = std::ranges::count_if(choices.passes, [](const GpuPassChoice& pass) {
    return pass.seconds < pass.rules_seconds;
  });
  told_->log.Info("measured the GPU's passes", {{"rows", key.row_count},
                                                {"dim", key.stride},
                                                {"classes", choices.passes.size()},
                                                {"faster_than_the_rules", faster}});
  // A read-only home folder is normal in a container.
  if (!kept.ok()) {
    told_->log.Info("the GPU's times are not kept", {{"reason", std::string(kept.message())}});
  }
  WarnOfLimit(choices);
}

absl::Status GpuChoiceFile::Keep(const GpuSegmentKey& key, const GpuChoices& choices) const {
  absl::StatusOr<Json> content = ReadTuningFile(file_);
  if (!content.ok()) return content.status();
  Json entry = KeyJson(key, driver_);
  Json segments = Json::array();
  for (Json& other : (*content)[kSegments]) {
    if (!Matches(other, entry)) segments.push_back(std::move(other));
  }
  while (segments.size() >= kSegmentsMax) segments.erase(0);
  entry[kGatherShare] = choices.gather_share;
  entry[kQueriesOfPass] = choices.queries_of_pass;
  entry[kPasses] = Json::array();
  for (const GpuPassChoice& pass : choices.passes) entry[kPasses].push_back(PassJson(pass));
  segments.push_back(std::move(entry));
  (*content)[kSegments] = std::move(segments);
  return WriteTuningFile(file_, *content);
}

// By the times of the shortest answers.
void GpuChoiceFile::WarnOfLimit(const GpuChoices& choices) const {
  if (!told_ || choices.passes.empty()) return;
  const unsigned hits =
      std::ranges::min(choices.passes, {}, &GpuPassChoice::hits_max).hits_max;
  const auto rate = [](const GpuPassChoice& pass) { return pass.queries_max / pass.seconds; };
  double best = 0;
  double within = 0;
  std::uint32_t queries = 0;  // of the best pass
  for (const GpuPassChoice& pass : choices.passes) {
    if (pass.hits_max != hits || pass.seconds <= 0) continue;
    if (rate(pass) > best) {
      best = rate(pass);
      queries = pass.queries_max;
    }
    if (pass.queries_max <= told_->batch_queries_max) within = std::max(within, rate(pass));
  }
  constexpr double kCosts = 0.95;
  if (within == 0 || within >= kCosts * best) return;
  told_->log.Warn("limits.batch_queries_max makes the GPU slower",
                  {{"limit", told_->batch_queries_max},
                   {"queries_per_s", std::round(within)},
                   {"best_batch", queries},
                   {"best_queries_per_s", std::round(best)}});
}

}  // namespace simile::app
