// One call after the other of the server's own code fails: an allocation, a read, an open, a write,
// the start of a thread; and each time the process lives, the caller gets an error that says so or
// the right answer, everything is answered right afterwards and nothing stays held. The calls are
// counted from the command of a test, so that a case can be repeated: TEST_FAULT=reload/memory/17
// runs that one alone. FAULTS=all runs every number, otherwise the first ones and, of the others,
// those that this run covers (conformance/rotation.h).
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/rotation.h"
#include "faults/fault_rig.h"
#include "integration/films_server.h"

namespace simile::faults {
namespace {

using integration::CallOptions;
using integration::ChangeAnswer;
using integration::Client;
using integration::Outcome;

// No call may take that long: one that does was never answered.
const CallOptions kInTime{.timeout = std::chrono::seconds(20), .metadata = {}};

// A case to repeat.
struct Replay {
  std::string operation;
  std::string kind;
  std::uint64_t number = 0;
};

std::optional<Replay> ReplayFromEnvironment() {
  const char* const text = std::getenv("TEST_FAULT");
  if (text == nullptr) return std::nullopt;
  const std::string_view words(text);
  const std::size_t first = words.find('/');
  const std::size_t last = words.rfind('/');
  if (first == std::string_view::npos || last == first) return std::nullopt;
  return Replay{std::string(words.substr(0, first)),
                std::string(words.substr(first + 1, last - first - 1)),
                std::strtoull(text + last + 1, nullptr, 10)};
}

// What a test makes the server do.
struct Operation {
  std::string name;
  std::vector<FaultKind> kinds;
  std::function<Outcome(FaultRig& rig, std::string& served)> make;
  bool connects = false;  // then the connection may end, too
};
void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

//   folder  of the generation that is served then
Outcome SearchFor(FaultRig& rig, const v1::SearchRequest& request, std::size_t row,
                  const std::string& folder) {
  v1::SearchResponse response;
  const Outcome outcome = rig.client().Search(request, response, kInTime);
  if (outcome.ok()) {
    EXPECT_TRUE(Generation::Equal(response.results(0).hits(), FaultRig::Of(folder).Neighbours(row)));
  }
  return outcome;
}

Outcome Reload(FaultRig& rig, std::string& served) {
  const std::string other = served == "one" ? "two" : "one";
  v1::ReloadCollectionRequest request;
  request.set_collection("items");
  request.set_folder(other);
  ChangeAnswer answer;
  const Outcome outcome = rig.client().Reload(request, answer, kInTime);
  if (outcome.ok()) served = other;
  return outcome;
}

Outcome LoadAndUnload(FaultRig& rig, std::string& /*served*/) {
  v1::LoadCollectionRequest request;
  request.set_collection("more");
  request.set_folder("two");
  ChangeAnswer answer;
  Outcome outcome = rig.client().Load(request, answer, kInTime);
  const Outcome unloaded = rig.client().Unload("more");
  if (unloaded.ok()) return outcome;
  if (outcome.ok()) {
    outcome = unloaded;
    rig.faults().Disarm();
    EXPECT_TRUE(rig.client().Unload("more").ok());
  }
  return outcome;
}

Outcome RollBack(FaultRig& rig, std::string& served) {
  ChangeAnswer answer;
  v1::RollbackCollectionRequest request;
  request.set_collection("items");
  const Outcome outcome = rig.client().Rollback(request, answer, kInTime);
  if (!outcome.ok()) return outcome;
  served = served == "one" ? "two" : "one";
  // Another reload is what the next rollback takes back.
  rig.faults().Disarm();
  EXPECT_TRUE(Reload(rig, served).ok());
  return outcome;
}

Outcome Recommend(FaultRig& rig, std::string& /*served*/) {
  v1::RecommendRequest request;
  request.set_collection("items");
  for (const char* const user : {"user-0", "user-3"}) request.add_user_ids(user);
  request.mutable_options()->set_exclude_seen(true);
  v1::RecommendResponse response;
  return rig.client().Recommend(request, response, kInTime);
}

Outcome SearchWithAll(FaultRig& rig, std::string& served) {
  v1::SearchRequest request = Generation::Search(7);
  request.mutable_options()->mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_ALL);
  request.mutable_queries(0)->set_filter("year >= 1950 AND genres:\"drama\"");
  return SearchFor(rig, request, 7, served);
}

Outcome SearchDiverse(FaultRig& rig, std::string& /*served*/) {
  v1::SearchRequest request = Generation::Search(7);
  request.mutable_queries(0)->mutable_diversity()->set_candidates(30);
  v1::Query& grouped = *request.add_queries();
  grouped.set_id("item-9");
  grouped.mutable_group_by()->set_field("genres");
  grouped.mutable_group_by()->set_group_size(2);
  v1::SearchResponse response;
  return rig.client().Search(request, response, kInTime);
}

Outcome FetchAndLookUp(FaultRig& rig, std::string& /*served*/) {
  v1::FetchRequest fetch;
  fetch.set_collection("items");
  fetch.add_ids("item-3");
  v1::FetchResponse fetched;
  const Outcome outcome = rig.client().Fetch(fetch, fetched);
  if (!outcome.ok()) return outcome;
  v1::LookupRequest lookup;
  lookup.set_collection("items");
  lookup.set_text("tale of river");
  v1::LookupResponse found;
  return rig.client().Lookup(lookup, found);
}

Outcome Describe(FaultRig& rig, std::string& /*served*/) {
  v1::ListCollectionsResponse listed;
  const Outcome outcome = rig.client().List(listed);
  if (!outcome.ok()) return outcome;
  v1::GetStatsResponse stats;
  return rig.client().GetStats(stats);
}

Outcome Connect(FaultRig& rig, std::string& served) {
  const std::unique_ptr<Client> client = rig.NewClient();
  v1::SearchResponse response;
  const Outcome outcome = client->Search(Generation::Search(3), response, kInTime);
  if (outcome.ok()) {
    EXPECT_TRUE(Generation::Equal(response.results(0).hits(), FaultRig::Of(served).Neighbours(3)));
  }
  return outcome;
}

std::vector<Operation> Operations() {
  using Kind = FaultKind;
  const std::vector<Kind> of_calls = {Kind::kMemory, Kind::kThread};
  const std::vector<Kind> of_loads = {Kind::kMemory, Kind::kRead, Kind::kShortRead, Kind::kOpen,
                                      Kind::kThread};
  return {
      {"search", of_calls,
       [](FaultRig& rig, std::string& served) {
         return SearchFor(rig, Generation::Search(3), 3, served);
       }},
      {"search-with-all", of_calls, SearchWithAll},
      {"search-diverse", of_calls, SearchDiverse},
      {"recommend", of_calls, Recommend},
      {"fetch", of_calls, FetchAndLookUp},
      {"describe", of_calls, Describe},
      {"connect", of_calls, Connect, true},
      {"load", of_loads, LoadAndUnload},
      {"reload", of_loads, Reload},
      {"rollback", of_loads, RollBack},
  };
}

// How calls may end in which one of the server's own failed.
bool IsRight(const Operation& operation, FaultKind kind, const Outcome& outcome) {
  using Code = absl::StatusCode;
  if (operation.connects && outcome.code == Code::kUnavailable) return true;
  switch (kind) {
    case FaultKind::kMemory:
    case FaultKind::kThread:
      return outcome.code == Code::kOk || outcome.code == Code::kResourceExhausted;
    case FaultKind::kShortRead:
      return outcome.code == Code::kOk;
    default:
      return outcome.code != Code::kDeadlineExceeded && outcome.code != Code::kUnavailable;
  }
}

class FaultsTest : public testing::TestWithParam<Operation> {
 protected:
  void SetUp() override { Begin(); }

  void Begin() {
    served_ = "one";
    ASSERT_TRUE(rig_.Begin({.arguments = {"--allow-admin"}}));
    // So that a rollback has something to return to, and every thread and connection is there.
    ASSERT_TRUE(Reload(rig_, served_).ok());
    ASSERT_TRUE(GetParam().make(rig_, served_).ok());
    ASSERT_TRUE(rig_.Serves(served_));
    rig_.Remember();
  }

  // Returns whether a call has failed.
  bool Attempt(FaultKind kind, std::uint64_t number) {
    const std::string repeat =
        fmt::format("TEST_FAULT={}/{}/{}", GetParam().name, NameOf(kind), number);
    const int before = failures();
    rig_.faults().Arm(kind, number);
    const Outcome outcome = GetParam().make(rig_, served_);
    const bool failed = rig_.faults().Disarm();
    EXPECT_TRUE(failed ? IsRight(GetParam(), kind, outcome) : outcome.ok())
        << repeat << ": " << testing::PrintToString(outcome);
    EXPECT_TRUE(outcome.ok() || !outcome.message.empty()) << repeat;
    LearnWhatIsServed(kind, outcome);
    EXPECT_TRUE(rig_.Serves(served_)) << repeat;
    EXPECT_TRUE(rig_.IsAtRest()) << repeat;
    const std::string end =
        outcome.ok() ? "right answers" : std::string(absl::StatusCodeToString(outcome.code));
    ++outcomes_[end];
    if (failures() == before) return failed;
    ADD_FAILURE() << repeat << " failed in\n" << rig_.faults().Where();
    Begin();  // of what comes next nothing is due to this one
    return failed;
  }

  // Memory may run out for the reply alone, when the change was made.
  void LearnWhatIsServed(FaultKind kind, const Outcome& outcome) {
    if (kind != FaultKind::kMemory || outcome.reason != "OUT_OF_MEMORY" || rig_.Serves(served_)) {
      return;
    }
    served_ = served_ == "one" ? "two" : "one";
  }

  static int failures() {
    const testing::TestResult& result =
        *testing::UnitTest::GetInstance()->current_test_info()->result();
    int count = 0;
    for (int part = 0; part < result.total_part_count(); ++part) {
      count += result.GetTestPartResult(part).failed() ? 1 : 0;
    }
    return count;
  }

  FaultRig rig_;
  std::string served_ = "one";
  std::map<std::string, int> outcomes_;
};

TEST_P(FaultsTest, EndsTheCallAndNothingElse) {
  const auto replay = ReplayFromEnvironment();
  if (replay && replay->operation != GetParam().name) GTEST_SKIP();
  const auto rotation = conformance::Rotation::FromEnvironment();
  const bool all = std::getenv("FAULTS") != nullptr;
  constexpr std::uint64_t kFirst = 20;
  constexpr int kFailuresMax = 50;
  for (const FaultKind kind : GetParam().kinds) {
    if (replay && replay->kind != NameOf(kind)) continue;
    if (replay) {
      Attempt(kind, replay->number);
      continue;
    }
    outcomes_.clear();
    std::uint64_t number = 1;
    for (bool failed = true; failed && failures() < kFailuresMax; ++number) {
      if (!all && number > kFirst && !rotation.Covers(number)) continue;
      failed = Attempt(kind, number);
    }
    std::string line = fmt::format("{}, {}: {} calls can fail;", GetParam().name, NameOf(kind),
                                   rig_.faults().seen());
    for (const auto& [end, count] : outcomes_) line += fmt::format(" {} {},", count, end);
    line.pop_back();
    std::printf("%s\n", line.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FaultsTest, testing::ValuesIn(Operations()),
                         [](const auto& each) {
                           std::string name = each.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace simile::faults
