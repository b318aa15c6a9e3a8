#include "service/grpc/method.h"

#include <string_view>
#include <utility>

namespace simile::service {
namespace {

MethodIdentity IdentityOf(RpcEnvironment& environment, const MethodRow& row) {
  const std::string_view name = row.path + 1;
  return {name, row.is_recorded ? &environment.metrics.CallsOf(name) : nullptr};
}

}  // namespace

Method::Method(RpcEnvironment& environment, const MethodRow& row, Type type)
    : environment_(environment), row_(row), identity_(IdentityOf(environment, row)), type_(type) {}

MethodService::MethodService(std::vector<std::unique_ptr<Method>> methods)
    : methods_(std::move(methods)) {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    // gRPC owns what it is given here.
    AddMethod(new grpc::internal::RpcServiceMethod(methods_[i]->row().path, methods_[i]->type(),
                                                   nullptr));
    MarkMethodRaw(static_cast<int>(i));
  }
}

void MethodService::TakeCalls(net::IoThread& thread) {
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    methods_[i]->TakeCalls(*this, static_cast<int>(i), thread);
  }
}

}  // namespace simile::service
