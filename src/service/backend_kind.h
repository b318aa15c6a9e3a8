#pragma once

#include "simile/served_by.h"

namespace simile::v1 {
enum BackendKind : int;
}

namespace simile::service {

v1::BackendKind KindOf(const BackendInfo& backend);

}  // namespace simile::service
