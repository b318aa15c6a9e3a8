#include "service/admin_handlers.h"

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error_detail.h"
#include "observe/build_info.h"
#include "service/calls/call.h"
#include "simile/v1/admin.pb.h"

namespace simile::service {
namespace {

using Member = std::variant<std::uint32_t Limits::*, std::uint64_t Limits::*,
                            std::chrono::milliseconds Limits::*>;

// Every member of Limits, in its order; a test compares the two.
constexpr std::pair<const char*, Member> kMembers[] = {
    {"k_max", &Limits::k_max},
    {"queries_per_call_max", &Limits::queries_per_call_max},
    {"dim_max", &Limits::dim_max},
    {"excluded_ids_max", &Limits::excluded_ids_max},
    {"exclusions_per_call_max", &Limits::exclusions_per_call_max},
    {"allowed_ids_max", &Limits::allowed_ids_max},
    {"item_collections_per_call_max", &Limits::item_collections_per_call_max},
    {"payload_fields_max", &Limits::payload_fields_max},
    {"filter_bytes_max", &Limits::filter_bytes_max},
    {"filters_per_call_max", &Limits::filters_per_call_max},
    {"examples_max", &Limits::examples_max},
    {"vectors_per_call_max", &Limits::vectors_per_call_max},
    {"diversity_candidates_max", &Limits::diversity_candidates_max},
    {"diversity_pairs_per_call_max", &Limits::diversity_pairs_per_call_max},
    {"group_rows_per_call_max", &Limits::group_rows_per_call_max},
    {"explained_ids_max", &Limits::explained_ids_max},
    {"field_name_bytes_max", &Limits::field_name_bytes_max},
    {"fetch_ids_max", &Limits::fetch_ids_max},
    {"lookup_hits_max", &Limits::lookup_hits_max},
    {"lookup_text_bytes_max", &Limits::lookup_text_bytes_max},
    {"field_values_max", &Limits::field_values_max},
    {"collections_page_max", &Limits::collections_page_max},
    {"id_bytes_max", &Limits::id_bytes_max},
    {"collection_name_bytes_max", &Limits::collection_name_bytes_max},
    {"queue_queries_max", &Limits::queue_queries_max},
    {"queue_bytes_max", &Limits::queue_bytes_max},
    {"batch_queries_max", &Limits::batch_queries_max},
    {"receive_bytes_max", &Limits::receive_bytes_max},
    {"metadata_bytes_max", &Limits::metadata_bytes_max},
    {"reply_bytes_default", &Limits::reply_bytes_default},
    {"reply_bytes_max", &Limits::reply_bytes_max},
    {"stream_requests_max", &Limits::stream_requests_max},
    {"unsent_bytes_max", &Limits::unsent_bytes_max},
    {"resolve_bytes_max", &Limits::resolve_bytes_max},
    {"connections_max", &Limits::connections_max},
    {"connections_per_peer_max", &Limits::connections_per_peer_max},
    {"half_open_connections_max", &Limits::half_open_connections_max},
    {"ipv6_peer_bits", &Limits::ipv6_peer_bits},
    {"streams_per_connection_max", &Limits::streams_per_connection_max},
    {"unfinished_bytes_per_peer_max", &Limits::unfinished_bytes_per_peer_max},
    {"session_bytes_max", &Limits::session_bytes_max},
    {"resets_per_second_max", &Limits::resets_per_second_max},
    {"empty_frames_per_second_max", &Limits::empty_frames_per_second_max},
    {"handshake_timeout", &Limits::handshake_timeout},
    {"keepalive_time", &Limits::keepalive_time},
    {"keepalive_timeout", &Limits::keepalive_timeout},
    {"connection_idle_max", &Limits::connection_idle_max},
    {"connection_age_max", &Limits::connection_age_max},
    {"connection_age_grace", &Limits::connection_age_grace},
    {"search_deadline_default", &Limits::search_deadline_default},
    {"search_deadline_max", &Limits::search_deadline_max},
    {"drain_delay", &Limits::drain_delay},
    {"drain_timeout", &Limits::drain_timeout},
    {"page_lease", &Limits::page_lease},
    {"rows_max", &Limits::rows_max},
    {"npy_header_bytes_max", &Limits::npy_header_bytes_max},
    {"safetensors_header_bytes_max", &Limits::safetensors_header_bytes_max},
    {"jsonl_line_bytes_max", &Limits::jsonl_line_bytes_max},
    {"id_list_bytes_max", &Limits::id_list_bytes_max},
    {"collection_json_bytes_max", &Limits::collection_json_bytes_max},
    {"unread_files_max", &Limits::unread_files_max},
    {"json_depth_max", &Limits::json_depth_max},
    {"payload_fields_per_collection_max", &Limits::payload_fields_per_collection_max},
};

// Reads a member, with the name that a caller sees.
struct ReadMember {
  const Limits& limits;
  const char* name;

  LimitValue operator()(std::chrono::milliseconds Limits::*member) const {
    return {std::string(name) + "_ms", static_cast<std::uint64_t>((limits.*member).count())};
  }
  template <class Number>
  LimitValue operator()(Number Limits::*member) const {
    return {name, limits.*member};
  }
};

// What a client may rely on in this server: a name for each ability that an older server lacks. A
// name stays as long as the ability; docs/api.md says what each means.
constexpr std::array<std::string_view, 27> kCapabilities = {
    "allow_ids",                   // SearchOptions.allow_ids
    "as_stored",                   // FloatVector.as_stored, PackedVector.as_stored
    "change_progress",             // Load, Reload and Rollback stream their progress
    "describe_field",              // DescribeFieldsRequest.field
    "diagnose",                    // AdminService.Diagnose, if GetServerInfo has admin_allowed
    "error_details",               // google.rpc.Status with a reason on every error
    "expected_snapshot_id",        // on queries, look-ups and changes
    "explain",                     // SearchService.Explain
    "export",                      // SearchService.Export
    "integer_groups",              // group_by of integers and lists of them
    "items_of_collections",        // Query.item, Example.item, Blend.item
    "layout_columns",              // SearchOptions.layout
    "list_filters",                // filters over lists of integers, numbers and booleans
    "list_pages",                  // ListCollections in pages
    "nested_fields",               // fields inside objects: meta.year
    "notes",                       // what of an answer was cut, and what had no effect
    "page_tokens_across_servers",  // a token is good on any server with the content
    "partial",                     // on queries and Fetch
    "payload_selector",            // one selector for search and look-up
    "priority",                    // SearchOptions.priority
    "receipt_brief",               // RECEIPT_DETAIL_BRIEF
    "receipt_timed",               // RECEIPT_DETAIL_TIMED
    "reload_folder",               // ReloadCollectionRequest.folder
    "required_filter",             // on queries and look-ups
    "rollback",                    // RollbackCollection
    "search_stream",               // SearchService.SearchStream
    "stats",                       // AdminService.GetStats, if GetServerInfo has admin_allowed
};

void FillHistogram(const observe::HistogramSample& sample, v1::Histogram& message) {
  message.set_count(sample.count);
  message.set_sum(sample.sum);
  for (const observe::HistogramSample::Bucket& bucket : sample.buckets) {
    v1::HistogramBucket& filled = *message.add_buckets();
    filled.set_upper_bound(bucket.upper_bound);
    filled.set_cumulative_count(bucket.cumulative_count);
  }
}

void FillMetric(const observe::MetricSample& sample, v1::MetricValue& message) {
  message.set_name(sample.name);
  for (const auto& [name, value] : sample.labels) (*message.mutable_labels())[name] = value;
  if (const double* number = std::get_if<double>(&sample.value)) {
    message.set_number(*number);
  } else {
    FillHistogram(std::get<observe::HistogramSample>(sample.value), *message.mutable_histogram());
  }
}

v1::Finding::State ToFindingState(doctor::State state) {
  switch (state) {
    case doctor::State::kOk:
      return v1::Finding::STATE_OK;
    case doctor::State::kWarning:
      return v1::Finding::STATE_WARNING;
    case doctor::State::kFailed:
      return v1::Finding::STATE_FAILED;
    case doctor::State::kSkipped:
      return v1::Finding::STATE_SKIPPED;
  }
  return v1::Finding::STATE_UNSPECIFIED;
}

void FillFinding(const doctor::Finding& finding, v1::Finding& message) {
  message.set_probe(finding.probe);
  message.set_state(ToFindingState(finding.state));
  message.set_text(finding.text);
  message.set_fix(finding.fix);
  message.set_symptom(finding.symptom);
}

absl::Status CheckAdminAllowed(const AdminParts& parts) {
  if (parts.admin_allowed) return absl::OkStatus();
  return base::Error(base::ErrorReason::kAdminNotAllowed,
                     "this server does not show its metrics and probes over the wire; start it "
                     "with --allow-admin (server.admin_allowed)");
}

// Whether the caller's role is this one or a higher one; true where anyone may call.
bool HasRole(const CallAccess& access, Role role) {
  return access.principal() == nullptr || access.principal()->role >= role;
}

}  // namespace

std::vector<LimitValue> LimitValues(const Limits& limits) {
  std::vector<LimitValue> values;
  for (const auto& [name, member] : kMembers) {
    values.push_back(std::visit(ReadMember{limits, name}, member));
  }
  return values;
}

void HandleGetServerInfo(const AdminParts& parts, Call& call, v1::GetServerInfoResponse& response) {
  call.Finish(Guarded([&] {
    const observe::BuildInfo build = observe::GetBuildInfo();
    response.set_version(std::string(build.version));
    response.set_commit(std::string(build.commit));
    response.set_compiler(std::string(build.compiler));
    response.set_build_type(std::string(build.build_type));
    FillTime(parts.started_at, *response.mutable_started_at());
    for (const std::string_view name : kCapabilities) response.add_capabilities(std::string(name));
    for (const LimitValue& limit : LimitValues(parts.limits)) {
      (*response.mutable_limits())[limit.name] = limit.value;
    }
    FillBackend(parts.backend, call.access(), *response.mutable_backend());
    const CallAccess& access = call.access();
    response.set_changes_allowed(parts.changes_allowed && HasRole(access, Role::kWrite));
    response.set_admin_allowed(parts.admin_allowed && HasRole(access, Role::kAdmin) &&
                               access.sees_all());
  }));
}

void HandleGetStats(const AdminParts& parts, Call& call, v1::GetStatsResponse& response) {
  call.Finish(Guarded([&] {
    absl::Status allowed = CheckAdminAllowed(parts);
    if (!allowed.ok()) return allowed;
    const auto server = call.access().PermitServer();
    if (!server.ok()) return server.status();
    FillTime(parts.clock.WallNow(), *response.mutable_taken_at());
    FillTime(parts.started_at, *response.mutable_started_at());
    response.set_uptime_us(Microseconds(parts.clock.Now() - parts.started));
    FillBackend(parts.backend, call.access(), *response.mutable_backend());
    for (const observe::MetricSample& sample : parts.read_metrics(*server)) {
      FillMetric(sample, *response.add_metrics());
    }
    return absl::OkStatus();
  }));
}

void HandleDiagnose(const AdminParts& parts, Call& call, v1::DiagnoseResponse& response) {
  const absl::Status begun = Guarded([&] {
    absl::Status allowed = CheckAdminAllowed(parts);
    if (!allowed.ok()) return allowed;
    const auto server = call.access().PermitServer();  // findings tell of all collections' memory
    if (!server.ok()) return server.status();
    parts.examination.Run([&call, &response](const SelfExamination::Findings& findings) {
      call.Finish(Guarded([&] {
        if (!findings.ok()) return findings.status();
        for (const doctor::Finding& finding : *findings) {
          FillFinding(finding, *response.add_findings());
        }
        return absl::OkStatus();
      }));
    });
    return absl::OkStatus();
  });
  if (!begun.ok()) call.Finish(begun);
}

}  // namespace simile::service
