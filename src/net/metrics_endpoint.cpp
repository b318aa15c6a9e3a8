#include "net/metrics_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace simile::net {
namespace {

constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kMessageType = "text/plain; charset=utf-8";

std::string FormatResponse(std::string_view status, std::string_view type, std::string_view body,
                           bool with_body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\n"
      "Connection: close\r\n\r\n{}",
      status, type, body.size(), with_body ? body : "");
}

std::string FormatRefusal(std::string_view status, std::string_view message) {
  return FormatResponse(status, kMessageType, message, true);
}

// Removes and returns the text up to the next space.
std::string_view NextWord(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line = end == std::string_view::npos ? "" : line.substr(end + 1);
  return word;
}

// The response to a GET, or to a HEAD without the body.
std::string MakePage(std::string_view path, const HttpPages& pages, bool with_body) {
  if (path == "/metrics") return FormatResponse("200 OK", kMetricsType, pages.metrics(), with_body);
  if (path == "/healthz") return FormatResponse("200 OK", kMessageType, "alive\n", with_body);
  if (path != "/readyz") {
    return FormatResponse("404 Not Found", kMessageType,
                          "metrics are at /metrics, health is at /healthz and /readyz\n",
                          with_body);
  }
  const std::string reason = pages.unready_reason();
  if (!reason.empty()) {
    return FormatResponse("503 Service Unavailable", kMessageType, fmt::format("{}\n", reason),
                          with_body);
  }
  const std::string missing = pages.missing();
  return FormatResponse(
      "200 OK", kMessageType,
      missing.empty() ? "serving\n" : fmt::format("serving without {}\n", missing), with_body);
}

constexpr std::size_t kHeadBytesMax = 8'192;
// How long nothing is accepted when descriptors have run out and none of ours can be closed.
constexpr std::chrono::milliseconds kAcceptBackOff{50};

bool WouldBlock() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

bool IsWholeHead(std::string_view received) {
  return received.find("\n\r\n") != std::string_view::npos ||
         received.find("\n\n") != std::string_view::npos;
}

std::string AnswerScrape(std::string_view head, const HttpPages& pages) {
  if (!IsWholeHead(head)) {
    return FormatRefusal("431 Request Header Fields Too Large",
                         "the request's header is too large\n");
  }
  std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const std::string_view method = NextWord(line);
  const std::string_view target = NextWord(line);
  if (!line.starts_with("HTTP/1.")) {
    return FormatRefusal("400 Bad Request", "metrics are served over HTTP/1.1 at /metrics\n");
  }
  if (method != "GET" && method != "HEAD") {
    return FormatRefusal("405 Method Not Allowed", "only GET and HEAD\n");
  }
  return MakePage(target.substr(0, target.find('?')), pages, method == "GET");
}

MetricsEndpoint::MetricsEndpoint(ListenSocket socket, HttpPages pages, const Clock& clock,
                                 const MetricsEndpointOptions& options)
    : socket_(std::move(socket)),
      pages_(std::move(pages)),
      clock_(clock),
      options_(options),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Loop(); }) {}

MetricsEndpoint::~MetricsEndpoint() {
  eventfd_write(stop_event_.get(), 1);
  thread_.join();
}

void MetricsEndpoint::Loop() {
  while (true) {
    try {
      const Event event = Await();
      if (event == Event::kStop) return;
      AdvanceAll();
      if (event == Event::kConnection) Accept();
    } catch (const std::exception&) {  // no memory: the scrapes fail, and the server goes on
      connections_.clear();
    }
  }
}

void MetricsEndpoint::AdvanceAll() {
  const Clock::TimePoint now = clock_.Now();
  std::erase_if(connections_, [&](Connection& connection) {
    return !Advance(connection) || connection.deadline <= now;
  });
}

MetricsEndpoint::Event MetricsEndpoint::Await() {
  const bool accepts = accept_from_ <= clock_.Now();
  std::vector<pollfd> watched = {{stop_event_.get(), POLLIN, 0},
                                 {accepts ? socket_.fd.get() : -1, POLLIN, 0}};
  for (const Connection& connection : connections_) {
    const short event = connection.stage == Stage::kAnswer ? POLLOUT : POLLIN;
    watched.push_back({connection.fd.get(), event, 0});
  }
  poll(watched.data(), watched.size(), WaitMs());
  if (watched[0].revents != 0) return Event::kStop;
  return watched[1].revents != 0 ? Event::kConnection : Event::kOther;
}

int MetricsEndpoint::WaitMs() const {
  Clock::TimePoint next = Clock::TimePoint::max();
  for (const Connection& connection : connections_) next = std::min(next, connection.deadline);
  const Clock::TimePoint now = clock_.Now();
  if (accept_from_ > now) next = std::min(next, accept_from_);
  if (next == Clock::TimePoint::max()) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
  return static_cast<int>(std::max<std::int64_t>(wait.count(), 0));
}

void MetricsEndpoint::Accept() {
  base::FileDescriptor fd(
      accept4(socket_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    const bool no_descriptor = errno == EMFILE || errno == ENFILE;
    if (no_descriptor && !connections_.empty()) {
      connections_.pop_front();  // the next call has its descriptor
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      accept_from_ = clock_.Now() + kAcceptBackOff;
    }
    return;
  }
  if (connections_.size() >= options_.connections_max) connections_.pop_front();
  Connection& connection = connections_.emplace_back();
  connection.fd = std::move(fd);
  connection.deadline = clock_.Now() + options_.request_timeout;
  // Its request is often here already.
  if (!Advance(connection)) connections_.pop_back();
}

bool MetricsEndpoint::Advance(Connection& connection) {
  if (connection.stage == Stage::kRequest) {
    if (!Receive(connection)) return false;
    if (!IsWholeHead(connection.received) && connection.received.size() < kHeadBytesMax) {
      return true;
    }
    connection.answer = AnswerScrape(connection.received, pages_);
    connection.stage = Stage::kAnswer;
    connection.deadline = clock_.Now() + options_.answer_timeout;
  }
  if (connection.stage == Stage::kAnswer) {
    if (!Send(connection)) return false;
    if (!connection.IsSent()) return true;
    // Closing now, with bytes unread, would reset the connection and lose the answer: the peer
    // closes first.
    shutdown(connection.fd.get(), SHUT_WR);
    connection.stage = Stage::kEnd;
  }
  connection.received.clear();
  return Receive(connection);
}

bool MetricsEndpoint::Receive(Connection& connection) {
  char buffer[kHeadBytesMax];
  const ssize_t got = recv(connection.fd.get(), buffer, sizeof buffer, 0);
  if (got > 0) connection.received.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && WouldBlock());
}

bool MetricsEndpoint::Send(Connection& connection) {
  while (!connection.IsSent()) {
    const ssize_t sent = send(connection.fd.get(), connection.answer.data() + connection.sent_bytes,
                              connection.answer.size() - connection.sent_bytes, MSG_NOSIGNAL);
    if (sent < 0) return WouldBlock();
    connection.sent_bytes += static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace simile::net
