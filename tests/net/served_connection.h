#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/fake_clock.h"
#include "net/http2_connection.h"
#include "observe/build_info.h"
#include "observe/metrics.h"

namespace simile::net {

// A call that sends back each message that it gets.
class EchoCall final : public RpcCall {
 public:
  //   ended  counts the calls that are released
  EchoCall(Http2Stream& stream, CallHead head, bool takes_stream, int& ended)
      : RpcCall(stream, std::move(head)), takes_stream_(takes_stream), ended_(ended) {}

 private:
  void Begin(ReceivedMessage request) override {
    if (takes_stream_) return WantMessage();
    Finish(Copy(request), {}, Clock::TimePoint::max());
  }
  void Received(std::optional<ReceivedMessage> message) override {
    if (!message) return Finish(nullptr, {}, Clock::TimePoint::max());
    Send(Copy(*message), Clock::TimePoint::max());
  }
  void Sent(bool ok) override {
    if (ok) WantMessage();
    if (!ok) Finish(nullptr, {}, Clock::TimePoint::max());
  }
  void Refused(Problem /*problem*/, std::uint32_t /*declared_bytes*/) override {
    CallEnd end;
    end.code = absl::StatusCode::kResourceExhausted;
    Finish(nullptr, std::move(end), Clock::TimePoint::max());
  }
  void Release() override {
    ++ended_;
    delete this;
  }

  static std::shared_ptr<const OutgoingMessage> Copy(const ReceivedMessage& message) {
    auto copy = std::make_shared<OutgoingMessage>(message.size());
    std::memcpy(copy->data(), message.text().data(), message.size());
    return copy;
  }

  const bool takes_stream_;
  int& ended_;
};

class EchoMethod final : public RpcMethod {
 public:
  EchoMethod(std::string path, bool takes_stream)
      : path_(std::move(path)), takes_stream_(takes_stream) {}

  std::string_view path() const override { return path_; }
  bool takes_stream() const override { return takes_stream_; }
  RpcCall& NewCall(Http2Stream& stream, CallHead head) override {
    ++begun;
    return *new EchoCall(stream, std::move(head), takes_stream_, ended);
  }

  int begun = 0;
  int ended = 0;

 private:
  const std::string path_;
  const bool takes_stream_;
};

// A connection whose peer is the test, on the test's thread: /echo.Echo/Unary and /echo.Echo/Spec,
// which takes a stream.
class ServedConnection {
 public:
  explicit ServedConnection(const Limits& limits = {}) : limits_(limits) {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    peer_ = base::FileDescriptor(ends[1]);
    AdmittedSocket socket;
    socket.fd = base::FileDescriptor(ends[0]);
    socket.peer = std::make_shared<Peer>();
    auto budget = std::make_shared<PeerBudget>(limits_, clock_);
    (new Http2Connection(connections_, std::move(socket), nullptr, std::move(budget)))
        ->Begin();  // owns itself
    loop_.TurnNow();
  }
  ~ServedConnection() {
    if (connections_.first != nullptr) connections_.first->Cut(Violation::kNone);
    Turn();
  }
  ServedConnection(const ServedConnection&) = delete;
  ServedConnection& operator=(const ServedConnection&) = delete;

  // Sends the bytes and returns what has come back when nothing more does.
  std::string Send(std::string_view bytes) {
    std::string received;
    do {
      const ssize_t sent = send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      received += Turn();
    } while (!bytes.empty() && !is_closed_);
    return received;
  }
  // Turns of the loop until nothing more comes back.
  std::string Turn() {
    constexpr int kQuietTurns = 4;
    std::string received;
    for (int quiet = 0; quiet < kQuietTurns; ++quiet) {
      loop_.TurnNow();
      char buffer[65'536];
      ssize_t got = 0;
      while ((got = recv(peer_.get(), buffer, sizeof buffer, 0)) > 0) {
        received.append(buffer, static_cast<std::size_t>(got));
        quiet = 0;
      }
      if (got == 0 || errno == ECONNRESET) is_closed_ = true;
    }
    return received;
  }
  std::string Advance(Clock::Duration duration) {
    clock_.Advance(duration);
    return Turn();
  }
  bool is_closed() const { return is_closed_; }
  Http2Connection* connection() { return connections_.first; }
  std::string lines() const { return lines_.str(); }
  EchoMethod& unary() { return unary_; }
  EchoMethod& stream() { return stream_; }

 private:
  const Limits limits_;
  engine::FakeClock clock_;
  std::ostringstream lines_;
  const observe::Logger log_{{.format = observe::LogFormat::kText, .level = {}, .sink = &lines_}};
  observe::Metrics metrics_{observe::BuildInfo{}};
  CutReports cut_reports_{clock_, metrics_, log_};
  EchoMethod unary_{"/echo.Echo/Unary", false};
  EchoMethod stream_{"/echo.Echo/Spec", true};
  const std::unordered_map<std::string_view, RpcMethod*> methods_{{unary_.path(), &unary_},
                                                                  {stream_.path(), &stream_}};
  std::atomic<bool> stops_ = false;
  EventLoop loop_{"test-loop", {}, clock_};
  LoopConnections connections_{loop_, {limits_, clock_, metrics_, cut_reports_, methods_, stops_}};
  base::FileDescriptor peer_;
  bool is_closed_ = false;
};

}  // namespace simile::net
