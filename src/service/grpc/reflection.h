#pragma once

#include <memory>
#include <span>
#include <vector>

#include "net/rpc_call.h"

namespace simile::service {

// gRPC's server reflection, v1 and v1alpha: describes the services of these methods and itself to
// anyone who asks, from the descriptors of the protobuf library.
std::vector<std::unique_ptr<net::RpcMethod>> ReflectionMethods(
    std::span<net::RpcMethod* const> methods);

}  // namespace simile::service
