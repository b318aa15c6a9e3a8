// A server that does nothing: it answers every Search with the same message, read from a file. What
// a call costs on it is what any gRPC server of these message sizes costs, by each of the
// transports that gRPC has for servers (docs/design/serving.md).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <CLI/CLI.hpp>

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

// One way to answer a Search.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void RegisterAt(grpc::ServerBuilder& builder) = 0;
  // Takes one call at a time from the queue; null when gRPC's own threads answer.
  virtual std::unique_ptr<Slot> TakeFrom(Queue& queue) = 0;
};

// Generated code on our own threads: gRPC parses the request and serializes the answer.
class AsyncTyped final : public Transport {
 public:
  explicit AsyncTyped(v1::SearchResponse answer) : answer_(std::move(answer)) {}
  void RegisterAt(grpc::ServerBuilder& builder) override { builder.RegisterService(&service_); }
  std::unique_ptr<Slot> TakeFrom(Queue& queue) override {
    return std::make_unique<AnsweringSlot<v1::SearchRequest, v1::SearchResponse>>(
        [&](auto& context, auto& request, auto& writer, void* tag) {
          service_.RequestSearch(&context, &request, &writer, &queue, &queue, tag);
        },
        answer_);
  }

 private:
  v1::SearchService::WithAsyncMethod_Search<v1::SearchService::Service> service_;
  const v1::SearchResponse answer_;
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

// Bytes of any method on our own threads.
class Generic final : public Transport {
 public:
  explicit Generic(grpc::ByteBuffer answer) : answer_(std::move(answer)) {}
  void RegisterAt(grpc::ServerBuilder& builder) override {
    builder.RegisterAsyncGenericService(&service_);
  }
  std::unique_ptr<Slot> TakeFrom(Queue& queue) override {
    return std::make_unique<GenericSlot>(service_, queue, answer_);
  }

 private:
  class GenericSlot final : public Slot {
   public:
    GenericSlot(grpc::AsyncGenericService& service, Queue& queue, const grpc::ByteBuffer& answer)
        : service_(service), queue_(queue), answer_(answer) {
      TakeNext();
    }
    void Advance() override {
      switch (step_) {
        case Step::kRead:
          step_ = Step::kAnswer;
          return call_->stream.Read(&call_->request, static_cast<Slot*>(this));
        case Step::kAnswer:
          step_ = Step::kTakeNext;
          return call_->stream.WriteAndFinish(answer_, {}, grpc::Status::OK,
                                              static_cast<Slot*>(this));
        case Step::kTakeNext:
          step_ = Step::kRead;
          return TakeNext();
      }
    }

   private:
    // What the next event makes it do.
    enum class Step { kRead, kAnswer, kTakeNext };
    struct Call {
      grpc::GenericServerContext context;
      grpc::ByteBuffer request;
      grpc::GenericServerAsyncReaderWriter stream{&context};
    };

    void TakeNext() {
      call_.emplace();
      service_.RequestCall(&call_->context, &call_->stream, &queue_, &queue_,
                           static_cast<Slot*>(this));
    }

    grpc::AsyncGenericService& service_;
    Queue& queue_;
    const grpc::ByteBuffer& answer_;
    Step step_ = Step::kRead;
    std::optional<Call> call_;
  };

  grpc::AsyncGenericService service_;
  const grpc::ByteBuffer answer_;
};

// Generated code on gRPC's own threads, as most servers are written.
class TypedCallback final : public Transport {
 public:
  explicit TypedCallback(v1::SearchResponse answer) : service_(std::move(answer)) {}
  void RegisterAt(grpc::ServerBuilder& builder) override { builder.RegisterService(&service_); }
  std::unique_ptr<Slot> TakeFrom(Queue& /*queue*/) override { return nullptr; }

 private:
  class Service final
      : public v1::SearchService::WithCallbackMethod_Search<v1::SearchService::Service> {
   public:
    explicit Service(v1::SearchResponse answer) : answer_(std::move(answer)) {}
    grpc::ServerUnaryReactor* Search(grpc::CallbackServerContext* context,
                                     const v1::SearchRequest* /*request*/,
                                     v1::SearchResponse* response) override {
      *response = answer_;
      grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
      reactor->Finish(grpc::Status::OK);
      return reactor;
    }

   private:
    const v1::SearchResponse answer_;
  };
  Service service_;
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

// REQUIRES: the name is one of the option's.
std::unique_ptr<Transport> MakeTransport(const std::string& name, const std::string& answer) {
  v1::SearchResponse message;
  message.ParseFromString(answer);
  const grpc::Slice slice(answer);
  grpc::ByteBuffer bytes(&slice, 1);
  if (name == "async-typed") return std::make_unique<AsyncTyped>(std::move(message));
  if (name == "async-raw") return std::make_unique<AsyncRaw>(std::move(bytes));
  if (name == "generic") return std::make_unique<Generic>(std::move(bytes));
  if (name == "typed-callback") return std::make_unique<TypedCallback>(std::move(message));
  return std::make_unique<RawCallback>(std::move(bytes));
}

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

int Main(int argument_count, char** arguments) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as the server
  CLI::App app("Answers every Search with the bytes of a file");
  std::string answer_file;
  std::string transport_name = "async-raw";
  std::size_t queue_count = 1;
  v1::ListCollectionsResponse listed;
  v1::Collection& collection = *listed.add_collections();
  std::uint32_t dim = 0;
  std::uint64_t rows = 0;
  app.add_option("--answer", answer_file, "A serialized SearchResponse")->required();
  app.add_option("--dim", dim, "Of the collection that it claims to have")->required();
  app.add_option("--rows", rows)->required();
  app.add_option("--transport", transport_name, "Which of gRPC's ways answers a Search")
      ->check(
          CLI::IsMember({"async-raw", "async-typed", "generic", "raw-callback", "typed-callback"}));
  app.add_option("--queues", queue_count, "Completion queues, each with a thread")
      ->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argument_count, arguments);
  std::ifstream file(answer_file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  collection.set_name("echo");
  collection.set_dim(dim);
  collection.set_rows(rows);
  collection.set_state(v1::Collection::STATE_SERVING);
  collection.set_metric(v1::Collection::METRIC_COSINE);

  const std::unique_ptr<Transport> transport = MakeTransport(transport_name, bytes);
  List list;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  transport->RegisterAt(builder);
  builder.RegisterService(&list);
  std::vector<std::unique_ptr<Queue>> queues;
  for (std::size_t i = 0; i < queue_count; ++i) queues.push_back(builder.AddCompletionQueue());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  Slots slots;
  for (const std::unique_ptr<Queue>& queue : queues) {
    slots.push_back(TakeLists(list, *queue, listed));
    for (int i = 0; i < kCallsMax; ++i) {
      if (auto slot = transport->TakeFrom(*queue)) slots.push_back(std::move(slot));
    }
  }
  fmt::print("listening on 127.0.0.1:{}\n", port);
  std::fflush(stdout);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < queues.size(); ++i) {
    threads.emplace_back([queue = queues[i].get()] { React(*queue); });
  }
  React(*queues.front());
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace simile::bench

int main(int argument_count, char** arguments) {
  return simile::bench::Main(argument_count, arguments);
}
