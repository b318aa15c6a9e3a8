// An allocation that fails ends the call or the change that made it, and nothing else. Calls and
// changes are made as the server makes them, but without gRPC. Each is made once for each of its
// allocations, which then fails. A program of its own, because watched_memory.cpp replaces operator
// new.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include "backend/registry.h"
#include "base/error_detail.h"
#include "certificate/seeded_random.h"
#include "engine/fake_clock.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"
#include "grpc/health/v1/health.pb.h"
#include "memory/each_allocation.h"
#include "memory/watched_memory.h"
#include "observe/build_info.h"
#include "service/admin_handlers.h"
#include "service/calls/call.h"
#include "service/calls/health.h"
#include "service/handlers.h"
#include "service/self_examination.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

// A map of protobuf loses the key that it inserts when the allocation after it fails.
extern "C" const char* __lsan_default_suppressions();   // NOLINT: the sanitizer's name
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:google::protobuf::Map<";
}

namespace simile::service {
namespace {

using google::protobuf::Arena;
using tests::Allocations;
using tests::ForEachAllocation;
using tests::WatchedMemory;
using Of = WatchedMemory::Of;

constexpr std::size_t kDim = 8;
constexpr std::size_t kRows = 20;
constexpr std::size_t kUsers = 3;

std::string FormatId(std::size_t row) { return fmt::format("a-film-with-a-long-id-{}", row); }

// Writes a collection with every kind of file and field. Another edition has other vectors.
void WriteCatalogue(const std::filesystem::path& folder, std::size_t edition) {
  std::filesystem::create_directories(folder);
  tests::SeededRandom random(7 + edition);
  const auto vectors = [&](std::size_t count) {
    std::vector<float> numbers(count * kDim);
    for (float& number : numbers) number = random.Signed();
    return NpyFile(numbers, kDim);
  };
  const auto write = [&](const char* name, std::string_view bytes) {
    std::ofstream(folder / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  write("content_vectors.npy", vectors(kRows));
  write("preference_vectors.npy", vectors(kUsers));
  write("user_ids.json", R"(["user-0", "user-1", "user-2"])");
  std::string payload;
  std::string interactions;
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::string id = FormatId(row);
    std::string others;  // so many names that they are looked for in a table
    for (int i = 0; row == 0 && i < 20; ++i) others += fmt::format(R"(,"field-{}":{})", i, i);
    payload += fmt::format(
        R"({{"id":"{}","title":"The long night of river {}","year":{},"genres":["Genre {}","Drama"],)"
        R"("countries":"France|Country {}","series":"Series {}","seen":true,)"
        R"("released":"2020-01-{:02}T00:00:00Z"{}}})"
        "\n",
        id, row, 1980 + row % 7, row % 5, row % 3, row % 6, 1 + row % 28, others);
    interactions += fmt::format(R"({{"user_id":"user-{}","media_id":"{}"}})"
                                "\n",
                                row % kUsers, id);
  }
  write("metadata.jsonl", payload);
  write("interactions.jsonl", interactions);
}

// A call without gRPC. It keeps its reply in memory that it allocates at first, since it must
// record its end when no memory is left.
class RecordedCall final : public Call {
 public:
  explicit RecordedCall(const Clock& clock) : arrived_at_(clock.Now()), bytes_(kReplyBytesMax) {}

  std::string_view method() const override { return "simile.v1.SearchService/Search"; }
  std::string_view request_id() const override { return "4f1c"; }
  Clock::TimePoint arrived_at() const override { return arrived_at_; }
  std::optional<Clock::TimePoint> deadline() const override { return std::nullopt; }
  std::stop_token cancelled() const override { return cancelled_.get_token(); }
  void SetReplyLimit(std::uint64_t /*bytes_max*/, std::string_view /*remedy*/) override {}
  void Finish(const absl::Status& status) override { End(status, 0); }
  void FinishWith(const Reply& reply) override {
    reply.Write(bytes_.data());
    End(absl::OkStatus(), reply.bytes());
  }

  // Returns when the call has ended, with its reason; nothing for OK.
  std::optional<base::ErrorReason> AwaitEnd() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return ends_ > 0; });
    return reason_;
  }
  int ends() const {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  std::string_view reply() const {
    return {reinterpret_cast<const char*>(bytes_.data()), reply_bytes_};
  }

 private:
  static constexpr std::size_t kReplyBytesMax = 1U << 20;

  void End(const absl::Status& status, std::size_t reply_bytes) {
    const std::lock_guard lock(mutex_);
    ++ends_;
    reply_bytes_ = reply_bytes;
    if (!status.ok()) reason_ = base::ReasonOf(status);
    ended_.notify_all();
  }

  const Clock::TimePoint arrived_at_;
  std::stop_source cancelled_;
  std::vector<std::uint8_t> bytes_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable ended_;
  int ends_ = 0;
  std::size_t reply_bytes_ = 0;
  std::optional<base::ErrorReason> reason_;
};

// Equal messages have equal bytes.
std::string Serialize(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Threads or descriptors of this process.
std::size_t CountEntries(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

// A server without gRPC, with one collection.
class AllocationFailureTest : public testing::Test {
 protected:
  AllocationFailureTest() {
    WriteCatalogue(scratch_.path() / "one", 1);
    WriteCatalogue(scratch_.path() / "two", 2);
    EXPECT_TRUE(Change(ChangeKind::kLoad, "one").ok());
  }
  ~AllocationFailureTest() override { queue_.Stop(); }

  static backend::Chosen Backend() {
    backend::RegistryOptions options;
    options.preference = backend::Preference::kCpu;
    options.threads = 2;
    return backend::ChooseBackend(options).value();
  }

  // Makes a change and returns its end.
  absl::Status Change(ChangeKind kind, const std::string& folder) {
    ChangeRequest request;
    request.kind = kind;
    request.collection = "films";
    request.folder.path = folder;
    std::promise<absl::Status> end;
    ChangeCaller caller;
    caller.done = [&](const absl::StatusOr<engine::SnapshotPtr>& result) {
      end.set_value(result.status());
    };
    const absl::Status started = changes_.Start(request, std::move(caller));
    return started.ok() ? end.get_future().get() : started;
  }

  // Makes a change while an allocation of some threads fails.
  //   failed  set to whether this allocation was made
  absl::Status ChangeWithout(Of threads, std::size_t number, ChangeKind kind,
                             const std::string& folder, bool& failed) {
    absl::Status end;
    {
      const WatchedMemory memory(threads, number);
      end = Guarded([&] { return Change(kind, folder); });  // as a handler calls it
      failed = memory.has_failed();
    }
    EXPECT_TRUE(end.ok() || end.code() == absl::StatusCode::kResourceExhausted) << end;
    EXPECT_FALSE(changes_.AnyUnderWay());
    return end;
  }
  // Checks what a change that replaces `before` leaves after this end.
  void ExpectServed(const engine::SnapshotPtr& before, const absl::Status& end) {
    const engine::CollectionStatus status = store_.Get("films").value();
    EXPECT_EQ(status.state, engine::CollectionState::kServing);
    EXPECT_EQ(status.snapshot->version, before->version + (end.ok() ? 1 : 0));
    EXPECT_EQ(status.snapshot == before, !end.ok());
  }

  // The bytes of a request, for one call.
  using Text = std::function<std::string()>;
  struct End {
    std::optional<base::ErrorReason> reason;  // nothing for OK
    std::string reply;
    bool failed = false;  // whether the allocation that was to fail was made
  };

  // Repeats the call until it has no more allocations; each time the next allocation fails. It
  // fails on this thread, or on the worker that handles the call and all threads that get its work.
  //   handle  (call, request, response), as in the table of methods
  template <class Request, class Response = void, class Handle>
  void CallWithFailures(const std::string& what, const Text& text, const Handle& handle) {
    SCOPED_TRACE(what);
    for (const Of threads : {Of::kThisThread, Of::kOtherThreads}) {
      SCOPED_TRACE(threads == Of::kThisThread ? "of this thread" : "of other threads");
      const End first = CallOnce<Request, Response>(text(), handle, threads, 0);
      ASSERT_EQ(first.reason, std::nullopt);
      ForEachAllocation(Allocations::kAll, [&](std::size_t number, bool& failed) {
        const End end = CallOnce<Request, Response>(text(), handle, threads, number);
        failed = end.failed;
        if (end.reason) {
          ASSERT_EQ(*end.reason, base::ErrorReason::kOutOfMemory);
          ASSERT_TRUE(failed);
        } else {
          ASSERT_EQ(end.reply, first.reply);
        }
        const End next = CallOnce<Request, Response>(text(), handle, threads, 0);
        ASSERT_EQ(next.reason, std::nullopt);
        ASSERT_EQ(next.reply, first.reply);
        ExpectNothingIsHeld();
      });
    }
  }

  //   failing  the allocation of these threads that fails; 0 for none
  template <class Request, class Response, class Handle>
  End CallOnce(const std::string& text, const Handle& handle, Of threads, std::size_t failing) {
    Arena arena;
    auto& request = *Arena::CreateMessage<Request>(&arena);
    EXPECT_TRUE(request.ParseFromString(text));
    std::conditional_t<std::is_void_v<Response>, std::nullptr_t, Response*> response = nullptr;
    if constexpr (!std::is_void_v<Response>) response = Arena::CreateMessage<Response>(&arena);
    RecordedCall call(clock_);
    std::promise<void> handled;
    End end;
    {
      const WatchedMemory memory(threads, failing);
      if (threads == Of::kThisThread) {
        handle(call, request, response);
        handled.set_value();
      } else {
        EXPECT_TRUE(workers_.Post([&] {
          handle(call, request, response);
          handled.set_value();
        }));
      }
      end.reason = call.AwaitEnd();
      end.failed = memory.has_failed();
    }
    handled.get_future().wait();
    EXPECT_EQ(call.ends(), 1);
    end.reply = call.reply();
    if constexpr (!std::is_void_v<Response>) {
      if (!end.reason) end.reply = Serialize(*response);  // an error sends none of it
    }
    return end;
  }

  // Checks the server after an answered call.
  void ExpectNothingIsHeld() {
    const engine::ExecutorCounts counts = executor_.counts();
    EXPECT_EQ(counts.queue_depth, 0U);
    EXPECT_EQ(counts.queue_bytes, 0U);
    for (const engine::LaneCounts& lane : counts.lanes) {
      EXPECT_EQ(lane.waiting, 0U);
      EXPECT_EQ(lane.running, 0U);
      EXPECT_EQ(lane.large_waiting, 0U);
    }
    const ResolveWorkers::Counts work = workers_.counts();
    EXPECT_EQ(work.waiting, 0U);
    EXPECT_EQ(work.waiting_bytes, 0U);
  }

  const ScratchFolder scratch_;
  Limits limits_;
  engine::FakeClock clock_;
  std::ostringstream written_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kInfo, &written_}};
  observe::Metrics metrics_{observe::GetBuildInfo()};
  backend::Chosen chosen_ = Backend();
  const ServingBackend serving_{*chosen_.backend, "a test"};
  engine::SnapshotStore store_{clock_};
  engine::Publisher publisher_{{limits_, 1U << 30}, *chosen_.backend, store_, clock_};
  engine::ChangeQueue queue_{1};
  CollectionChanges changes_{{true, scratch_.path()},
                             {publisher_, store_, queue_, metrics_, log_, clock_, limits_}};
  engine::Executor executor_{{},
                             {chosen_.backend->info(), "a test"},
                             clock_,
                             [this](const engine::Executor::BatchReport& report) {
                               metrics_.RecordBatch(report.backend, report.batch_size,
                                                    report.compute_us, report.queue_us);
                             }};
  ResolveWorkers workers_{{}, clock_};
  const ServedCollections served_{store_, changes_};
  const SearchPipeline pipeline_{
      {clock_, served_.snapshots(), executor_, metrics_, limits_, workers_}};
  observe::AuditLog audit_{log_, clock_};
  const CollectionParts collections_{clock_, served_, serving_, executor_, audit_, limits_};
  const LookupParts lookups_{clock_, served_.snapshots(), limits_, metrics_};
};

using Edit = std::function<void(v1::SearchRequest& request, v1::Query& query)>;

std::string SerializeEdited(const Edit& edit) {
  v1::SearchRequest request;
  request.set_collection("films");
  request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  v1::Query& query = *request.add_queries();
  query.set_id(FormatId(3));
  query.set_k(5);
  edit(request, query);
  return request.SerializeAsString();
}

void AddVector(v1::Query& query) {
  for (std::size_t i = 0; i < kDim; ++i) {
    query.mutable_vector()->add_values(static_cast<float>(i) - 2);
  }
}

void AddExamples(v1::Query& query, v1::Examples::Strategy strategy) {
  v1::Examples& examples = *query.mutable_examples();
  examples.set_strategy(strategy);
  for (const std::size_t row : {1, 5, 9}) {
    examples.add_positive()->set_id(FormatId(row));
  }
  examples.add_negative()->set_id(FormatId(15));
}

// Every kind of query, and every option that changes its path.
std::vector<std::pair<std::string, Edit>> Searches() {
  const auto payload = [](v1::SearchRequest& request) {
    request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_ALL);
  };
  return {
      {"id", [](auto&, auto&) {}},
      {"vector", [](auto&, auto& query) { AddVector(query); }},
      {"user",
       [](auto&, auto& query) { query.set_user_id("user-1"), query.set_exclude_seen(true); }},
      {"cold start",
       [](auto& request, auto& query) {
         query.set_user_id("somebody who is not known");
         request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
         request.mutable_options()->mutable_cold_start()->set_field("released");
       }},
      {"average",
       [](auto&, auto& query) { AddExamples(query, v1::Examples::STRATEGY_AVERAGE_VECTOR); }},
      {"best score",
       [](auto&, auto& query) { AddExamples(query, v1::Examples::STRATEGY_BEST_SCORE); }},
      {"sum of scores",
       [](auto&, auto& query) { AddExamples(query, v1::Examples::STRATEGY_SUM_SCORES); }},
      {"blend",
       [](auto&, auto& query) {
         query.mutable_blend()->set_id(FormatId(4));
         query.mutable_blend()->set_user_id("user-2");
       }},
      {"filter", [](auto&, auto& query) { query.set_filter("year >= 1982 AND genres:\"drama\""); }},
      {"required filter",
       [](auto& request, auto& query) {
         query.set_filter("countries:\"France\" AND NOT year = 1981");
         request.mutable_options()->set_required_filter("series != \"Series 2\"");
       }},
      {"exclusions",
       [](auto& request, auto& query) {
         for (std::size_t row = 10; row < 30; ++row) {
           query.add_exclude_ids(FormatId(row));
           request.mutable_options()->add_exclude_ids(FormatId(row + 5));
         }
       }},
      {"groups",
       [](auto&, auto& query) {
         query.mutable_group_by()->set_field("genres");
         query.mutable_group_by()->set_group_size(3);
         query.set_k(4);
       }},
      {"diversity", [](auto&, auto& query) { query.mutable_diversity()->set_candidates(30); }},
      {"payload and vectors, all rows",
       [payload](auto& request, auto& query) {
         payload(request);
         request.mutable_options()->set_with_vectors(true);
         request.mutable_options()->set_with_rows(true);
         query.set_k(1'000);
       }},
      {"pages",
       [payload](auto& request, auto&) {
         payload(request);
         request.mutable_options()->set_paged(true);
       }},
      {"bulk, with many queries",
       [](auto& request, auto&) {
         request.mutable_options()->set_priority(v1::PRIORITY_BULK);
         for (std::size_t row = 0; row < 20; ++row) {
           v1::Query& query = *request.add_queries();
           query.set_id(FormatId(row));
           query.set_filter(fmt::format("year >= {}", 1980 + row % 4));
         }
       }},
  };
}

TEST_F(AllocationFailureTest, AnswersEverySearchOnceOrRefusesItForLackOfMemory) {
  const auto handle = [this](Call& call, const v1::SearchRequest& request, auto) {
    HandleSearch(pipeline_, call, request);
  };
  for (const auto& [what, edit] : Searches()) {
    CallWithFailures<v1::SearchRequest>(
        what, [text = SerializeEdited(edit)] { return text; }, handle);
  }
}

TEST_F(AllocationFailureTest, AnswersSearchesWhoseFilterIsNotCached) {
  int calls = 0;
  CallWithFailures<v1::SearchRequest>(
      "another filter each time",
      [&] {
        return SerializeEdited([&](auto&, auto& query) {
          query.set_filter(fmt::format("year > 1982 OR year = {}", 5'000 + ++calls));
        });
      },
      [this](Call& call, const v1::SearchRequest& request, auto) {
        HandleSearch(pipeline_, call, request);
      });
}

TEST_F(AllocationFailureTest, AnswersRecommendations) {
  v1::RecommendRequest request;
  request.set_collection("films");
  request.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  request.mutable_options()->set_exclude_seen(true);
  for (const char* const user : {"user-0", "user-1", "user-2"}) request.add_user_ids(user);
  CallWithFailures<v1::RecommendRequest>(
      "Recommend", [&] { return request.SerializeAsString(); },
      [this](Call& call, const v1::RecommendRequest& asked, auto) {
        HandleRecommend(pipeline_, call, asked);
      });
}

TEST_F(AllocationFailureTest, AnswersFetchesAndLookups) {
  v1::FetchRequest fetch;
  fetch.set_collection("films");
  fetch.set_with_vectors(true);
  fetch.set_required_filter("year < 1986");
  for (const std::size_t row : {1, 2, 9}) fetch.add_ids(FormatId(row));
  CallWithFailures<v1::FetchRequest>(
      "Fetch", [&] { return fetch.SerializeAsString(); },
      [this](Call& call, const v1::FetchRequest& asked, auto) {
        HandleFetch(lookups_, call, asked);
      });
  v1::LookupRequest lookup;
  lookup.set_collection("films");
  lookup.set_text("night of river 1");
  CallWithFailures<v1::LookupRequest>(
      "Lookup", [&] { return lookup.SerializeAsString(); },
      [this](Call& call, const v1::LookupRequest& asked, auto) {
        HandleLookup(lookups_, call, asked);
      });
}

TEST_F(AllocationFailureTest, AnswersWhatIsAskedOfCollectionsAndServer) {
  CallWithFailures<v1::ListCollectionsRequest, v1::ListCollectionsResponse>(
      "ListCollections", [] { return std::string(); },
      [this](Call& call, const auto& request, auto* response) {
        HandleListCollections(collections_, call, request, *response);
      });
  v1::GetCollectionRequest get;
  get.set_collection("films");
  CallWithFailures<v1::GetCollectionRequest, v1::GetCollectionResponse>(
      "GetCollection", [&] { return get.SerializeAsString(); },
      [this](Call& call, const auto& request, auto* response) {
        HandleGetCollection(collections_, call, request, *response);
      });
  v1::DescribeFieldsRequest describe;
  describe.set_collection("films");
  CallWithFailures<v1::DescribeFieldsRequest, v1::DescribeFieldsResponse>(
      "DescribeFields", [&] { return describe.SerializeAsString(); },
      [this](Call& call, const auto& request, auto* response) {
        HandleDescribeFields(collections_, call, request, *response);
      });
  Health health;
  health.SetCollectionServing("films", true);
  Health::Request check;
  check.set_service("films");
  CallWithFailures<Health::Request, Health::Response>(
      "Check", [&] { return check.SerializeAsString(); },
      [&](Call& call, const auto& request, auto* response) {
        health.Check(call, request, *response);
      });
  SelfExamination examination([] { return doctor::Options(); }, std::chrono::seconds(1));
  const AdminParts admin{
      .backend = serving_,
      .limits = limits_,
      .clock = clock_,
      .admin_allowed = true,
      .started_at = clock_.WallNow(),
      .started = clock_.Now(),
      .read_metrics = [](const PermittedServer&) { return std::vector<observe::MetricSample>(); },
      .examination = examination};
  CallWithFailures<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
      "GetServerInfo", [] { return std::string(); },
      [&](Call& call, const auto&, auto* response) {
        HandleGetServerInfo(admin, call, *response);
      });
  CallWithFailures<v1::GetStatsRequest, v1::GetStatsResponse>(
      "GetStats", [] { return std::string(); },
      [&](Call& call, const auto&, auto* response) { HandleGetStats(admin, call, *response); });
}

TEST_F(AllocationFailureTest, ReplacesACollectionOrServesTheFormerGeneration) {
  ASSERT_TRUE(Change(ChangeKind::kReload, "two").ok());
  ASSERT_TRUE(Change(ChangeKind::kReload, "one").ok());
  const std::size_t threads = CountEntries("/proc/self/task");
  const std::size_t descriptors = CountEntries("/proc/self/fd");
  std::size_t failures = 0;
  for (const Of of : {Of::kThisThread, Of::kOtherThreads}) {
    ForEachAllocation(Allocations::kSome, [&](std::size_t number, bool& failed) {
      const engine::SnapshotPtr before = store_.Pin("films").value();
      const std::string served = changes_.FindOrigin(*before).folder;
      const std::string other = served == "one" ? "two" : "one";
      const absl::Status end = ChangeWithout(of, number, ChangeKind::kReload, other, failed);
      ExpectServed(before, end);
      ASSERT_EQ(changes_.FindOrigin(**store_.Pin("films")).folder, end.ok() ? other : served);
      failures += end.ok() ? 0 : 1;
    });
    ForEachAllocation(Allocations::kSome, [&](std::size_t number, bool& failed) {
      const engine::SnapshotPtr before = store_.Pin("films").value();
      const absl::Status end = ChangeWithout(of, number, ChangeKind::kRollback, "", failed);
      ExpectServed(before, end);
      if (!end.ok()) return;
      const std::string served = changes_.FindOrigin(**store_.Pin("films")).folder;
      ASSERT_TRUE(Change(ChangeKind::kReload, served == "one" ? "two" : "one").ok());
    });
  }
  EXPECT_GT(failures, 300U);
  ASSERT_TRUE(Change(ChangeKind::kReload, "two").ok());
  ASSERT_TRUE(Change(ChangeKind::kReload, "one").ok());
  EXPECT_EQ(CountEntries("/proc/self/task"), threads);
  EXPECT_EQ(CountEntries("/proc/self/fd"), descriptors);
}

TEST_F(AllocationFailureTest, LoadsAndUnloadsOrLeavesNothingBehind) {
  ASSERT_TRUE(changes_.Unload("films", "").ok());
  for (const Of of : {Of::kThisThread, Of::kOtherThreads}) {
    ForEachAllocation(Allocations::kSome, [&](std::size_t number, bool& failed) {
      const absl::Status end = ChangeWithout(of, number, ChangeKind::kLoad, "one", failed);
      ASSERT_EQ(store_.Pin("films").ok(), end.ok()) << end;
      ASSERT_EQ(store_.List().size(), end.ok() ? 1U : 0U);
      ASSERT_TRUE(!end.ok() || changes_.Unload("films", "").ok());
    });
  }
  ASSERT_TRUE(Change(ChangeKind::kLoad, "one").ok());
  ForEachAllocation(Allocations::kAll, [&](std::size_t number, bool& failed) {
    absl::Status end;
    {
      const WatchedMemory memory(Of::kThisThread, number);
      end = Guarded([&] { return changes_.Unload("films", ""); });
      failed = memory.has_failed();
    }
    ASSERT_EQ(store_.Pin("films").ok(), !end.ok()) << end;
    ASSERT_TRUE(!end.ok() || Change(ChangeKind::kLoad, "one").ok());
  });
}

}  // namespace
}  // namespace simile::service
