// A server that does nothing: it answers every Search with the same message, read from a file. By
// grpc++ a call on it costs what any gRPC server of these message sizes costs. By this project's
// transport a call costs what the transport alone costs.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <CLI/CLI.hpp>

#include "net/server.h"
#include "net/tls.h"
#include "observe/build_info.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"
#include "simile/limits.h"
#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::bench {
namespace {

using List = v1::CollectionService::WithAsyncMethod_ListCollections<v1::CollectionService::Service>;

constexpr int kCallsMax = 1'024;  // under way at a time; more wait in the network

// Takes a call, answers it, takes the next one.
class Slot {
 public:
  virtual ~Slot() = default;
  // The call has come, or its answer is sent.
  virtual void Advance() = 0;
};

//   Request, Response  what the service's RequestNAME takes
template <class Request, class Response>
class AnsweringSlot final : public Slot {
 public:
  // Waits for a call whose parts these are; `tag` comes out of the queue.
  using Take = std::function<void(grpc::ServerContext& context, Request& request,
                                  grpc::ServerAsyncResponseWriter<Response>& writer, void* tag)>;
  AnsweringSlot(Take take, Response answer) : take_(std::move(take)), answer_(std::move(answer)) {
    TakeNext();
  }

  void Advance() override {
    if (std::exchange(is_answered_, !is_answered_)) {
      TakeNext();
    } else {
      call_->writer.Finish(answer_, grpc::Status::OK, static_cast<Slot*>(this));
    }
  }

 private:
  struct Call {
    grpc::ServerContext context;
    Request request;
    grpc::ServerAsyncResponseWriter<Response> writer{&context};
  };

  void TakeNext() {
    call_.emplace();
    take_(call_->context, call_->request, call_->writer, static_cast<Slot*>(this));
  }

  const Take take_;
  const Response answer_;
  std::optional<Call> call_;
  bool is_answered_ = false;
};

using Queue = grpc::ServerCompletionQueue;
using Slots = std::vector<std::unique_ptr<Slot>>;

// One way of grpc++ to answer a Search.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void RegisterAt(grpc::ServerBuilder& builder) = 0;
  // Takes one call at a time from the queue; null when gRPC's own threads answer.
  virtual std::unique_ptr<Slot> TakeFrom(Queue& queue) = 0;
};

// Bytes on our own threads.
class AsyncRaw final : public Transport {
 public:
  explicit AsyncRaw(grpc::ByteBuffer answer) : answer_(std::move(answer)) {}
  void RegisterAt(grpc::ServerBuilder& builder) override { builder.RegisterService(&service_); }
  std::unique_ptr<Slot> TakeFrom(Queue& queue) override {
    return std::make_unique<AnsweringSlot<grpc::ByteBuffer, grpc::ByteBuffer>>(
        [&](auto& context, auto& request, auto& writer, void* tag) {
          service_.RequestSearch(&context, &request, &writer, &queue, &queue, tag);
        },
        answer_);
  }

 private:
  v1::SearchService::WithRawMethod_Search<v1::SearchService::Service> service_;
  const grpc::ByteBuffer answer_;
};

// Bytes on gRPC's own threads.
class RawCallback final : public Transport {
 public:
  explicit RawCallback(grpc::ByteBuffer answer) : service_(std::move(answer)) {}
  void RegisterAt(grpc::ServerBuilder& builder) override { builder.RegisterService(&service_); }
  std::unique_ptr<Slot> TakeFrom(Queue& /*queue*/) override { return nullptr; }

 private:
  class Service final
      : public v1::SearchService::WithRawCallbackMethod_Search<v1::SearchService::Service> {
   public:
    explicit Service(grpc::ByteBuffer answer) : answer_(std::move(answer)) {}
    grpc::ServerUnaryReactor* Search(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* /*request*/,
                                     grpc::ByteBuffer* response) override {
      *response = answer_;
      grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
      reactor->Finish(grpc::Status::OK);
      return reactor;
    }

   private:
    const grpc::ByteBuffer answer_;
  };
  Service service_;
};

// Says which collection it has, as a load generator asks.
std::unique_ptr<Slot> TakeLists(List& service, Queue& queue,
                                const v1::ListCollectionsResponse& answer) {
  return std::make_unique<AnsweringSlot<v1::ListCollectionsRequest, v1::ListCollectionsResponse>>(
      [&](auto& context, auto& request, auto& writer, void* tag) {
        service.RequestListCollections(&context, &request, &writer, &queue, &queue, tag);
      },
      answer);
}

void React(Queue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) static_cast<Slot*>(tag)->Advance();
}

// A call of our own transport, which is answered as soon as its request is there.
class OwnCall final : public net::RpcCall {
 public:
  using Answer = std::shared_ptr<const net::OutgoingMessage>;
  OwnCall(Answer answer, net::Http2Stream& stream, net::CallHead head)
      : RpcCall(stream, std::move(head)), answer_(std::move(answer)) {}

 private:
  void Begin(net::ReceivedMessage /*request*/) override { End({}); }
  void Refused(Problem /*problem*/, std::uint32_t /*declared_bytes*/) override {
    net::CallEnd end;
    end.code = absl::StatusCode::kResourceExhausted;
    answer_.reset();
    End(std::move(end));
  }
  void Release() override { delete this; }
  void End(net::CallEnd end) {
    Finish(std::move(answer_), std::move(end), loop().now() + std::chrono::seconds(10));
  }

  Answer answer_;
};

class OwnMethod final : public net::RpcMethod {
 public:
  OwnMethod(std::string_view path, std::string_view answer) : path_(path) {
    auto message = std::make_shared<net::OutgoingMessage>(answer.size());
    std::ranges::copy(answer, message->data());
    answer_ = std::move(message);
  }
  std::string_view path() const override { return path_; }
  bool takes_stream() const override { return false; }
  net::RpcCall& NewCall(net::Http2Stream& stream, net::CallHead head) override {
    return *new OwnCall(answer_, stream, std::move(head));  // destroys itself
  }

 private:
  const std::string_view path_;
  OwnCall::Answer answer_;
};

struct Options {
  std::string answer;  // a serialized SearchResponse
  v1::ListCollectionsResponse listed;
  std::string transport;
  std::string certificate;  // and key: empty for none
  std::string key;
  std::size_t io_threads = 1;
};

void Say(std::uint16_t port) {
  fmt::print("listening on 127.0.0.1:{}\n", port);
  std::fflush(stdout);
}

int ServeByOwn(const Options& options) {
  const RealClock clock;
  const observe::Logger log({observe::LogFormat::kText, observe::LogLevel::kWarning, nullptr});
  observe::Metrics metrics(observe::GetBuildInfo());
  const Limits limits;
  OwnMethod search("/simile.v1.SearchService/Search", options.answer);
  OwnMethod list("/simile.v1.CollectionService/ListCollections",
                 options.listed.SerializeAsString());
  const std::array<net::RpcMethod*, 2> methods = {&search, &list};
  net::Server::Options served;
  served.io_threads = options.io_threads;
  if (!options.certificate.empty()) {
    auto tls = net::Tls::Create({options.certificate, options.key, {}}, clock);
    if (!tls.ok()) return 1;
    served.tls = *std::move(tls);
  }
  const auto server = net::Server::Start(std::move(served), limits, {methods, clock, metrics, log});
  if (!server.ok()) return 1;
  (*server)->Accept();
  Say((*server)->port());
  pause();
  return 0;
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const Options& options) {
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  const auto read = [](const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({read(options.key), read(options.certificate)});
  return grpc::SslServerCredentials(tls);
}

int ServeByGrpc(const Options& options) {
  const grpc::Slice slice(options.answer);
  const grpc::ByteBuffer answer(&slice, 1);
  std::unique_ptr<Transport> transport;
  if (options.transport == "raw-callback") {
    transport = std::make_unique<RawCallback>(answer);
  } else {
    transport = std::make_unique<AsyncRaw>(answer);
  }
  List list;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", CredentialsOf(options), &port);
  transport->RegisterAt(builder);
  builder.RegisterService(&list);
  const std::unique_ptr<Queue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  Slots slots;
  slots.push_back(TakeLists(list, *queue, options.listed));
  for (int i = 0; i < kCallsMax; ++i) {
    if (auto slot = transport->TakeFrom(*queue)) slots.push_back(std::move(slot));
  }
  Say(static_cast<std::uint16_t>(port));
  React(*queue);
  return 0;
}

int Main(int argument_count, char** arguments) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as the server
  CLI::App app("Answers every Search with the bytes of a file");
  Options options;
  std::string answer_file;
  options.transport = "async-raw";
  v1::Collection& collection = *options.listed.add_collections();
  std::uint32_t dim = 0;
  std::uint64_t rows = 0;
  app.add_option("--answer", answer_file, "A serialized SearchResponse")->required();
  app.add_option("--dim", dim, "Of the collection that it claims to have")->required();
  app.add_option("--rows", rows)->required();
  app.add_option("--transport", options.transport,
                 "grpc++ on a thread of our own or on its threads, or this project's own")
      ->check(CLI::IsMember({"async-raw", "raw-callback", "own"}));
  app.add_option("--io-threads", options.io_threads, "Of the own transport")
      ->check(CLI::Range(1, 64));
  CLI::Option* const certificate = app.add_option("--tls-certificate", options.certificate);
  app.add_option("--tls-key", options.key)->needs(certificate);
  CLI11_PARSE(app, argument_count, arguments);
  std::ifstream file(answer_file, std::ios::binary);
  options.answer.assign(std::istreambuf_iterator<char>(file), {});
  collection.set_name("echo");
  collection.set_dim(dim);
  collection.set_rows(rows);
  collection.set_state(v1::Collection::STATE_SERVING);
  collection.set_metric(v1::Collection::METRIC_COSINE);
  return options.transport == "own" ? ServeByOwn(options) : ServeByGrpc(options);
}

}  // namespace
}  // namespace simile::bench

int main(int argument_count, char** arguments) {
  return simile::bench::Main(argument_count, arguments);
}
