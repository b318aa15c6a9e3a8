// Page tokens between servers that loaded the same files, and between servers that did not.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "files/scratch_folder.h"
#include "integration/films_server.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::MessageDifferencer;

// A server of the films in a folder, under the data root `root`.
std::unique_ptr<FilmsServer> Serve(const fs::path& root, const std::string& folder) {
  return std::make_unique<FilmsServer>([&](app::Config& config) {
    config.collections = {{"films", root / folder}};
    config.changes_allowed = true;
    config.data_root = root;
  });
}

// A paged request, of either kind.
struct Paged {
  std::string name;
  v1::SearchRequest search;                // the options of both kinds
  std::vector<std::string> user_ids = {};  // not empty: Recommend, for these users

  v1::SearchOptions& options() { return *search.mutable_options(); }
};

// The parts of an answer that both kinds of request have.
struct PageAnswer {
  Outcome outcome;
  std::vector<v1::SearchResult> results;
  v1::Receipt receipt;
  std::string next_page_token;
};

template <class Response>
PageAnswer MakeAnswer(Outcome outcome, Response response) {
  return {std::move(outcome),
          {response.results().begin(), response.results().end()},
          std::move(*response.mutable_receipt()),
          response.next_page_token()};
}

PageAnswer Ask(const Client& client, const Paged& request) {
  if (request.user_ids.empty()) {
    v1::SearchResponse response;
    Outcome outcome = client.Search(request.search, response);
    return MakeAnswer(std::move(outcome), std::move(response));
  }
  v1::RecommendRequest recommend;
  recommend.set_collection(request.search.collection());
  recommend.mutable_user_ids()->Add(request.user_ids.begin(), request.user_ids.end());
  *recommend.mutable_options() = request.search.options();
  v1::RecommendResponse response;
  Outcome outcome = client.Recommend(recommend, response);
  return MakeAnswer(std::move(outcome), std::move(response));
}

// The request for as many rows at once as `pages` pages have together.
Paged Deep(Paged request, std::uint32_t pages) {
  request.options().set_k(request.options().k() * pages);
  for (v1::Query& query : *request.search.mutable_queries()) {
    if (query.has_k()) query.set_k(query.k() * pages);
  }
  return request;
}

// Adds the rows of the next page to the rows of the pages before.
void Append(std::vector<v1::SearchResult> page, std::vector<v1::SearchResult>& all) {
  if (all.empty()) return all.swap(page);
  ASSERT_EQ(page.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    v1::SearchResult rest = all[i];
    rest.mutable_hits()->MergeFrom(page[i].hits());
    rest.mutable_groups()->MergeFrom(page[i].groups());
    *page[i].mutable_hits() = rest.hits();
    *page[i].mutable_groups() = rest.groups();
    all[i] = std::move(page[i]);
  }
}

void ExpectSame(const std::vector<v1::SearchResult>& results,
                const std::vector<v1::SearchResult>& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    MessageDifferencer differencer;
    std::string differences;
    differencer.ReportDifferencesToString(&differences);
    EXPECT_TRUE(differencer.Compare(results[i], expected[i])) << i << ":\n" << differences;
  }
}

constexpr std::uint32_t kPages = 5;

// The pages of a request, each from the next of the clients in turn.
std::vector<v1::SearchResult> AllPages(const std::vector<const Client*>& clients, Paged request) {
  std::vector<v1::SearchResult> all;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    const PageAnswer answer = Ask(*clients[page % clients.size()], request);
    EXPECT_TRUE(answer.outcome.ok()) << page << ": " << testing::PrintToString(answer.outcome);
    if (!answer.outcome.ok()) break;
    Append(answer.results, all);
    if (answer.next_page_token.empty()) break;
    request.options().set_page_token(answer.next_page_token);
  }
  return all;
}

Paged Request(const std::string& name, std::uint32_t k) {
  Paged request{name, {}};
  request.search.set_collection("films");
  request.options().set_k(k);
  request.options().set_paged(true);
  return request;
}

Paged ById(const std::string& name, std::uint32_t k = 7) {
  Paged request = Request(name, k);
  request.search.add_queries()->set_id("heat-1995");
  return request;
}

Paged ByUsers(const std::string& name, std::uint32_t k = 7) {
  Paged request = Request(name, k);
  request.user_ids = {"user_00042", "user_00007"};
  return request;
}

std::vector<float> AnyVector() {
  std::vector<float> vector(kFilmsDim);
  for (std::size_t i = 0; i < vector.size(); ++i) {
    vector[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
  }
  return vector;
}

std::vector<Paged> Targets() {
  const std::vector<float> vector = AnyVector();
  std::vector<Paged> requests = {ById("an item")};
  Paged& floats = requests.emplace_back(Request("a vector", 7));
  floats.search.add_queries()->mutable_vector()->mutable_values()->Add(vector.begin(),
                                                                       vector.end());
  Paged& packed = requests.emplace_back(Request("a packed vector", 7));
  v1::PackedVector& bytes = *packed.search.add_queries()->mutable_packed_vector();
  bytes.set_format(v1::PackedVector::FORMAT_F32_LE);
  bytes.set_data(reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float));
  for (const auto strategy :
       {v1::Examples::STRATEGY_AVERAGE_VECTOR, v1::Examples::STRATEGY_BEST_SCORE,
        v1::Examples::STRATEGY_SUM_SCORES}) {
    Paged& examples = requests.emplace_back(Request(v1::Examples::Strategy_Name(strategy), 7));
    v1::Examples& given = *examples.search.add_queries()->mutable_examples();
    given.set_strategy(strategy);
    given.add_positive()->set_id("heat-1995");
    given.mutable_positive(0)->set_weight(2);
    given.add_positive()->set_id("toy-story-1995");
    given.add_negative()->set_id("toy-story-2-1999");
  }
  Paged& blend = requests.emplace_back(Request("a blend", 7));
  blend.search.add_queries()->mutable_blend()->set_id("heat-1995");
  blend.search.mutable_queries(0)->mutable_blend()->set_user_id("user_00042");
  blend.search.mutable_queries(0)->set_exclude_seen(true);
  Paged& several = requests.emplace_back(Request("several queries", 4));
  several.search.add_queries()->set_id("heat-1995");
  several.search.add_queries()->set_user_id("user_00042");
  several.search.mutable_queries(1)->set_k(2);
  several.search.add_queries()->set_id("toy-story-1995");
  several.search.mutable_queries(2)->set_offset(11);
  several.search.mutable_queries(2)->set_filter("year >= 1990");
  requests.push_back(ByUsers("users"));
  return requests;
}

// All options that choose rows, for items and for users.
std::vector<Paged> Refinements() {
  std::vector<Paged> requests;
  for (Paged (*const make)(const std::string&, std::uint32_t) : {ById, ByUsers}) {
    const auto add = [&](const char* what, std::uint32_t k) -> v1::SearchOptions& {
      const Paged& request = requests.emplace_back(make("", k));
      requests.back().name =
          (request.user_ids.empty() ? "an item, " : "users, ") + std::string(what);
      return requests.back().options();
    };
    add("filter", 7).set_filter("genres:\"Crime\" AND year >= 1990");
    add("few rows", 9).set_filter("year >= 1931 AND year <= 1932");
    add("required filter", 7).set_required_filter("year >= 1980");
    add("offset", 7).set_offset(13);
    add("score threshold", 7).set_score_threshold(0.2F);
    add("excluded items", 7).add_exclude_ids("casino-1995");
    add("vectors and rows", 3).set_with_vectors(true);
    requests.back().options().set_with_rows(true);
    v1::Diversity& diversity = *add("diversity", 7).mutable_diversity();
    diversity.set_lambda(0.7F);
    diversity.set_candidates(150);
    v1::GroupBy& groups = *add("groups", 3).mutable_group_by();
    groups.set_field("genres");
    groups.set_group_size(4);
    requests.back().options().set_filter("year >= 1970");
  }
  requests.push_back(ByUsers("users, what they have not seen"));
  requests.back().options().set_exclude_seen(true);
  for (const auto order : {v1::ColdStart::ORDER_NEWEST, v1::ColdStart::ORDER_MOST_POPULAR}) {
    requests.push_back(ByUsers("a new user, " + v1::ColdStart::Order_Name(order)));
    requests.back().user_ids.emplace_back("a-new-user");
    requests.back().options().mutable_cold_start()->set_order(order);
  }
  return requests;
}

// Two servers that loaded copies of the films, written at different times into different folders.
class PageTokensTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = std::make_unique<ScratchFolder>();
    CopyFilms(root_->path() / "one");
    fs::create_directories(root_->path() / "elsewhere");
    CopyFilms(root_->path() / "elsewhere/two");
    for (const auto& file : fs::directory_iterator(root_->path() / "elsewhere/two")) {
      fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(30));
    }
    one_ = Serve(root_->path(), "one");
    two_ = Serve(root_->path(), "elsewhere/two");
  }
  static void TearDownTestSuite() {
    one_.reset();
    two_.reset();
    root_.reset();
  }

  // The second page as a server that has the content returns it, and the token that asks for it.
  std::pair<std::vector<v1::SearchResult>, std::string> SecondPage(Paged request) const {
    const std::string token = Ask(client_one_, request).next_page_token;
    EXPECT_NE(token, "");
    request.options().set_page_token(token);
    return {Ask(client_one_, request).results, token};
  }

  inline static std::unique_ptr<ScratchFolder> root_;
  inline static std::unique_ptr<FilmsServer> one_;
  inline static std::unique_ptr<FilmsServer> two_;
  const Client client_one_ = one_->NewClient();
  const Client client_two_ = two_->NewClient();
};

TEST_F(PageTokensTest, ContinueOnAnyServerForEveryTarget) {
  for (const Paged& request : Targets()) {
    SCOPED_TRACE(request.name);
    const PageAnswer deep = Ask(client_one_, Deep(request, kPages));
    ASSERT_TRUE(deep.outcome.ok()) << testing::PrintToString(deep.outcome);
    const auto rows = static_cast<int>(kPages * request.search.options().k());
    ASSERT_EQ(deep.results[0].hits_size(), rows) << "every page is full";
    ExpectSame(AllPages({&client_one_, &client_two_}, request), deep.results);
    ExpectSame(AllPages({&client_two_, &client_one_, &client_one_}, request), deep.results);
  }
}

TEST_F(PageTokensTest, ContinueOnAnyServerWithEveryOption) {
  for (const Paged& request : Refinements()) {
    SCOPED_TRACE(request.name);
    const PageAnswer deep = Ask(client_two_, Deep(request, kPages));
    ASSERT_TRUE(deep.outcome.ok()) << testing::PrintToString(deep.outcome);
    ASSERT_GT(deep.results[0].hits_size() + deep.results[0].groups_size(), 0);
    ExpectSame(AllPages({&client_one_, &client_two_}, request), deep.results);
  }
}

TEST_F(PageTokensTest, AreTheSameOnEveryServer) {
  for (const Paged& request : {ById("an item"), ByUsers("users")}) {
    const PageAnswer one = Ask(client_one_, request);
    const PageAnswer two = Ask(client_two_, request);
    EXPECT_NE(one.next_page_token, "");
    EXPECT_EQ(one.next_page_token, two.next_page_token) << request.name;
    EXPECT_EQ(one.receipt.snapshot_id(), two.receipt.snapshot_id());
    EXPECT_THAT(one.receipt.snapshot_id(), testing::MatchesRegex("[0-9a-f]{32}"));
  }
}

TEST_F(PageTokensTest, ContinueAfterARestart) {
  const Paged request = ById("an item");
  const PageAnswer deep = Ask(client_one_, Deep(request, kPages));
  std::vector<v1::SearchResult> all;
  Paged next = request;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    // A new server for each page.
    const auto server = Serve(root_->path(), page % 2 == 0 ? "elsewhere/two" : "one");
    const PageAnswer answer = Ask(server->NewClient(), next);
    ASSERT_TRUE(answer.outcome.ok()) << testing::PrintToString(answer.outcome);
    Append(answer.results, all);
    next.options().set_page_token(answer.next_page_token);
  }
  ExpectSame(all, deep.results);
}

TEST_F(PageTokensTest, ContinueInAnotherProcess) {
  ServerProcess program({"--collection", "films=" + (root_->path() / "elsewhere/two").string(),
                         "--port", "0", "--metrics-port", "0", "--log-level", "error"});
  const std::string address = program.AwaitListening();
  ASSERT_FALSE(address.empty()) << program.output();
  const Client client_program(address);
  for (const Paged& request : {ById("an item"), ByUsers("users")}) {
    SCOPED_TRACE(request.name);
    const PageAnswer deep = Ask(client_one_, Deep(request, kPages));
    ExpectSame(AllPages({&client_one_, &client_program}, request), deep.results);
  }
}

TEST_F(PageTokensTest, AcceptOtherReceiptsAndLimitsOnEachPage) {
  Paged request = ById("an item");
  const auto [second, token] = SecondPage(request);
  request.options().set_page_token(token);
  request.options().set_paged(false);
  request.options().set_receipt_detail(v1::RECEIPT_DETAIL_BRIEF);
  request.options().set_reply_bytes_max(200'000);
  request.options().set_expected_snapshot_id(Ask(client_one_, ById("")).receipt.snapshot_id());
  const PageAnswer answer = Ask(client_two_, request);
  EXPECT_TRUE(answer.outcome.ok()) << testing::PrintToString(answer.outcome);
  ExpectSame(answer.results, second);
}

// A byte of a file that can be another one so that the file still loads.
struct ChangedByte {
  const char* file;
  const char* before;  // what the byte follows; empty: the byte is in the last number
  char byte;           // for a file of text
};
constexpr ChangedByte kChangedBytes[] = {{"content_vectors.npy", "", 0},
                                         {"metadata.jsonl", "\"title\":\"", 'x'},
                                         {"user_ids.json", "]}", ' '},
                                         {"preference_vectors.npy", "", 0},
                                         {"interactions.jsonl", "\"weight\":", '9'}};

// The films with that byte changed.
void CopyFilmsBut(const ChangedByte& change, const fs::path& folder) {
  CopyFilms(folder);
  std::ifstream in(folder / change.file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string before = change.before;
  const std::size_t place =
      before.empty() ? bytes.size() - sizeof(float) : bytes.find(before) + before.size();
  ASSERT_LT(place, bytes.size());
  const char was = bytes[place];
  bytes[place] = before.empty() ? static_cast<char>(was ^ 1) : change.byte;
  ASSERT_NE(bytes[place], was);
  std::ofstream(folder / change.file, std::ios::binary) << bytes;
}

TEST_F(PageTokensTest, AreAbortedWhereAnyByteOfTheFilesDiffers) {
  const Paged request = ById("an item");
  Paged next = request;
  next.options().set_page_token(SecondPage(request).second);
  CopyFilms(root_->path() / "other", 2);
  const auto other = Serve(root_->path(), "other");
  const Client client = other->NewClient();
  std::set<std::string> ids = {Ask(client_one_, request).receipt.snapshot_id(),
                               Ask(client, request).receipt.snapshot_id()};
  EXPECT_EQ(ids.size(), 2U);
  for (const ChangedByte& change : kChangedBytes) {
    SCOPED_TRACE(change.file);
    const std::string folder = std::string("changed-") + change.file;
    CopyFilmsBut(change, root_->path() / folder);
    v1::ReloadCollectionRequest reload;
    reload.set_collection("films");
    reload.set_folder(folder);
    ChangeAnswer changed;
    const Outcome reloaded = client.Reload(reload, changed);
    ASSERT_TRUE(reloaded.ok()) << testing::PrintToString(reloaded);
    EXPECT_TRUE(ids.insert(changed.collection.snapshot_id()).second);
    const PageAnswer answer = Ask(client, next);
    EXPECT_EQ(answer.outcome.code, absl::StatusCode::kAborted);
    EXPECT_EQ(answer.outcome.reason, "PAGE_SNAPSHOT_GONE");
    EXPECT_EQ(answer.outcome.message,
              "films no longer has the content of this page token; start again with the first "
              "page");
  }
}

TEST_F(PageTokensTest, ContinueOnTheFormerContentAfterAReload) {
  const auto reloaded = Serve(root_->path(), "one");
  const Client client = reloaded->NewClient();
  const Paged request = ById("an item");
  const PageAnswer deep = Ask(client_one_, Deep(request, kPages));
  Paged next = request;
  std::vector<v1::SearchResult> all;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    const PageAnswer answer = Ask(page % 2 == 0 ? client : client_two_, next);
    ASSERT_TRUE(answer.outcome.ok()) << testing::PrintToString(answer.outcome);
    Append(answer.results, all);
    next.options().set_page_token(answer.next_page_token);
    if (page != 0) continue;
    CopyFilms(root_->path() / "later", 3);
    v1::ReloadCollectionRequest reload;
    reload.set_collection("films");
    reload.set_folder("later");
    ChangeAnswer changed;
    ASSERT_TRUE(client.Reload(reload, changed).ok());
    EXPECT_NE(changed.collection.snapshot_id(), answer.receipt.snapshot_id());
  }
  ExpectSame(all, deep.results);
}

TEST_F(PageTokensTest, AreRefusedForOtherRequestsAndOtherText) {
  const Paged request = ById("an item");
  const std::string token = SecondPage(request).second;
  std::vector<std::pair<std::string, Paged>> refused = {
      {token, ById("another k", 8)}, {token, ByUsers("users")}, {"", request}};
  refused.back().first = token.substr(1);
  for (const char* text : {"x", "next", "AQEBAQEBAQEBAQEB", "%%%", "page=2"}) {
    refused.emplace_back(text, request);
  }
  std::string damaged = token;
  damaged[20] = damaged[20] == 'A' ? 'B' : 'A';
  refused.emplace_back(damaged, request);
  refused.emplace_back(token, request);
  refused.back().second.options().set_filter("year > 1990");
  for (auto& [text, asked] : refused) {
    asked.options().set_page_token(text);
    const PageAnswer answer = Ask(client_two_, asked);
    EXPECT_EQ(answer.outcome.code, absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(answer.outcome.reason, "INVALID_PAGE_TOKEN") << text;
    EXPECT_EQ(answer.outcome.field, "options.page_token") << text;
    EXPECT_THAT(answer.outcome.message, testing::StartsWith("options.page_token: ")) << text;
  }
}

}  // namespace
}  // namespace simile::integration
