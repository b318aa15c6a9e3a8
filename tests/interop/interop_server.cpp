// grpc.testing.TestService on the transport of this project, for the clients of gRPC's
// interoperability tests; and /echo.Echo/Spec, which answers any body with one message, for h2spec.
//
//   interop_server --port N [--tls-certificate FILE --tls-key FILE] [--io-threads N]
//
// Prints `listening on 127.0.0.1:PORT`, and serves until SIGTERM.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc_wire.h"
#include "net/server.h"
#include "observe/build_info.h"
#include "test_service.pb.h"

namespace simile::interop {
namespace {

using namespace grpc::testing;
using Message = google::protobuf::MessageLite;

constexpr std::string_view kEchoInitial = "x-grpc-test-echo-initial";
constexpr std::string_view kEchoTrailing = "x-grpc-test-echo-trailing-bin";

std::atomic<int> calls_gone = 0;

bool IsHeaderValue(std::string_view value) {
  const auto is_printable = [](char byte) { return byte >= 0x20 && byte <= 0x7e; };
  return std::ranges::all_of(value, is_printable) && !value.starts_with(' ') &&
         !value.ends_with(' ');
}

std::shared_ptr<const net::OutgoingMessage> Bytes(const Message& message) {
  auto bytes = std::make_shared<net::OutgoingMessage>(message.ByteSizeLong());
  message.SerializeToArray(bytes->data(), static_cast<int>(bytes->size()));
  return bytes;
}

bool Parse(const net::ReceivedMessage& bytes, Message& message) {
  return message.ParseFromArray(bytes.text().data(), static_cast<int>(bytes.size()));
}

net::CallEnd MakeCallEnd(absl::StatusCode code, std::string message) {
  net::CallEnd end;
  end.code = code;
  end.message = std::move(message);
  return end;
}

// A call of any of the methods: the derived class says what it does with the messages.
class TestCall : public net::RpcCall, private net::EventLoop::Timer {
 public:
  using RpcCall::RpcCall;

 protected:
  virtual void OnMessage(const net::ReceivedMessage& message) = 0;
  virtual void OnNoMore() {}

  void EndWith(net::CallEnd end, std::shared_ptr<const net::OutgoingMessage> last = nullptr) {
    if (std::exchange(has_ended_, true)) return;
    Disarm();
    for (const auto& [name, value] : head().metadata) {
      if (name == kEchoTrailing) end.trailing.emplace_back(name, net::EncodeBinaryValue(value));
    }
    Finish(std::move(last), std::move(end), Clock::TimePoint::max());
  }
  void Fail(std::string message) {
    EndWith(MakeCallEnd(absl::StatusCode::kInternal, std::move(message)));
  }
  void EndWith(const EchoStatus& status) {
    EndWith(MakeCallEnd(static_cast<absl::StatusCode>(status.code()), status.message()));
  }

  // Messages that are to be sent, one after the other, and then the end.
  void Wanted(const StreamingOutputCallRequest& request) {
    for (const ResponseParameters& each : request.response_parameters()) wanted_.push_back(each);
    if (request.has_response_status()) status_ = request.response_status();
  }
  void Pump() {
    if (is_sending_ || is_armed() || has_ended_) return;
    if (wanted_.empty()) {
      if (status_) return EndWith(*status_);
      if (no_more_) EndWith(net::CallEnd());
      return;
    }
    ResponseParameters& next = wanted_.front();
    if (const int wait_us = next.interval_us(); wait_us > 0) {
      next.clear_interval_us();
      return loop().Arm(*this, loop().now() + std::chrono::microseconds(wait_us));
    }
    StreamingOutputCallResponse response;
    response.mutable_payload()->mutable_body()->resize(static_cast<std::size_t>(next.size()));
    wanted_.pop_front();
    is_sending_ = true;
    Send(Bytes(response), Clock::TimePoint::max());
  }
  bool no_more_ = false;

 private:
  void Begin(net::ReceivedMessage request) override {
    net::Metadata initial;
    for (const auto& [name, value] : head().metadata) {
      if (name == kEchoInitial && IsHeaderValue(value)) initial.emplace_back(name, value);
    }
    SetInitialMetadata(std::move(initial));
    Start(std::move(request));
  }
  virtual void Start(net::ReceivedMessage request) = 0;

  void Received(std::optional<net::ReceivedMessage> message) override {
    if (has_ended_) return;
    if (!message) {
      no_more_ = true;
      return OnNoMore();
    }
    OnMessage(*message);
    if (!has_ended_) WantMessage();
  }
  void Sent(bool ok) override {
    is_sending_ = false;
    if (ok) Pump();
  }
  void Refused(Problem /*problem*/, std::uint32_t /*declared_bytes*/) override {
    EndWith(MakeCallEnd(absl::StatusCode::kResourceExhausted, "the message is too large"));
  }
  void Gone() override {
    ++calls_gone;
    EndWith(net::CallEnd());
  }
  void OnTime() override { Pump(); }
  void Release() override { delete this; }

  std::deque<ResponseParameters> wanted_;
  bool is_sending_ = false;
  bool has_ended_ = false;
  std::optional<EchoStatus> status_;
};

// One request, one answer.
class UnaryTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage request) override { OnMessage(request); }
  void OnMessage(const net::ReceivedMessage& message) override {
    SimpleRequest request;
    if (!Parse(message, request)) return Fail("not a SimpleRequest");
    if (request.expect_compressed().value()) {
      return EndWith(
          MakeCallEnd(absl::StatusCode::kInvalidArgument, "expected a compressed request"));
    }
    if (request.response_status().code() != 0) return EndWith(request.response_status());
    SimpleResponse response;
    response.mutable_payload()->mutable_body()->resize(
        static_cast<std::size_t>(request.response_size()));
    EndWith(net::CallEnd(), Bytes(response));
  }
};

class EmptyTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage /*request*/) override { EndWith(net::CallEnd(), Bytes(Empty())); }
  void OnMessage(const net::ReceivedMessage& /*message*/) override {}
};

// How many calls were cancelled since this was asked last.
class GoneTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage /*request*/) override {
    StreamingInputCallResponse response;
    response.set_aggregated_payload_size(calls_gone.exchange(0));
    EndWith(net::CallEnd(), Bytes(response));
  }
  void OnMessage(const net::ReceivedMessage& /*message*/) override {}
};

class OutputTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage request) override {
    no_more_ = true;
    OnMessage(request);
  }
  void OnMessage(const net::ReceivedMessage& message) override {
    StreamingOutputCallRequest request;
    if (!Parse(message, request)) return Fail("not a StreamingOutputCallRequest");
    Wanted(request);
    Pump();
  }
};

//   kAnswersAtOnce  false: it first takes all requests
template <bool kAnswersAtOnce>
class DuplexTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage /*none*/) override { WantMessage(); }
  void OnMessage(const net::ReceivedMessage& message) override {
    StreamingOutputCallRequest request;
    if (!Parse(message, request)) return Fail("not a StreamingOutputCallRequest");
    Wanted(request);
    if (kAnswersAtOnce) Pump();
  }
  void OnNoMore() override { Pump(); }
};

class InputTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage /*none*/) override { WantMessage(); }
  void OnMessage(const net::ReceivedMessage& message) override {
    StreamingInputCallRequest request;
    if (!Parse(message, request)) return Fail("not a StreamingInputCallRequest");
    if (request.expect_compressed().value()) {
      return EndWith(
          MakeCallEnd(absl::StatusCode::kInvalidArgument, "expected a compressed request"));
    }
    bytes_ += request.payload().body().size();
  }
  void OnNoMore() override {
    StreamingInputCallResponse response;
    response.set_aggregated_payload_size(static_cast<int>(bytes_));
    EndWith(net::CallEnd(), Bytes(response));
  }

  std::size_t bytes_ = 0;
};

// Takes any messages and answers with one.
class SpecTestCall final : public TestCall {
 public:
  using TestCall::TestCall;

 private:
  void Start(net::ReceivedMessage /*none*/) override { WantMessage(); }
  void OnMessage(const net::ReceivedMessage& /*message*/) override {}
  void OnNoMore() override {
    constexpr std::size_t kBytes = 490;
    auto answer = std::make_shared<net::OutgoingMessage>(kBytes);
    std::memset(answer->data(), 'x', kBytes);
    EndWith(net::CallEnd(), std::move(answer));
  }
};

template <class OfCall>
class TestMethod final : public net::RpcMethod {
 public:
  TestMethod(std::string path, bool takes_stream)
      : path_(std::move(path)), takes_stream_(takes_stream) {}
  std::string_view path() const override { return path_; }
  bool takes_stream() const override { return takes_stream_; }
  net::RpcCall& NewCall(net::Http2Stream& stream, net::CallHead head) override {
    return *new OfCall(stream, std::move(head));  // destroys itself
  }

 private:
  const std::string path_;
  const bool takes_stream_;
};

std::vector<std::unique_ptr<net::RpcMethod>> Methods() {
  std::vector<std::unique_ptr<net::RpcMethod>> methods;
  const auto add = [&]<class OfCall>(const char* path, bool takes_stream,
                                     std::type_identity<OfCall>) {
    methods.push_back(std::make_unique<TestMethod<OfCall>>(path, takes_stream));
  };
  add("/grpc.testing.TestService/EmptyCall", false, std::type_identity<EmptyTestCall>());
  add("/grpc.testing.TestService/UnaryCall", false, std::type_identity<UnaryTestCall>());
  add("/grpc.testing.TestService/StreamingOutputCall", false, std::type_identity<OutputTestCall>());
  add("/grpc.testing.TestService/StreamingInputCall", true, std::type_identity<InputTestCall>());
  add("/grpc.testing.TestService/FullDuplexCall", true, std::type_identity<DuplexTestCall<true>>());
  add("/grpc.testing.TestService/HalfDuplexCall", true,
      std::type_identity<DuplexTestCall<false>>());
  add("/echo.Echo/Spec", true, std::type_identity<SpecTestCall>());
  add("/test/Gone", false, std::type_identity<GoneTestCall>());
  return methods;
}

int Run(const std::map<std::string, std::string>& flags) {
  const auto flag = [&](const char* name, const char* otherwise) {
    const auto found = flags.find(name);
    return found == flags.end() ? std::string(otherwise) : found->second;
  };
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  sigprocmask(SIG_BLOCK, &stops, nullptr);
  const RealClock clock;
  const observe::Logger log({observe::LogFormat::kText, observe::LogLevel::kWarning, nullptr});
  observe::Metrics metrics(observe::GetBuildInfo());
  const Limits limits;
  const auto methods = Methods();
  std::vector<net::RpcMethod*> served;
  for (const auto& method : methods) served.push_back(method.get());
  net::Server::Options options;
  options.port = static_cast<std::uint16_t>(std::stoi(flag("--port", "0")));
  options.io_threads = static_cast<std::size_t>(std::stoi(flag("--io-threads", "1")));
  if (const std::string certificate = flag("--tls-certificate", ""); !certificate.empty()) {
    auto tls = net::Tls::Create({certificate, flag("--tls-key", ""), {}}, clock);
    if (!tls.ok()) {
      std::fprintf(stderr, "%s\n", tls.status().ToString().c_str());
      return 1;
    }
    options.tls = *std::move(tls);
  }
  auto server = net::Server::Start(std::move(options), limits, {served, clock, metrics, log});
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  (*server)->Accept();
  std::printf("listening on %s\n", (*server)->address().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stops, &signal);
  return (*server)->Drain(std::chrono::seconds(5)) ? 0 : 1;
}

}  // namespace
}  // namespace simile::interop

int main(int count, char** arguments) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < count; i += 2) flags[arguments[i]] = arguments[i + 1];
  return simile::interop::Run(flags);
}
