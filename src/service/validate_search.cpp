#include "service/validate_search.h"

#include <limits>
#include <utility>

#include <absl/container/flat_hash_set.h>
#include <absl/strings/string_view.h>
#include <fmt/format.h>

#include "data/wording.h"
#include "service/collection_name.h"
#include "service/packed_vector.h"
#include "service/validate_fields.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

constexpr std::uint32_t kDefaultK = 10;
constexpr float kNoThreshold = -std::numeric_limits<float>::infinity();

template <class... Parts>
absl::Status Refuse(fmt::format_string<Parts...> format, Parts&&... parts) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Parts>(parts)...));
}

// k, score_threshold, offset and excluded ids: what a query and the options say alike.
//   path  "queries[3]" or "options"
template <class Message>
absl::Status CheckSharedFields(std::string_view path, const Message& message,
                               const Limits& limits) {
  if (message.has_k()) {
    absl::Status status = CheckK(fmt::format("{}.k", path), message.k(), limits);
    if (!status.ok()) return status;
  }
  if (message.has_score_threshold()) {
    absl::Status status =
        CheckScoreThreshold(fmt::format("{}.score_threshold", path), message.score_threshold());
    if (!status.ok()) return status;
  }
  // Before it is copied for every query that it applies to.
  if (message.filter().size() > limits.filter_bytes_max) {
    return Refuse("{}.filter: {} bytes; a filter may have {}", path,
                  data::Grouped(message.filter().size()), data::Grouped(limits.filter_bytes_max));
  }
  if (static_cast<std::uint32_t>(message.exclude_ids_size()) > limits.excluded_ids_max) {
    return Refuse("{}.exclude_ids: {} given; at most {}", path,
                  data::Counted(static_cast<std::uint64_t>(message.exclude_ids_size()), "id"),
                  data::Grouped(limits.excluded_ids_max));
  }
  for (int index = 0; index < message.exclude_ids_size(); ++index) {
    absl::Status status =
        CheckId(fmt::format("{}.exclude_ids[{}]", path, index), message.exclude_ids(index), limits);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<AnswerShape> ValidateShape(const v1::SearchOptions& options, const Limits& limits) {
  absl::Status choice = CheckPayloadChoice("options.payload_fields", options.payload_fields_size(),
                                           options.without_payload(), limits);
  if (!choice.ok()) return choice;
  AnswerShape shape;
  shape.payload_fields.assign(options.payload_fields().begin(), options.payload_fields().end());
  shape.with_payload = !options.without_payload();
  shape.with_vectors = options.with_vectors();
  shape.reply_bytes_max = limits.reply_bytes_default;
  if (options.has_reply_bytes_max()) {
    shape.reply_bytes_max = options.reply_bytes_max();
    if (shape.reply_bytes_max < 1 || shape.reply_bytes_max > limits.reply_bytes_max) {
      return Refuse("options.reply_bytes_max: {}; give 1 to {}",
                    data::Grouped(shape.reply_bytes_max), data::Grouped(limits.reply_bytes_max));
    }
  }
  return shape;
}

// What the options say for every query. Offset and k are checked together, query by query, since
// either may come from the options.
recommend::QueryRequest FromOptions(const v1::SearchOptions& options) {
  recommend::QueryRequest query;
  query.k = options.has_k() ? options.k() : kDefaultK;
  query.offset = options.offset();
  query.score_threshold = options.has_score_threshold() ? options.score_threshold() : kNoThreshold;
  query.exclude_ids.assign(options.exclude_ids().begin(), options.exclude_ids().end());
  query.filter = options.filter();
  return query;
}

absl::Status CheckReach(std::string_view path, const recommend::QueryRequest& query,
                        const Limits& limits) {
  if (std::uint64_t{query.offset} + query.k <= limits.k_max) return absl::OkStatus();
  return Refuse("{}.offset: {} with k {} reaches past {}; offset + k may be at most that", path,
                data::Grouped(query.offset), data::Grouped(query.k), data::Grouped(limits.k_max));
}

absl::Status CheckExclusionCount(std::uint64_t query_count, std::uint64_t shared_count,
                                 std::uint64_t own_count) {
  const std::uint64_t count = query_count * shared_count + own_count;
  if (count <= kExclusionsPerCallMax) return absl::OkStatus();
  return Refuse(
      "exclude_ids: {} exclusions, the options' list counted for each of {}; a call may "
      "have {}: send fewer queries a call or fewer ids",
      data::Grouped(count), query_count == 1 ? "1 query" : data::Grouped(query_count) + " queries",
      data::Grouped(kExclusionsPerCallMax));
}

absl::Status SetTarget(const std::string& path, const v1::Query& from, bool exclude_seen,
                       const Limits& limits, recommend::QueryRequest& query) {
  switch (from.target_case()) {
    case v1::Query::kVector: {
      const auto& values = from.vector().values();
      if (values.empty()) return Refuse("{}.vector: empty; send a number a dimension", path);
      if (static_cast<std::uint32_t>(values.size()) > limits.dim_max) {
        return Refuse("{}.vector: {} dimensions; a vector has at most {}", path,
                      data::Grouped(static_cast<std::uint64_t>(values.size())),
                      data::Grouped(limits.dim_max));
      }
      query.target = recommend::ByVector{{values.begin(), values.end()}};
      break;
    }
    case v1::Query::kPackedVector: {
      auto values = UnpackVector(path + ".packed_vector", from.packed_vector(), limits.dim_max);
      if (!values.ok()) return values.status();
      query.target = recommend::ByVector{*std::move(values)};
      break;
    }
    case v1::Query::kId: {
      absl::Status status = CheckId(path + ".id", from.id(), limits);
      if (!status.ok()) return status;
      query.target = recommend::ByItem{from.id()};
      break;
    }
    case v1::Query::kUserId: {
      absl::Status status = CheckId(path + ".user_id", from.user_id(), limits);
      if (!status.ok()) return status;
      query.target = recommend::ByUser{from.user_id(), exclude_seen};
      return absl::OkStatus();
    }
    case v1::Query::TARGET_NOT_SET:
      return Refuse("{}: no target; set vector, packed_vector, id or user_id", path);
  }
  if (from.exclude_seen()) {
    return Refuse("{}.exclude_seen: only queries by user_id have seen anything", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<recommend::QueryRequest> ValidateQuery(const std::string& path,
                                                      const v1::Query& from,
                                                      const v1::SearchOptions& options,
                                                      const recommend::QueryRequest& defaults,
                                                      const Limits& limits) {
  absl::Status status = CheckSharedFields(path, from, limits);
  if (!status.ok()) return status;
  recommend::QueryRequest query = defaults;
  if (from.has_k()) query.k = from.k();
  if (from.has_offset()) query.offset = from.offset();
  if (from.has_score_threshold()) query.score_threshold = from.score_threshold();
  if (from.has_filter()) query.filter = from.filter();
  query.exclude_ids.insert(query.exclude_ids.end(), from.exclude_ids().begin(),
                           from.exclude_ids().end());
  status = CheckReach(path, query, limits);
  if (!status.ok()) return status;
  const bool exclude_seen = from.has_exclude_seen() ? from.exclude_seen() : options.exclude_seen();
  status = SetTarget(path, from, exclude_seen, limits, query);
  if (!status.ok()) return status;
  return query;
}

}  // namespace

absl::StatusOr<ValidSearch> ValidateSearch(const v1::SearchRequest& request, const Limits& limits) {
  absl::Status status = CheckCollectionName("collection", request.collection(), limits);
  const auto query_count = static_cast<std::uint64_t>(request.queries_size());
  status.Update(CheckCount("queries", query_count, limits.queries_per_call_max));
  if (!status.ok()) return status;
  const v1::SearchOptions& options = request.options();
  status = CheckSharedFields("options", options, limits);
  if (!status.ok()) return status;
  std::uint64_t own_exclusions = 0;
  for (const v1::Query& query : request.queries()) {
    own_exclusions += static_cast<std::uint64_t>(query.exclude_ids_size());
  }
  status = CheckExclusionCount(query_count, static_cast<std::uint64_t>(options.exclude_ids_size()),
                               own_exclusions);
  if (!status.ok()) return status;
  absl::StatusOr<AnswerShape> shape = ValidateShape(options, limits);
  if (!shape.ok()) return shape.status();

  ValidSearch valid{{}, *std::move(shape)};
  valid.queries.reserve(query_count);
  const recommend::QueryRequest defaults = FromOptions(options);
  absl::flat_hash_set<absl::string_view> filters;  // of valid.queries, which do not move
  for (int index = 0; index < request.queries_size(); ++index) {
    auto query = ValidateQuery(fmt::format("queries[{}]", index), request.queries(index), options,
                               defaults, limits);
    if (!query.ok()) return query.status();
    valid.queries.push_back(*std::move(query));
    filters.insert(valid.queries.back().filter);
    if (filters.size() > limits.filters_per_call_max) {
      return Refuse("queries[{}].filter: one too many; a call may have {} different filters", index,
                    data::Grouped(limits.filters_per_call_max));
    }
  }
  return valid;
}

absl::StatusOr<ValidSearch> ValidateRecommend(const v1::RecommendRequest& request,
                                              const Limits& limits) {
  absl::Status status = CheckCollectionName("collection", request.collection(), limits);
  const auto user_count = static_cast<std::uint64_t>(request.user_ids_size());
  status.Update(CheckCount("user_ids", user_count, limits.queries_per_call_max));
  const v1::SearchOptions& options = request.options();
  if (status.ok()) status = CheckSharedFields("options", options, limits);
  status.Update(
      CheckExclusionCount(user_count, static_cast<std::uint64_t>(options.exclude_ids_size()), 0));
  if (!status.ok()) return status;
  absl::StatusOr<AnswerShape> shape = ValidateShape(options, limits);
  if (!shape.ok()) return shape.status();

  ValidSearch valid{{}, *std::move(shape)};
  valid.queries.reserve(user_count);
  recommend::QueryRequest query = FromOptions(options);
  status = CheckReach("options", query, limits);
  for (int index = 0; status.ok() && index < request.user_ids_size(); ++index) {
    status = CheckId(fmt::format("user_ids[{}]", index), request.user_ids(index), limits);
    query.target = recommend::ByUser{request.user_ids(index), options.exclude_seen()};
    valid.queries.push_back(query);
  }
  if (!status.ok()) return status;
  return valid;
}

}  // namespace simile::service
