#include "service/grpc/method.h"

#include <utility>

#include "service/guarded.h"

namespace simile::service {

Method::Method(RpcEnvironment& environment, const MethodRow& row, Type type)
    : environment_(environment),
      row_(row),
      metric_(row.is_recorded ? &environment.metrics.CallsOf(name()) : nullptr),
      type_(type) {}

void Method::TakeCalls(const Source& source) {
  source_.emplace(source);
  AskForCalls();
}

void Method::CallArrived() {
  --asked_;
  AskForCalls();
}

void Method::AskForCalls() {
  const absl::Status asked = Guarded([this] {
    for (; asked_ < row_.posted; ++asked_) AskForCall();
  });
  if (!asked.ok()) source_->thread.Postpone(*this);
}

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
    methods_[i]->TakeCalls({*this, static_cast<int>(i), thread});
  }
}

}  // namespace simile::service
