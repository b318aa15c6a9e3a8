#include "service/admin_handlers.h"

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "base/error_detail.h"
#include "observe/build_info.h"
#include "service/guarded.h"
#include "service/limit_values.h"
#include "simile/v1/admin.pb.h"

namespace simile::service {
namespace {

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

v1::Finding::State FindingStateOf(doctor::State state) {
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
  message.set_state(FindingStateOf(finding.state));
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
