#pragma once

#include <memory>

#include "service/grpc/method.h"
#include "service/search_pipeline.h"

namespace simile::service {

// The row of SearchStream in the table: makes a call of each message, within the bounds of a
// StreamWindow, and sends the answers one after the other.
std::unique_ptr<Method> SearchStreamMethod(RpcEnvironment& environment, const MethodRow& row,
                                           const SearchPipeline& pipeline);

}  // namespace simile::service
