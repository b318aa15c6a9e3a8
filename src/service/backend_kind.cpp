#include "service/backend_kind.h"

#include "simile/v1/types.pb.h"

namespace simile::service {

v1::BackendKind KindOf(const BackendInfo& backend) {
  if (backend.name == "cpu") return v1::BACKEND_KIND_CPU;
  if (backend.name == "gpu") return v1::BACKEND_KIND_GPU;
  return v1::BACKEND_KIND_UNSPECIFIED;
}

}  // namespace simile::service
