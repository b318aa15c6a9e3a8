#include "service/admin_handlers.h"

#include <array>
#include <string>

#include "observe/build_info.h"
#include "service/guarded.h"
#include "service/limit_values.h"
#include "simile/v1/admin.pb.h"

namespace simile::service {
namespace {

constexpr std::array<std::string_view, 12> kCapabilities = {
    "as_stored",                   // FloatVector.as_stored, PackedVector.as_stored
    "change_progress",             // Load, Reload and Rollback stream their progress
    "error_details",               // google.rpc.Status with a reason on every error
    "expected_snapshot_id",        // on queries, look-ups and changes
    "list_pages",                  // ListCollections in pages
    "page_tokens_across_servers",  // a token is good on any server with the content
    "payload_selector",            // one selector for search and look-up
    "receipt_brief",               // RECEIPT_DETAIL_BRIEF
    "reload_folder",               // ReloadCollectionRequest.folder
    "required_filter",             // on queries and look-ups
    "rollback",                    // RollbackCollection
    "search_stream",               // SearchService.SearchStream
};

}  // namespace

std::span<const std::string_view> Capabilities() { return kCapabilities; }

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
    FillBackend(parts.backend, *response.mutable_backend());
    response.set_changes_allowed(parts.changes_allowed);
    return absl::OkStatus();
  }));
}

}  // namespace simile::service
