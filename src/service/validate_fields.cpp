#include "service/validate_fields.h"

#include <cmath>

#include <fmt/format.h>

#include "data/wording.h"
#include "service/collection_name.h"
#include "service/refuse.h"
#include "simile/v1/lookup.pb.h"

namespace simile::service {
namespace {

absl::Status RefuseField(std::string_view field, const std::string& what) {
  return Refuse("{}: {}", field, what);
}

}  // namespace

absl::Status CheckId(std::string_view field, std::string_view id, const Limits& limits) {
  if (id.empty()) {
    return RefuseField(field, fmt::format("empty; an id has 1 to {} bytes", limits.id_bytes_max));
  }
  if (id.size() > limits.id_bytes_max) {
    return RefuseField(field, fmt::format("{} bytes; an id has at most {}",
                                          data::Grouped(id.size()), limits.id_bytes_max));
  }
  return absl::OkStatus();
}

absl::Status CheckCount(std::string_view field, std::uint64_t count, std::uint32_t most) {
  if (count >= 1 && count <= most) return absl::OkStatus();
  return RefuseField(field, fmt::format("{} given; a call takes 1 to {}", data::Grouped(count),
                                        data::Grouped(most)));
}

absl::Status CheckK(std::string_view field, std::uint32_t k, const Limits& limits) {
  if (k >= 1 && k <= limits.k_max) return absl::OkStatus();
  return RefuseField(
      field, fmt::format("{}; ask for 1 to {}", data::Grouped(k), data::Grouped(limits.k_max)));
}

absl::Status CheckScoreThreshold(std::string_view field, float score_threshold) {
  if (std::isfinite(score_threshold)) return absl::OkStatus();
  return RefuseField(field,
                     fmt::format("{}; give a finite number, or leave it out for no threshold",
                                 std::isnan(score_threshold) ? "NaN" : "infinite"));
}

absl::Status CheckPayloadChoice(std::string_view field, int field_count, bool without_payload,
                                const Limits& limits) {
  if (field_count > 0 && without_payload) {
    return RefuseField(field, "named along with without_payload; give one or the other");
  }
  if (static_cast<std::uint32_t>(field_count) > limits.payload_fields_max) {
    return RefuseField(field,
                       fmt::format("{} named; at most {}",
                                   data::Counted(static_cast<std::uint64_t>(field_count), "field"),
                                   limits.payload_fields_max));
  }
  return absl::OkStatus();
}

absl::Status ValidateFetch(const v1::FetchRequest& request, const Limits& limits) {
  absl::Status status = CheckCollectionName("collection", request.collection(), limits);
  status.Update(
      CheckCount("ids", static_cast<std::uint64_t>(request.ids_size()), limits.fetch_ids_max));
  for (int index = 0; status.ok() && index < request.ids_size(); ++index) {
    status = CheckId(fmt::format("ids[{}]", index), request.ids(index), limits);
  }
  status.Update(CheckPayloadChoice("payload_fields", request.payload_fields_size(),
                                   request.without_payload(), limits));
  return status;
}

absl::Status ValidateLookup(const v1::LookupRequest& request, const Limits& limits) {
  absl::Status status = CheckCollectionName("collection", request.collection(), limits);
  if (!status.ok()) return status;
  if (request.text().empty() || request.text().size() > limits.lookup_text_bytes_max) {
    return RefuseField("text",
                       fmt::format("{}; give 1 to {}", data::Counted(request.text().size(), "byte"),
                                   limits.lookup_text_bytes_max));
  }
  if (request.has_limit() && (request.limit() < 1 || request.limit() > limits.lookup_hits_max)) {
    return RefuseField("limit", fmt::format("{}; ask for 1 to {}", data::Grouped(request.limit()),
                                            data::Grouped(limits.lookup_hits_max)));
  }
  return absl::OkStatus();
}

}  // namespace simile::service
