#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/symptoms.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// What a running server says of itself.
struct ServerAnswers {
  std::string address;
  v1::GetServerInfoResponse info;
  v1::ListCollectionsResponse collections;
  // Only of a server that runs with --allow-admin.
  std::optional<v1::DiagnoseResponse> diagnosis;
  std::optional<v1::GetStatsResponse> stats;
};

// Why its GPU does not answer, or not everything: what the server's own probes found, the
// collections and batches that went to the CPU, and the faults that the driver reported. Pure.
std::vector<doctor::Finding> FindingsOf(const ServerAnswers& answers);

}  // namespace simile::cli
