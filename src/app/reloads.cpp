#include "app/reloads.h"

#include <string_view>
#include <utility>

#include <absl/status/status.h>

#include "service/call.h"

namespace simile::app {

Reloads::Reloads(std::function<void()> reload, const observe::Logger& log)
    : reload_(std::move(reload)), log_(log) {}

template <class Step>
void Reloads::Try(Step&& step) const noexcept {
  const absl::Status made = service::Guarded(step);
  if (made.ok()) return;
  log_.Error("the reload on SIGHUP did not finish; another SIGHUP tries again",
             {{"error", std::string_view(made.message().data(), made.message().size())}});
}

void Reloads::Advance() {
  if (running_ && running_->done()) running_.reset();
  if (running_ || !is_requested_) return;
  is_requested_ = false;
  Try([this] { running_.emplace([this] { Try(reload_); }); });
}

}  // namespace simile::app
