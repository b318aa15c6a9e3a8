#include "observe/metrics_endpoint.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

namespace simile::observe {
namespace {

// One thread answers: scrapes are seconds apart, and a second one may wait.
constexpr const char* kThreads = "1";
// A silent peer would otherwise occupy that thread for half a minute.
constexpr const char* kRequestTimeoutMs = "5000";

std::string Address(const std::string& listen, std::uint16_t port) {
  const bool v6 = listen.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", listen, port) : fmt::format("{}:{}", listen, port);
}

// Opens and closes one connection to a listener of this process, which wakes its poll.
void ConnectOnce(const std::string& listen, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(listen.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    // The result does not matter: the listener is awake, or it is gone.
    static_cast<void>(connect(fd, found->ai_addr, found->ai_addrlen));
    close(fd);
  }
  freeaddrinfo(found);
}

// Speeds up civetweb's stop. It notices the stop only when its poll returns, up to two seconds
// later, so this connects to it until it has stopped.
class PollWaker {
 public:
  PollWaker(std::string listen, std::uint16_t port)
      : thread_([this, listen = std::move(listen), port] {
          std::unique_lock lock(mutex_);
          while (!stopped_) {
            ConnectOnce(listen, port);
            wake_.wait_for(lock, std::chrono::milliseconds(1), [this] { return stopped_; });
          }
        }) {}
  ~PollWaker() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;  // guards stopped_
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace

class MetricsEndpoint::Impl {
 public:
  Impl(std::string listen, std::uint16_t port,
       std::vector<std::shared_ptr<prometheus::Collectable>> exposed)
      : listen_(std::move(listen)),
        collectables_(std::move(exposed)),
        exposer_(std::make_unique<prometheus::Exposer>(
            std::vector<std::string>{"listening_ports", Address(listen_, port), "num_threads",
                                     kThreads, "request_timeout_ms", kRequestTimeoutMs})) {
    for (const auto& collectable : collectables_) exposer_->RegisterCollectable(collectable);
  }
  ~Impl() {
    const PollWaker waker(listen_, port());
    exposer_.reset();
  }

  std::uint16_t port() const {
    return static_cast<std::uint16_t>(exposer_->GetListeningPorts().at(0));
  }

 private:
  const std::string listen_;
  const std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // holds the collectables weakly
};

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const std::string& listen, std::uint16_t port,
    std::vector<std::shared_ptr<prometheus::Collectable>> collectables) {
  try {
    auto impl = std::make_unique<Impl>(listen, port, std::move(collectables));
    return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(impl)));
  } catch (const std::exception&) {  // civetweb's message gives no reason
    return absl::UnavailableError(fmt::format(
        "cannot listen for metrics on {}: the address is not this machine's or the port is taken; "
        "choose another with --metrics-port (0 takes any free one)",
        Address(listen, port)));
  }
}

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricsEndpoint::~MetricsEndpoint() = default;

std::uint16_t MetricsEndpoint::port() const { return impl_->port(); }

}  // namespace simile::observe
