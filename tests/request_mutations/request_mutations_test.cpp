// Requests that no client would make: mutations of a corpus, of every method, sent to a server in
// this process while an honest client checks each of its answers. Each call ends with a status of
// the contract, and each answer is a message of its type.
//
// TEST_REQUESTS=1000000 or TEST_SECONDS=600 sends more than the usual 20,000, TEST_SEED=N others;
// TEST_KEEP=FILE writes the corpus with the smallest request for each way in which a call ended
// that the corpus did not have.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/sync_stream.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "faults/generation.h"
#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/honest_client.h"
#include "request_mutations/message_mutator.h"
#include "request_mutations/request_corpus.h"

namespace simile::request_mutations {
namespace {

using faults::Generation;
using integration::Outcome;
using Clock = std::chrono::steady_clock;
using grpc::internal::RpcMethod;

constexpr const char* kCorpus = SIMILE_SOURCE_DIR "/tests/request_mutations/requests.txt";
constexpr std::size_t kThreads = 4;
constexpr std::size_t kBytesMax = 256U << 10;  // of a request
constexpr std::size_t kCorpusMax = 4'000;
constexpr std::size_t kKeptBytesMax = 400;  // of a request that TEST_KEEP writes
constexpr std::chrono::seconds kCallWithin{30};
constexpr Generation::Shape kShape{.rows = 60, .dim = 24, .metric = "dot"};

std::uint64_t NumberFrom(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> Words() {
  return {"items",
          "items",
          "items",
          "more",
          "one",
          "two",
          "three",
          "",
          ".",
          "..",
          "item-0",
          "item-3",
          "item-59",
          "item-60",
          "user-0",
          "user-4",
          "user-5",
          "year",
          "title",
          "genres",
          "id",
          "Drama",
          "drama",
          "tale",
          "A tale of river 3 and seed 1",
          "year >= 1950",
          "year = 1950.5",
          "genres:\"drama\"",
          "genres:(\"a\" OR \"b\")",
          "NOT year < 1960",
          "year IN (1950, 1951)",
          "EXISTS year",
          "title:\"tale\"",
          "*",
          "()",
          "year >=",
          "\"",
          "00000000000000000000000000000000",
          "liveness",
          "application/grpc"};
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.Valid() || !buffer.DumpToSingleSlice(&slice).ok()) return {};
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// How a call ended.
struct Ended {
  Outcome outcome;
  std::vector<std::string> answers;  // serialized
};

Ended Send(const std::shared_ptr<grpc::Channel>& channel, const Method& method,
           const std::vector<std::string>& requests, std::chrono::milliseconds timeout) {
  Ended ended;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  grpc::ByteBuffer answer;
  if (method.client_streams) {
    const RpcMethod rpc(method.path.c_str(), RpcMethod::BIDI_STREAMING);
    const std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> call(
        grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
            channel.get(), rpc, &context));
    for (const std::string& request : requests) call->Write(BufferOf(request));
    call->WritesDone();
    while (call->Read(&answer)) ended.answers.push_back(BytesOf(answer));
    ended.outcome = integration::ReadOutcome(call->Finish(), context);
  } else if (method.server_streams) {
    const RpcMethod rpc(method.path.c_str(), RpcMethod::SERVER_STREAMING);
    const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> call(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel.get(), rpc, &context,
                                                                      BufferOf(requests.front())));
    while (call->Read(&answer)) ended.answers.push_back(BytesOf(answer));
    ended.outcome = integration::ReadOutcome(call->Finish(), context);
  } else {
    const RpcMethod rpc(method.path.c_str(), RpcMethod::NORMAL_RPC);
    const grpc::ByteBuffer request = BufferOf(requests.front());
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
            channel.get(), rpc, &context, request, &answer);
    ended.outcome = integration::ReadOutcome(status, context);
    if (status.ok()) ended.answers.push_back(BytesOf(answer));
  }
  return ended;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// What is wrong with how a call ended; empty for nothing.
//   hurried  its deadline may have passed before the server could say anything
std::string WrongWith(const Method& method, const Ended& ended, bool hurried) {
  const std::unique_ptr<google::protobuf::Message> answer(method.response->New());
  for (const std::string& bytes : ended.answers) {
    // Refuses texts that are not UTF-8, too.
    if (!answer->ParseFromString(bytes)) return "the answer is no message of its type";
  }
  const Outcome& outcome = ended.outcome;
  if (outcome.ok()) return {};
  if (hurried && outcome.code == absl::StatusCode::kDeadlineExceeded) return {};
  const auto reasons = base::ErrorReasons();
  const auto known = std::ranges::find(reasons, outcome.reason, &base::ErrorReasonInfo::name);
  if (known == reasons.end()) return fmt::format("its reason is \"{}\"", outcome.reason);
  if (known->code != outcome.code) return "its code is not that of its reason";
  if (outcome.reason == "INTERNAL" || outcome.reason == "STOPPING") return "it says it is at fault";
  if (outcome.message.empty()) return "it has no message";
  return {};
}

// How calls end alike. Which of many values is wrong makes no difference.
std::string WayOf(const Method& method, const Outcome& outcome) {
  std::string field = outcome.field;
  std::erase_if(field, [](char c) { return c >= '0' && c <= '9'; });
  return fmt::format("{} {} {} {}", method.path, static_cast<int>(outcome.code), outcome.reason,
                     field);
}

// The requests that are mutated, with one for each way in which a call ended.
class Corpus {
 public:
  explicit Corpus(std::vector<Request> requests) : requests_(std::move(requests)) {}

  // A copy of one, and one of the same method.
  std::pair<Request, Request> Draw(tests::SeededRandom& random) {
    const std::lock_guard lock(mutex_);
    const Request& one = requests_[random.Below(requests_.size())];
    const Request* other = &one;
    for (int i = 0; i < 8; ++i) {
      const Request& drawn = requests_[random.Below(requests_.size())];
      if (drawn.method == one.method && drawn.message != nullptr) other = &drawn;
    }
    return {one.Copy(), other->Copy()};
  }

  void Add(Request request, const std::string& way) {
    const std::size_t bytes = request.Serialized().size();
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(way);
    if (place == places_.end()) {
      if (requests_.size() == kCorpusMax) return;
      places_.emplace(way, Kept{requests_.size(), bytes});
      requests_.push_back(std::move(request));
    } else if (bytes < place->second.bytes) {
      requests_[place->second.place] = std::move(request);
      place->second.bytes = bytes;
    }
  }

  std::size_t ways() const { return places_.size(); }
  bool Has(const std::string& way) const { return places_.contains(way); }
  void WriteKept(const std::string& file) const {
    std::vector<std::string> lines;
    for (const auto& [way, kept] : places_) {
      if (kept.bytes <= kKeptBytesMax) lines.push_back(LineOf(requests_[kept.place]));
    }
    std::ranges::sort(lines);
    std::ofstream out(file);
    for (const std::string& line : lines) out << line << '\n';
  }

 private:
  struct Kept {
    std::size_t place = 0;
    std::size_t bytes = 0;
  };
  std::mutex mutex_;
  std::vector<Request> requests_;
  std::map<std::string, Kept> places_;
};

class RequestMutationsTest : public testing::Test {
 protected:
  RequestMutationsTest() {
    google::protobuf::SetLogHandler(nullptr);  // it has a line for each text that is not UTF-8
    const Generation generation(1, kShape);
    for (const char* const folder : {"one", "items"}) generation.Write(scratch_.path() / folder);
    Generation(2, kShape).Write(scratch_.path() / "two");
    Generation(3, {kShape.rows, 16, "cosine"}).Write(scratch_.path() / "three");
    server_.emplace([this](app::Config& config) {
      config.collections = {{"items", scratch_.path() / "items"},
                            {"steady", scratch_.path() / "items"}};
      config.data_root = scratch_.path();
      config.changes_allowed = true;
      config.admin_allowed = true;
    });
    right_ = generation.Neighbours(3);
  }

  // Sends mutations until enough are sent.
  void Mutate(std::size_t thread) {
    const auto channel = Connect(server_->app().address());
    MessageMutator mutator(seed_ * kThreads + thread, Words());
    for (std::uint64_t turn = 1; sent_ < requests_ && Clock::now() < end_; ++turn) {
      SendOne(channel, mutator);
      if (thread == 0 && turn % 256 == 0) LoadItems();  // so that requests find what they name
    }
  }

  void SendOne(const std::shared_ptr<grpc::Channel>& channel, MessageMutator& mutator) {
    tests::SeededRandom& random = mutator.random();
    auto [request, donor] = corpus_->Draw(random);
    // Changes are slow, and what they do is drawn often enough.
    const bool slow = request.method->server_streams && !request.method->client_streams;
    if ((slow || request.method->name == "Diagnose") && !random.OneIn(16)) return;
    if (request.message != nullptr && donor.message != nullptr) {
      mutator.Mutate(*request.message, *donor.message);
    }
    if (request.message == nullptr || random.OneIn(12)) {
      request.bytes = request.Serialized();
      request.message = nullptr;
      mutator.MutateBytes(request.bytes);
    }
    std::vector<std::string> sent = {request.Serialized()};
    if (sent.front().size() > kBytesMax) return;
    if (request.method->client_streams) {
      while (sent.size() < 4 && random.OneIn(2)) sent.push_back(donor.Serialized());
    }
    Submit(channel, std::move(request), sent, random.OneIn(64), mutator);
  }

  //   sent     the serialized request, and others that follow it in a stream
  //   hurried  gives the server next to no time
  void Submit(const std::shared_ptr<grpc::Channel>& channel, Request request,
              const std::vector<std::string>& sent, bool hurried, MessageMutator& mutator) {
    const auto timeout = hurried ? std::chrono::milliseconds(mutator.random().Between(1, 5))
                                 : std::chrono::milliseconds(kCallWithin);
    ++sent_;
    const Ended ended = Send(channel, *request.method, sent, timeout);
    const std::string wrong = WrongWith(*request.method, ended, hurried);
    if (!wrong.empty()) {
      ADD_FAILURE() << wrong << ": " << testing::PrintToString(ended.outcome) << "\n"
                    << LineOf(request).substr(0, 4'000);
    }
    Learn(*request.method, ended, mutator);
    if (hurried) return;
    const std::string way = WayOf(*request.method, ended.outcome);
    corpus_->Add(std::move(request), way);
  }

  // Sends what the corpus begins with: each method succeeds.
  void SendCorpus(const std::vector<Request>& requests) {
    const auto channel = Connect(server_->app().address());
    MessageMutator mutator(seed_, Words());
    for (const Request& request : requests) {
      Submit(channel, request.Copy(), {request.Serialized()}, false, mutator);
    }
    for (const Method& method : methods_) {
      EXPECT_TRUE(corpus_->Has(WayOf(method, Outcome()))) << method.path << " never succeeds";
    }
  }

  static void Learn(const Method& method, const Ended& ended, MessageMutator& mutator) {
    if (!ended.outcome.ok() || ended.answers.empty()) return;
    if (method.name == "Search") {
      v1::SearchResponse answer;
      answer.ParseFromString(ended.answers.front());
      if (!answer.next_page_token().empty()) mutator.Learn(answer.next_page_token());
      mutator.Learn(answer.receipt().snapshot_id());
    }
  }

  void LoadItems() {
    v1::LoadCollectionRequest request;
    request.set_collection("items");
    request.set_folder("one");
    integration::ChangeAnswer answer;
    server_->NewClient().Load(request, answer);  // else it is there already
  }

  const std::vector<Method> methods_ = AllMethods();
  const std::uint64_t seed_ = NumberFrom("TEST_SEED", 1);
  const std::uint64_t requests_ =
      NumberFrom("TEST_REQUESTS", std::getenv("TEST_SECONDS") != nullptr ? ~0ULL >> 1 : 20'000);
  const Clock::time_point end_ =
      Clock::now() + std::chrono::seconds(NumberFrom("TEST_SECONDS", 24L * 3'600));
  const ScratchFolder scratch_;
  std::optional<integration::FilmsServer> server_;
  std::vector<Generation::Expected> right_;
  std::unique_ptr<Corpus> corpus_;
  std::atomic<std::uint64_t> sent_{0};
};

TEST_F(RequestMutationsTest, EveryCallEndsRightAndHonestOnesAreAnswered) {
  corpus_ = std::make_unique<Corpus>(ReadCorpus(kCorpus, methods_));
  SendCorpus(ReadCorpus(kCorpus, methods_));
  const auto begin = Clock::now();
  // What no request changes.
  integration::HonestClient honest(server_->NewClient(), Generation::Search(3, "steady"),
                                   [this](const auto& response) {
                                     return Generation::Equal(response.results(0).hits(), right_);
                                   });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { Mutate(i); });
  for (std::thread& thread : threads) thread.join();
  const integration::SearchTimes honest_times = honest.End();
  EXPECT_GE(corpus_->ways(), 100U);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("TEST_SEED=%llu: %llu mutated requests in %.0f s, which ended in %zu ways; %s\n",
              static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(sent_),
              seconds, corpus_->ways(), integration::SearchTimesText(honest_times).c_str());
  if (const char* const file = std::getenv("TEST_KEEP")) corpus_->WriteKept(file);
}

}  // namespace
}  // namespace simile::request_mutations
