#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <absl/status/status.h>

#include "service/call.h"
#include "service/guarded.h"

namespace simile::service {

// Finishes a call with the reply that `make` returns, or with its error.
//   make  returns an absl::StatusOr of a Reply; may throw
template <class Make>
void FinishWithReply(Call& call, Make&& make) {
  std::optional<typename std::invoke_result_t<Make>::value_type> reply;
  const absl::Status status = Guarded([&] {
    auto made = make();
    absl::Status make_status = made.status();
    if (made.ok()) reply.emplace(*std::move(made));
    return make_status;
  });
  reply ? call.FinishWith(*reply) : call.Finish(status);
}

}  // namespace simile::service
