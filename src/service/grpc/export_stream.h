#pragma once

#include <memory>

#include "service/grpc/method.h"
#include "service/search_pipeline.h"
#include "service/served_snapshots.h"

namespace simile::service {

// What an Export is answered with. Borrowed.
struct ExportServices {
  const ServedSnapshots& snapshots;
  const SearchPipeline& pipeline;
};

// The row of Export in the table: computes the next message while one is being sent, and holds no
// more than these two. A message that takes too long or becomes too large is made again of fewer
// sources.
std::unique_ptr<Method> ExportMethod(RpcEnvironment& environment, const MethodRow& row,
                                     const ExportServices& services);

}  // namespace simile::service
