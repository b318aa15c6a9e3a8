// A server that does nothing: it answers every Search with the same bytes, read from a file, and
// parses no request. What a call costs on it is what any gRPC server of these message sizes costs.
// One completion queue and one thread, the cheapest of the transports that gRPC has for servers.

#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <CLI/CLI.hpp>

#include "simile/v1/collections.grpc.pb.h"
#include "simile/v1/search.grpc.pb.h"

namespace simile::bench {
namespace {

using Search = v1::SearchService::WithRawMethod_Search<v1::SearchService::Service>;
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

// Answers on gRPC's own threads, as most servers are written.
class CallbackSearch final
    : public v1::SearchService::WithRawCallbackMethod_Search<v1::SearchService::Service> {
 public:
  explicit CallbackSearch(grpc::ByteBuffer answer) : answer_(std::move(answer)) {}

  grpc::ServerUnaryReactor* Search(grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
                                   grpc::ByteBuffer* response) override {
    *response = answer_;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const grpc::ByteBuffer answer_;
};

int Main(int argument_count, char** arguments) {
  CLI::App app("Answers every Search with the bytes of a file");
  std::string answer_file;
  bool is_callback = false;
  v1::ListCollectionsResponse listed;
  v1::Collection& collection = *listed.add_collections();
  std::uint32_t dim = 0;
  std::uint64_t rows = 0;
  app.add_option("--answer", answer_file, "A serialized SearchResponse")->required();
  app.add_option("--dim", dim, "Of the collection that it claims to have")->required();
  app.add_option("--rows", rows)->required();
  app.add_flag("--callback", is_callback, "Answer by gRPC's callback API");
  CLI11_PARSE(app, argument_count, arguments);
  std::ifstream file(answer_file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const grpc::Slice answer(bytes);
  collection.set_name("echo");
  collection.set_dim(dim);
  collection.set_rows(rows);
  collection.set_state(v1::Collection::STATE_SERVING);
  collection.set_metric(v1::Collection::METRIC_COSINE);

  Search search;
  CallbackSearch callback_search{grpc::ByteBuffer(&answer, 1)};
  List list;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  if (is_callback) {
    builder.RegisterService(&callback_search);
  } else {
    builder.RegisterService(&search);
  }
  builder.RegisterService(&list);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::vector<std::unique_ptr<Slot>> slots;
  slots.push_back(
      std::make_unique<AnsweringSlot<v1::ListCollectionsRequest, v1::ListCollectionsResponse>>(
          [&](auto& context, auto& request, auto& writer, void* tag) {
            list.RequestListCollections(&context, &request, &writer, queue.get(), queue.get(), tag);
          },
          listed));
  for (int i = 0; i < kCallsMax && !is_callback; ++i) {
    slots.push_back(std::make_unique<AnsweringSlot<grpc::ByteBuffer, grpc::ByteBuffer>>(
        [&](auto& context, auto& request, auto& writer, void* tag) {
          search.RequestSearch(&context, &request, &writer, queue.get(), queue.get(), tag);
        },
        grpc::ByteBuffer(&answer, 1)));
  }
  fmt::print("listening on 127.0.0.1:{}\n", port);
  std::fflush(stdout);
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Slot*>(tag)->Advance();
  return 0;
}

}  // namespace
}  // namespace simile::bench

int main(int argument_count, char** arguments) {
  return simile::bench::Main(argument_count, arguments);
}
