// One call after the other of the server's own code fails: an allocation, a read, an open; and each
// time the process lives, the caller gets an error that says so or the right answer, everything is
// answered right afterwards and nothing stays held. Calls are counted from where a test makes the
// server do something, so that a case can be repeated: TEST_FAULT=reload/memory/17.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "doctor/gpu_examination.h"
#include "faults/fault_rig.h"
#include "files/certificates.h"
#include "integration/access_server.h"
#include "integration/films_server.h"
#include "integration/raw_peer.h"
#include "net/http2_frames.h"

namespace simile::faults {
namespace {

using integration::AccessServer;
using integration::CallOptions;
using integration::ChangeAnswer;
using integration::Client;
using integration::Outcome;

// No call may take that long: one that does was never answered.
constexpr std::chrono::seconds kAnsweredWithin{20};
const CallOptions kInTime{.timeout = kAnsweredWithin, .metadata = {}};

FaultRig::Start StartWithAdministration(FaultRig& /*rig*/) {
  return {.arguments = {"--allow-admin"}};
}

// What a test makes the server do.
struct Operation {
  std::string name;
  std::vector<FaultKind> kinds;
  // The folder that is served, before and after.
  std::function<Outcome(FaultRig& rig, std::string& served)> make;
  std::function<void(FaultRig& rig, std::string& served)> prepare = {};   // while nothing fails
  std::function<void(FaultRig& rig, const Outcome& outcome)> check = {};  // likewise, afterwards
  bool connects = false;   // then the connection may end, too
  std::uint64_t step = 7;  // of FaultNumbers
  // Of the server; writes the files that it needs.
  std::function<FaultRig::Start(FaultRig& rig)> start = StartWithAdministration;
};
void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

// Compares an answer that no oracle is asked for with that of the first time, when nothing failed.
template <class Response>
void ExpectSameAnswer(const std::string& name, Response response) {
  static std::map<std::string, std::string> first;
  if constexpr (requires { response.mutable_receipt(); }) response.clear_receipt();
  const std::string text = response.DebugString();
  EXPECT_EQ(text, first.emplace(name, text).first->second) << name;
}

//   folder  of the generation that is served then
Outcome SearchFor(FaultRig& rig, const v1::SearchRequest& request, std::size_t row,
                  const std::string& folder) {
  v1::SearchResponse response;
  const Outcome outcome = rig.client().Search(request, response, kInTime);
  if (outcome.ok()) {
    EXPECT_TRUE(
        Generation::Equal(response.results(0).hits(), FaultRig::Of(folder).Neighbours(row)));
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

void UnloadMore(FaultRig& rig, std::string& /*served*/) {
  const Outcome outcome = rig.client().Unload("more");
  EXPECT_TRUE(outcome.ok() || outcome.code == absl::StatusCode::kNotFound);
}

Outcome LoadMore(FaultRig& rig, std::string& /*served*/) {
  v1::LoadCollectionRequest request;
  request.set_collection("more");
  request.set_folder("two");
  ChangeAnswer answer;
  return rig.client().Load(request, answer, kInTime);
}

// "more" is there whole or not at all.
Outcome FindMore(FaultRig& rig) {
  v1::SearchResponse response;
  Outcome outcome = rig.client().Search(Generation::Search(3, "more"), response);
  if (outcome.ok()) {
    EXPECT_TRUE(Generation::Equal(response.results(0).hits(), FaultRig::Of("two").Neighbours(3)));
  } else {
    EXPECT_EQ(outcome.reason, "COLLECTION_NOT_FOUND");
  }
  return outcome;
}

// Memory may run out for the reply alone, when the change was made.
bool IsUnsure(const Outcome& outcome) { return outcome.reason == "OUT_OF_MEMORY"; }

void CheckLoaded(FaultRig& rig, const Outcome& outcome) {
  const bool is_there = FindMore(rig).ok();
  EXPECT_TRUE(IsUnsure(outcome) || is_there == outcome.ok());
}

Outcome Unload(FaultRig& rig, std::string& /*served*/) { return rig.client().Unload("more"); }

void CheckUnloaded(FaultRig& rig, const Outcome& outcome) {
  const bool is_there = FindMore(rig).ok();
  EXPECT_TRUE(IsUnsure(outcome) || is_there != outcome.ok());
}

// So that there is something to return to.
void ReloadFirst(FaultRig& rig, std::string& served) { EXPECT_TRUE(Reload(rig, served).ok()); }

Outcome RollBack(FaultRig& rig, std::string& served) {
  ChangeAnswer answer;
  v1::RollbackCollectionRequest request;
  request.set_collection("items");
  const Outcome outcome = rig.client().Rollback(request, answer, kInTime);
  if (outcome.ok()) served = served == "one" ? "two" : "one";
  return outcome;
}

Outcome Recommend(FaultRig& rig, std::string& /*served*/) {
  v1::RecommendRequest request;
  request.set_collection("items");
  for (const char* const user : {"user-0", "user-3"}) request.add_user_ids(user);
  request.mutable_options()->set_exclude_seen(true);
  v1::RecommendResponse response;
  const Outcome outcome = rig.client().Recommend(request, response, kInTime);
  if (outcome.ok()) ExpectSameAnswer("recommend", response);
  return outcome;
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
  const Outcome outcome = rig.client().Search(request, response, kInTime);
  if (outcome.ok()) ExpectSameAnswer("diverse and grouped", response);
  return outcome;
}

Outcome FetchAndLookUp(FaultRig& rig, std::string& /*served*/) {
  v1::FetchRequest fetch;
  fetch.set_collection("items");
  fetch.add_ids("item-3");
  v1::FetchResponse fetched;
  const Outcome outcome = rig.client().Fetch(fetch, fetched);
  if (!outcome.ok()) return outcome;
  ExpectSameAnswer("fetch", fetched);
  v1::LookupRequest lookup;
  lookup.set_collection("items");
  lookup.set_text("tale of river");
  v1::LookupResponse found;
  const Outcome looked_up = rig.client().Lookup(lookup, found);
  if (looked_up.ok()) ExpectSameAnswer("lookup", found);
  return looked_up;
}

Outcome Describe(FaultRig& rig, std::string& /*served*/) {
  v1::ListCollectionsResponse listed;
  const Outcome outcome = rig.client().List(listed);
  if (!outcome.ok()) return outcome;
  EXPECT_EQ(listed.collections_size(), 1);
  EXPECT_EQ(listed.collections(0).name(), "items");
  EXPECT_EQ(listed.collections(0).rows(), 60U);
  v1::GetStatsResponse stats;
  return rig.client().GetStats(stats);
}

// Two requests on one stream. What fails ends the stream, a request, or both where one pass
// searches for both.
Outcome SearchOnStream(FaultRig& rig, std::string& served) {
  constexpr std::array<std::size_t, 2> kRows = {3, 5};
  std::vector<v1::SearchStreamRequest> requests(kRows.size());
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    requests[i].set_tag(kRows[i]);
    *requests[i].mutable_search() = Generation::Search(kRows[i]);
  }
  std::vector<v1::SearchStreamResponse> responses;
  Outcome outcome = rig.client().SearchStream(requests, responses, kInTime);
  EXPECT_LE(responses.size(), kRows.size());
  EXPECT_TRUE(!outcome.ok() || responses.size() == kRows.size());
  for (std::size_t i = 0; i < std::min(responses.size(), kRows.size()); ++i) {
    EXPECT_EQ(responses[i].tag(), kRows[i]);
    if (responses[i].has_error()) {
      outcome = integration::ReadOutcome(responses[i]);
    } else {
      EXPECT_TRUE(Generation::Equal(responses[i].search().results(0).hits(),
                                    FaultRig::Of(served).Neighbours(kRows[i])));
    }
  }
  return outcome;
}

Outcome Diagnose(FaultRig& rig, std::string& /*served*/) {
  v1::DiagnoseResponse response;
  const Outcome outcome = rig.client().Diagnose(response);
  if (!outcome.ok()) return outcome;
  static const v1::DiagnoseResponse first = response;
  EXPECT_EQ(response.findings_size(), first.findings_size());
  const bool lacked_memory = rig.faults().kind() == FaultKind::kMemory && rig.faults().HasFailed();
  for (int i = 0; i < std::min(response.findings_size(), first.findings_size()); ++i) {
    v1::Finding found = response.findings(i);
    v1::Finding expected = first.findings(i);
    // Without memory the dynamic linker does not say whether a library is there, only that it
    // cannot be loaded.
    const bool is_not_loaded = lacked_memory && found.probe() == doctor::kManagement &&
                               found.text().find("cannot be loaded") != std::string::npos;
    const bool is_reading = found.probe() == doctor::kCard;  // temperature and memory in use
    for (v1::Finding* const finding : {&found, &expected}) {
      if (is_not_loaded || is_reading) finding->clear_text();
      if (is_not_loaded) finding->clear_symptom();
    }
    EXPECT_EQ(found.DebugString(), expected.DebugString()) << response.findings(i).DebugString();
  }
  return outcome;
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

// The server logs ten cut connections a second: waits until the next one has its line.
void AwaitQuietLog(FaultRig& rig, const std::string& /*served*/ = {}) {
  const auto end = std::chrono::steady_clock::now() + kAnsweredWithin;
  while (rig.server().AwaitMore(std::chrono::milliseconds(110))) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "the log grows without end:\n" << rig.server().output();
      return;
    }
  }
}

// Is a peer that is cut for frames of an unknown type, whose reading takes no memory.
void SendUntilCut(FaultRig& rig) {
  constexpr std::uint8_t kUnknownType = 0xee;
  integration::RawPeer peer(rig.port(), "127.0.0.9");
  bool goes_on = peer.Send(net::kHttp2Preface + net::Settings());
  std::string frames;
  for (int i = 0; i < 50; ++i) frames += net::Frame(kUnknownType, 0, 0, "?");
  for (int i = 0; i < 1'000 && goes_on; ++i) goes_on = peer.Send(frames);
  EXPECT_TRUE(peer.AwaitClosed());
}

Outcome BeCut(FaultRig& rig, std::string& served) {
  SendUntilCut(rig);
  return SearchFor(rig, Generation::Search(3), 3, served);
}

// How many cut connections the log has accounted for: by a line of their own, by the number in a
// later one's line, or as lines that the log itself lost.
double CutsInTheLog(const std::string& log) {
  double cuts = 0;
  const auto add = [&](std::string_view field, double of_the_line) {
    for (std::size_t at = log.find(field); at != std::string::npos; at = log.find(field, at)) {
      at += field.size();
      cuts += of_the_line + std::strtod(log.c_str() + at, nullptr);
    }
  };
  add("cut_without_a_line=", 1);
  add("lines of this log were dropped: standard error did not take them lines=", 0);
  return cuts;
}

// A connection whose line failed is counted in the line of the next one that is cut.
void CheckCutsInTheLog(FaultRig& rig, const Outcome& /*outcome*/) {
  integration::ServerProcess& server = rig.server();
  const auto count_cuts = [&rig] {
    return integration::MetricValue(integration::ScrapeMetrics(rig.metrics_port()),
                                    "simile_rejected_total{reason=\"frame_guard\"}");
  };
  AwaitQuietLog(rig);
  if (CutsInTheLog(server.output()) < count_cuts()) SendUntilCut(rig);
  const double cuts = count_cuts();
  while (CutsInTheLog(server.output()) < cuts && server.AwaitMore(kAnsweredWithin)) {
  }
  EXPECT_EQ(CutsInTheLog(server.output()), cuts) << server.output();
}

// One version of the files by which a server knows its callers, or they know it. A test replaces
// one of two versions by the other, again and again; the clients of the rig are served under both.
struct FileVersion {
  std::map<std::string, std::string> files;  // text by name
  std::string in_log;       // what the server logs when it has taken this version into use
  cli::ClientSecurity own;  // of a client that is served under this version alone
};
using FileVersions = std::array<FileVersion, 2>;

// The numbers of principals differ, so that the log tells the versions apart.
const FileVersions& VersionsOfTokens() {
  static const auto make = [](const std::string& name, const std::string& more) {
    FileVersion version;
    version.files["access.json"] =
        fmt::format(R"({{"principals": [{}, {}{}]}})", AccessServer::Entry("lasting", "read"),
                    AccessServer::Entry(name, "read"), more);
    version.in_log =
        fmt::format("change=\"access file\" result=done principals={}", more.empty() ? 2 : 3);
    version.own.token = AccessServer::MakeToken(name);
    return version;
  };
  static const FileVersions versions = {make("even", ""),
                                        make("odd", ", " + AccessServer::Entry("more", "read"))};
  return versions;
}

cli::ClientSecurity Trusting(const std::string& authorities) {
  cli::ClientSecurity security;
  security.encrypted = true;
  security.ca = authorities;
  return security;
}

const FileVersions& VersionsOfCertificates() {
  static const auto make = [](const std::string& name) {
    const TestAuthority authority(name + " authority");
    const CertificatePair pair = authority.Issue({.common_name = name});
    FileVersion version;
    version.files = {{"server.pem", pair.certificate}, {"server.key", pair.key}};
    version.in_log = fmt::format("change=certificates result=done subject=\"CN={}\"", name);
    version.own = Trusting(authority.certificate());
    return version;
  };
  static const FileVersions versions = {make("even"), make("odd")};
  return versions;
}

// One file after the other, each as a whole.
void WriteFiles(FaultRig& rig, const FileVersion& version) {
  for (const auto& [name, text] : version.files) {
    EXPECT_TRUE(base::ReplaceFile(rig.root() / name, text, {}).ok());
  }
}

bool IsWritten(FaultRig& rig, const FileVersion& version) {
  return std::ranges::all_of(version.files, [&](const auto& file) {
    return base::ReadWholeFile(rig.root() / file.first, 1U << 20).value_or("") == file.second;
  });
}

FaultRig::Start StartWithTokens(FaultRig& rig) {
  WriteFiles(rig, VersionsOfTokens()[0]);
  FaultRig::Start start;
  start.arguments = {"--access-file", (rig.root() / "access.json").string()};
  start.security.token = AccessServer::MakeToken("lasting");
  return start;
}

// As on any address but loopback.
FaultRig::Start StartGuarded(FaultRig& /*rig*/) { return {}; }

FaultRig::Start StartEncrypted(FaultRig& rig) {
  const FileVersions& versions = VersionsOfCertificates();
  WriteFiles(rig, versions[0]);
  FaultRig::Start start;
  start.arguments = {"--tls-certificate", (rig.root() / "server.pem").string(), "--tls-key",
                     (rig.root() / "server.key").string()};
  start.variables = StartGuarded(rig).variables;
  start.security = Trusting(versions[0].own.ca + versions[1].own.ca);
  return start;
}

bool IsServed(FaultRig& rig, const cli::ClientSecurity& security) {
  v1::SearchResponse response;
  return rig.NewClient(security)->Search(Generation::Search(3), response, kInTime).ok();
}

// Writes the other version of the files and waits until the server has taken them into use or a
// call of its own has failed. From then on none fails, because the calls that follow are not meant.
Outcome ChangeFiles(FaultRig& rig, std::string& served, const FileVersions& versions) {
  const FileVersion& next = versions[IsWritten(rig, versions[0]) ? 1 : 0];
  integration::ServerProcess& server = rig.server();
  while (server.AwaitMore(std::chrono::milliseconds(0))) {
  }
  const std::size_t before = server.output().size();
  WriteFiles(rig, next);
  const auto end = std::chrono::steady_clock::now() + kAnsweredWithin;
  while (!rig.faults().HasFailed() &&
         server.output().find(next.in_log, before) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "not taken into use: " << next.in_log << "\n" << server.output();
      break;
    }
    server.AwaitMore(std::chrono::milliseconds(10));
  }
  rig.faults().Disarm();
  return Connect(rig, served);
}

// The server uses the former version as a whole until it uses the next one as a whole.
void CheckFiles(FaultRig& rig, const FileVersions& versions) {
  const bool is_second = IsWritten(rig, versions[1]);
  const cli::ClientSecurity& former = versions[is_second ? 0 : 1].own;
  const cli::ClientSecurity& next = versions[is_second ? 1 : 0].own;
  const bool former_before = IsServed(rig, former);
  const bool next_between = IsServed(rig, next);
  const bool former_after = IsServed(rig, former);
  EXPECT_TRUE(former_before || next_between);
  EXPECT_FALSE(next_between && former_after);
  const auto end = std::chrono::steady_clock::now() + kAnsweredWithin;
  while (!IsServed(rig, next)) {
    if (!IsServed(rig, rig.security()) || std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "refused who is served under both versions, or not tried again";
      return;
    }
    rig.server().AwaitMore(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(IsServed(rig, rig.security()));
  EXPECT_FALSE(IsServed(rig, former));
}

// The server looks at its files once a second.
Operation ChangeOf(const std::string& name, const FileVersions& versions,
                   const std::function<FaultRig::Start(FaultRig& rig)>& start) {
  using Kind = FaultKind;
  return {.name = name,
          .kinds = {Kind::kMemory, Kind::kRead, Kind::kShortRead, Kind::kOpen},
          .make = [&versions](FaultRig& rig,
                              std::string& served) { return ChangeFiles(rig, served, versions); },
          .check =
              [&versions](FaultRig& rig, const Outcome& outcome) {
                EXPECT_TRUE(outcome.ok());
                CheckFiles(rig, versions);
              },
          .step = 61,
          .start = start};
}

std::vector<Operation> Operations() {
  using Kind = FaultKind;
  const std::vector<Kind> of_calls = {Kind::kMemory};
  const std::vector<Kind> of_loads = {Kind::kMemory, Kind::kRead, Kind::kShortRead, Kind::kOpen};
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
      {"search-stream", of_calls, SearchOnStream},
      {"diagnose", {Kind::kMemory, Kind::kRead, Kind::kShortRead, Kind::kThread}, Diagnose},
      {"connect", of_calls, Connect, {}, {}, true},
      {"cut", of_calls, BeCut, AwaitQuietLog, CheckCutsInTheLog, false, 7, StartGuarded},
      {"connect-tls", of_calls, Connect, {}, {}, true, 7, StartEncrypted},
      ChangeOf("tokens", VersionsOfTokens(), StartWithTokens),
      ChangeOf("certificates", VersionsOfCertificates(), StartEncrypted),
      {"load", of_loads, LoadMore, UnloadMore, CheckLoaded, false, 61},
      {"unload", of_calls, Unload,
       [](FaultRig& rig, std::string& served) {
         UnloadMore(rig, served);
         EXPECT_TRUE(LoadMore(rig, served).ok());
       },
       CheckUnloaded},
      {"reload", of_loads, Reload, {}, {}, false, 61},
      {"rollback", of_loads, RollBack, ReloadFirst, {}, false, 61},
  };
}

// How calls may end in which one of the server's own failed.
bool IsRight(const Operation& operation, FaultKind kind, const Outcome& outcome) {
  using Code = absl::StatusCode;
  if (operation.connects && outcome.code == Code::kUnavailable) return true;
  switch (kind) {
    case FaultKind::kMemory:
      return outcome.code == Code::kOk || outcome.code == Code::kResourceExhausted;
    case FaultKind::kShortRead:
      return outcome.code == Code::kOk;
    case FaultKind::kOpen:
      return outcome.code == Code::kOk || outcome.reason == "OUT_OF_MEMORY";
    default:
      return outcome.code != Code::kDeadlineExceeded && outcome.code != Code::kUnavailable;
  }
}

class FaultsTest : public testing::TestWithParam<Operation> {
 protected:
  void SetUp() override { Begin(); }

  void Begin() {
    served_ = "one";
    ASSERT_TRUE(rig_.Begin(GetParam().start(rig_)));
    // Once without a fault: then each thread and connection is there, and what is kept.
    Prepare();
    const Outcome outcome = GetParam().make(rig_, served_);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    if (GetParam().check) GetParam().check(rig_, outcome);
    Prepare();
    ASSERT_TRUE(rig_.Serves(served_));
    rig_.Remember();
  }
  void Prepare() {
    if (GetParam().prepare) GetParam().prepare(rig_, served_);
  }

  void LearnWhatIsServed(FaultKind kind, const Outcome& outcome) {
    if (kind != FaultKind::kMemory || !IsUnsure(outcome) || rig_.Serves(served_)) return;
    served_ = served_ == "one" ? "two" : "one";
  }

  // Returns whether a call has failed.
  bool Attempt(FaultKind kind, const FaultCase& the_case, FaultNumbers& numbers) {
    const int failures = FailureCount();
    Prepare();
    rig_.faults().Arm(kind, the_case.number);
    const Outcome outcome = GetParam().make(rig_, served_);
    const bool failed = rig_.faults().Disarm();
    EXPECT_TRUE(failed ? IsRight(GetParam(), kind, outcome) : outcome.ok())
        << testing::PrintToString(outcome);
    EXPECT_TRUE(outcome.ok() || !outcome.message.empty());
    LearnWhatIsServed(kind, outcome);
    EXPECT_TRUE(rig_.Serves(served_));
    if (GetParam().check) GetParam().check(rig_, outcome);
    EXPECT_TRUE(rig_.IsAtRest());
    numbers.Count(outcome.ok() ? "right answers" : absl::StatusCodeToString(outcome.code));
    if (FailureCount() == failures) return failed;
    ADD_FAILURE() << the_case.text() << ", where this failed:\n" << rig_.faults().Where();
    Begin();  // of what comes next nothing is due to this one
    return failed && !HasFatalFailure();
  }

  FaultRig rig_;
  std::string served_;
};

TEST_P(FaultsTest, EndsTheCallAndNothingElse) {
  FaultNumbers numbers(GetParam().name, GetParam().step);
  for (const FaultKind kind : GetParam().kinds) {
    numbers.ForEach(kind,
                    [&](const FaultCase& the_case) { return Attempt(kind, the_case, numbers); });
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FaultsTest, testing::ValuesIn(Operations()), [](const auto& each) {
  std::string name = each.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace simile::faults
