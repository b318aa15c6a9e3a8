#include "net/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"

namespace simile::net {
namespace {

using namespace std::chrono_literals;

// Descriptors that connections must not use: for the process's own files, the loops, the metrics
// endpoint and a collection being loaded.
constexpr std::size_t kReservedDescriptors = 32;

// How long a server whose calls have ended waits until its clients have seen that it goes away: a
// call that a client sends into a broken connection fails.
constexpr std::chrono::milliseconds kCloseWaitMax{250};

constexpr std::chrono::seconds kLastCallsMax{10};  // one wait

// The configured maximum, or fewer when this process has too few descriptors.
std::size_t ConnectionsMax(const Limits& limits, const observe::Logger& log) {
  const std::size_t wanted = limits.connections_max;
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return wanted;
  const std::size_t available = descriptors.rlim_cur > 2 * kReservedDescriptors
                                    ? descriptors.rlim_cur - kReservedDescriptors
                                    : descriptors.rlim_cur / 2;
  if (available < wanted) {
    log.Warn("fewer connections than configured: file descriptors are limited (ulimit -n)",
             {{"connections_max", available}, {"configured", wanted}});
  }
  return std::min(wanted, available);
}

}  // namespace

// A loop and its connections, and what the server asks of all of them.
class Server::LoopGroup final : private EventLoop::Task, private EventLoop::Timer {
 public:
  LoopGroup(EventLoop::BeforeWait before_wait, const ConnectionParts& parts)
      : loop_("simile-io", std::move(before_wait), parts.clock), connections_(loop_, parts) {}
  // REQUIRES: no call is open, unless its handler hangs.
  ~LoopGroup() override {
    loop_.Stop();
    Disarm();
    while (connections_.first != nullptr) delete connections_.first;
  }

  void Start() { loop_.Start(); }
  LoopConnections& connections() { return connections_; }
  // Any thread.
  void Drain() {
    is_draining_ = true;
    loop_.Post(*this);
  }
  // Counts as a call until it is done, because a call may begin before.
  void Cut() {
    if (!cuts_) connections_.calls->Add();
    cuts_ = true;
    loop_.Post(*this);
  }

 private:
  void Run() override {
    if (is_draining_) {
      for (Http2Connection* each = connections_.first; each != nullptr; each = each->next()) {
        each->BeginDrain();
      }
      StopCalls();
    }
    if (cuts_) {
      for (Http2Connection* each = connections_.first; each != nullptr; each = each->next()) {
        each->Cut(Violation::kNone);
      }
      if (!std::exchange(has_cut_, true)) connections_.calls->Remove();
    }
  }
  void OnTime() override { StopCalls(); }
  void StopCalls() {
    for (Http2Connection* each = connections_.first; each != nullptr; each = each->next()) {
      each->StopCalls();
    }
    loop_.Arm(*this, loop_.now() + RpcCall::kStopInterval);
  }

  EventLoop loop_;
  LoopConnections connections_;
  std::atomic<bool> is_draining_ = false;
  std::atomic<bool> cuts_ = false;
  bool has_cut_ = false;  // of the loop's thread
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Options options, const Limits& limits,
                                                      const Parts& parts) {
  auto socket = Listen(options.listen, options.port);
  if (!socket.ok()) return socket.status();
  try {
    return std::unique_ptr<Server>(
        new Server(*std::move(socket), std::move(options), limits, parts));
  } catch (const std::system_error& error) {
    return absl::UnavailableError(
        fmt::format("the server cannot start its threads: {}; raise the limits of descriptors and "
                    "threads (ulimit -n, -u)",
                    error.what()));
  }
}

Server::Server(ListenSocket socket, Options options, const Limits& limits, const Parts& parts)
    : port_(socket.port),
      address_(socket.address),
      options_(std::move(options)),
      clock_(parts.clock),
      budgets_(limits, parts.clock),
      cut_reports_(parts.clock, parts.metrics, parts.log),
      table_({ConnectionsMax(limits, parts.log), limits.connections_per_peer_max,
              limits.half_open_connections_max}),
      acceptor_(
          std::move(socket), {limits.ipv6_peer_bits, limits.keepalive_timeout}, table_,
          [this](AdmittedSocket admitted) { HandOver(std::move(admitted)); }, parts.clock,
          parts.metrics, parts.log) {
  for (RpcMethod* const method : parts.methods) methods_[method->path()] = method;
  const ConnectionParts shared{limits, parts.clock, parts.metrics, cut_reports_, methods_, stops_};
  for (std::size_t i = 0; i < std::max<std::size_t>(1, options_.io_threads); ++i) {
    groups_.push_back(std::make_unique<LoopGroup>(options_.before_wait, shared));
  }
  for (const auto& group : groups_) group->Start();
}

Server::~Server() {
  Drain(0ms);
  for (const auto& group : groups_) group->Cut();
  // The handlers of cut calls still use the members that are destroyed next.
  while (!AwaitNoCalls(clock_.Now() + kLastCallsMax)) {
  }
  groups_.clear();
}

bool Server::Drain(std::chrono::milliseconds timeout) {
  acceptor_.Stop();
  if (!stops_.exchange(true)) {
    for (const auto& group : groups_) group->Drain();
  }
  const Clock::TimePoint end = clock_.Now() + timeout;
  if (AwaitNoCalls(end)) {
    AwaitNoConnections(std::min(timeout, kCloseWaitMax));
    // Waits for calls that clients sent before they knew of the drain.
    if (AwaitNoCalls(end)) return true;
  }
  for (const auto& group : groups_) group->Cut();
  return false;
}

bool Server::AwaitNoCalls(Clock::TimePoint end) {
  return std::ranges::all_of(groups_, [&](const auto& group) {
    return group->connections().calls->AwaitNone(
        std::max(Clock::Duration::zero(), end - clock_.Now()));
  });
}

void Server::AwaitNoConnections(std::chrono::milliseconds most) const {
  constexpr auto kStep = 2ms;
  for (auto waited = 0ms; waited < most && table_.CountOpen() > 0; waited += kStep) {
    std::this_thread::sleep_for(kStep);
  }
}

void Server::HandOver(AdmittedSocket socket) {
  const auto emptiest = std::ranges::min_element(groups_, {}, [](const auto& group) {
    return group->connections().count.load(std::memory_order_relaxed);
  });
  const std::shared_ptr<SSL_CTX> tls = options_.tls == nullptr ? nullptr : options_.tls->context();
  std::shared_ptr<PeerBudget> budget = budgets_.Of(socket.peer->key);
  // It owns itself from Begin on.
  auto connection = std::make_unique<Http2Connection>((*emptiest)->connections(), std::move(socket),
                                                      tls.get(), std::move(budget));
  connection.release()->Begin();
}

}  // namespace simile::net
