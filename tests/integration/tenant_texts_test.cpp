// Tenants whose names are near each other: 200 pairs of texts that differ in their bytes alone.
// Every caller is bound to one text, by the access file or by the required filter of its requests,
// and makes calls of every kind. No answer shows a row of another text, and each answer shows rows
// of the caller's own text. All that shows a row names its tenant, so answers are searched as
// bytes.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "certificate/seeded_random.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"
#include "filter/lexer.h"
#include "integration/access_server.h"
#include "integration/near_texts.h"
#include "integration/tenant_calls.h"

namespace simile::integration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::uint64_t kTextsSeed = 7'200'000;
constexpr std::size_t kPairs = 200;
constexpr std::size_t kTextDim = 8;
constexpr std::size_t kRowsEach = 3;
const std::string kOwnRows = "012";
constexpr char kMark[] = "mark-";
constexpr std::size_t kMarkDigits = 4;

// What the ids and markers of a text's rows begin with: "mark-0017/".
std::string FormatMark(std::size_t text) {
  return fmt::format("{}{:0{}}/", kMark, text, kMarkDigits);
}
std::string RowId(std::size_t text, std::size_t row) {
  return fmt::format("{}{}", FormatMark(text), row);
}

// What bytes show of each text: the characters behind its marks, the numbers of rows among them.
std::map<std::size_t, std::set<char>> MarksIn(const std::string& bytes) {
  std::map<std::size_t, std::set<char>> marks;
  const std::size_t length = FormatMark(0).size();
  for (std::size_t at = bytes.find(kMark); at != std::string::npos;
       at = bytes.find(kMark, at + length)) {
    if (at + length >= bytes.size()) break;
    const std::string number = bytes.substr(at + sizeof(kMark) - 1, kMarkDigits);
    marks[std::stoul(number)].insert(bytes[at + length]);
  }
  return marks;
}

// The collection "declared": kRowsEach rows of each text, which collection.json says are keywords.
// "guessed" has the same rows without the declaration. In "merged" both texts of each pair are the
// first text, as a server would have them that takes both for one.
class TextTenants {
 public:
  TextTenants() : pairs_(DrawNearTexts(kPairs, kTextsSeed)) {
    for (const NearTexts& pair : pairs_) {
      const std::size_t a = FindOrAddText(pair.a);
      numbers_.emplace_back(a, FindOrAddText(pair.b));
    }
    constexpr char kType[] = R"("field_types": {"tenant": "keyword"}, )";
    Write("declared", texts_, kType);
    Write("guessed", texts_, "");
    std::vector<std::string> merged = texts_;
    for (const auto& [a, b] : numbers_) merged[b] = merged[a];
    Write("merged", merged, kType);
  }

  const std::vector<std::string>& texts() const { return texts_; }  // distinct
  const std::vector<NearTexts>& pairs() const { return pairs_; }
  // The texts of a pair, as their numbers.
  std::size_t A(std::size_t pair) const { return numbers_[pair].first; }
  std::size_t B(std::size_t pair) const { return numbers_[pair].second; }
  std::filesystem::path FolderPath(const std::string& name) const { return folder_.path() / name; }

 private:
  std::size_t FindOrAddText(const std::string& text) {
    const auto [place, added] = number_of_.try_emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return place->second;
  }

  //   settings  members of collection.json, each with a comma behind it
  void Write(const std::string& name, const std::vector<std::string>& tenants,
             const std::string& settings) const {
    tests::SeededRandom random(kTextsSeed);
    std::string metadata;
    std::vector<float> vectors;
    for (std::size_t row = 0; row < kRowsEach; ++row) {
      for (std::size_t text = 0; text < texts_.size(); ++text) {
        metadata += nlohmann::json({{"id", RowId(text, row)},
                                    {"tenant", tenants[text]},
                                    {"marker", FormatMark(text) + "m"},
                                    {"title", "Shop"},
                                    {"year", 2000 + row}})
                        .dump() +
                    '\n';
        for (std::size_t i = 0; i < kTextDim; ++i) vectors.push_back(1 + 0.1F * random.Signed());
      }
    }
    folder_.Write(name + "/metadata.jsonl", metadata);
    folder_.Write(name + "/vectors.npy", NpyFile(vectors, kTextDim));
    folder_.Write(name + "/user_ids.json", R"(["user-1"])");
    folder_.Write(name + "/preference_vectors.npy",
                  NpyFile(std::vector<float>(kTextDim, 1), kTextDim));
    folder_.Write(name + "/collection.json",
                  fmt::format(R"({{{}"lookup_fields": ["title", "tenant"]}})", settings));
  }

  const ScratchFolder folder_;
  const std::vector<NearTexts> pairs_;
  std::vector<std::string> texts_;
  std::map<std::string, std::size_t> number_of_;
  std::vector<std::pair<std::size_t, std::size_t>> numbers_;  // [pair]
};

std::string Only(const std::string& op, const std::string& text) {
  if (op == "IN") return fmt::format("tenant IN [{}]", filter::WriteQuoted(text));
  return fmt::format("tenant {} {}", op, filter::WriteQuoted(text));
}

class TenantTextsTest : public testing::Test {
 protected:
  // The access file binds the caller `text-N` to the text N, and "anyone" to nothing.
  static void SetUpTestSuite() {
    tenants_ = std::make_unique<TextTenants>();
    std::vector<std::string> principals = {AccessServer::Entry("anyone", "read")};
    for (std::size_t text = 0; text < tenants_->texts().size(); ++text) {
      const std::string filter = Only(text % 2 == 0 ? "=" : "IN", tenants_->texts()[text]);
      principals.push_back(AccessServer::Entry(
          FormatName(text), "read",
          fmt::format(R"("required_filter": {})", nlohmann::json(filter).dump())));
    }
    server_ = std::make_unique<AccessServer>(
        principals, AccessServer::Encryption::kNone, [](app::Config& config) {
          config.collections.clear();
          for (const char* const name : {"declared", "guessed", "merged"}) {
            config.collections.push_back({name, tenants_->FolderPath(name)});
          }
          // Each caller has a connection of its own.
          config.limits.connections_per_peer_max = config.limits.connections_max;
        });
  }
  static void TearDownTestSuite() {
    server_.reset();
    tenants_.reset();
  }

  static std::string FormatName(std::size_t text) { return fmt::format("text-{}", text); }
  const std::string& Text(std::size_t text) const { return tenants_->texts()[text]; }

  // The calls that follow are those of a caller who is bound to the text.
  void ActAs(std::size_t text, bool by_access_file) {
    own_ = text;
    required_ = by_access_file ? "" : Only("=", Text(text));
    client_ = std::make_unique<Client>(
        server_->NewClient(by_access_file ? FormatName(text) : std::string("anyone")));
  }

  void Expect(bool right, const std::string& wrong) {
    if (!right) ++findings_[wrong + " as" + Described(own_)];
  }

  // Expects these rows of the caller's own text in an answer, and no row of another text.
  void Look(const std::string& call, const google::protobuf::Message& answer,
            const std::string& own_rows) {
    auto marks = MarksIn(answer.SerializeAsString());
    for (const char row : own_rows) {
      Expect(marks[own_].contains(row), fmt::format("{} misses row {}", call, row));
    }
    marks.erase(own_);
    for (const auto& [text, rows] : marks) Expect(false, call + " shows" + Described(text));
  }

  template <class Response, class Request>
  Outcome AskAnything(Request request, Response& response) {
    request.set_collection(collection_);
    if (!required_.empty()) Require(required_, request);
    return MakeCall(*client_, request, response);
  }

  template <class Response, class Request>
  Response Ask(const std::string& call, const Request& request, const std::string& own_rows) {
    Response response;
    const Outcome outcome = AskAnything(request, response);
    Expect(outcome.ok(), fmt::format("{} fails: {}", call, outcome.message));
    Look(call, response, own_rows);
    if constexpr (requires { response.add_results(); }) {
      if (response.results().empty()) response.add_results();  // for what reads the first
    }
    return response;
  }

  // Asks for an item of another text, which must be answered like an item that nobody has.
  template <class Response, class Request>
  void AskForHidden(const std::string& call, const Request& request) {
    Response response;
    const Outcome outcome = AskAnything(request, response);
    Expect(outcome.code == absl::StatusCode::kNotFound, call + " finds another's item");
    // The message may name the item that was asked for, and no more.
    Expect(MarksIn(outcome.message).size() <= 1, call + " suggests another's item");
    Look(call, response, "");
  }

  static v1::SearchRequest SearchAll() {
    v1::SearchRequest request;
    const std::vector<float> vector(kTextDim, 1);
    request.add_queries()->mutable_vector()->mutable_values()->Add(vector.begin(), vector.end());
    request.mutable_options()->set_k(4 * kRowsEach);
    return request;
  }

  v1::SearchRequest GroupAll(std::size_t groups) const {
    v1::SearchRequest request = SearchAll();
    request.mutable_options()->set_k(static_cast<std::uint32_t>(groups));
    request.mutable_options()->mutable_group_by()->set_field("tenant");
    request.mutable_options()->mutable_group_by()->set_group_size(2 * kRowsEach);
    return request;
  }

  void AskSearches(std::size_t other) {
    const auto all = Ask<v1::SearchResponse>("Search", SearchAll(), kOwnRows);
    Expect(all.results(0).rows_passing() == kRowsEach, "Search counts more rows");
    v1::SearchRequest by_item = SearchAll();
    by_item.mutable_queries(0)->set_id(RowId(own_, 0));
    Ask<v1::SearchResponse>("Search by id", by_item, "12");
    by_item.mutable_queries(0)->set_id(RowId(other, 0));
    AskForHidden<v1::SearchResponse>("Search by id", by_item);
    const auto groups = Ask<v1::SearchResponse>("group_by", GroupAll(4), kOwnRows);
    Expect(
        groups.results(0).groups_size() == 1 && groups.results(0).groups(0).keyword() == Text(own_),
        "group_by makes other groups");
    for (const char* const op : {"=", "IN", "!="}) {
      v1::SearchRequest filtered = SearchAll();
      filtered.mutable_options()->set_filter(Only(op, Text(other)));
      const std::string own_rows = std::string_view(op) == "!=" ? kOwnRows : "";
      const auto answer = Ask<v1::SearchResponse>(fmt::format("filter {}", op), filtered, own_rows);
      Expect(answer.results(0).rows_passing() == own_rows.size(),
             fmt::format("filter {} counts other rows", op));
    }
  }

  void AskPages() {
    v1::SearchRequest request = SearchAll();
    request.mutable_options()->set_k(1);
    request.mutable_options()->set_paged(true);
    std::size_t rows = 0;
    do {
      const auto page = Ask<v1::SearchResponse>("pages", request, "");
      rows += static_cast<std::size_t>(page.results(0).hits_size());
      request.mutable_options()->set_page_token(page.next_page_token());
    } while (!request.options().page_token().empty());
    Expect(rows == kRowsEach, "pages have other rows");
  }

  static v1::RecommendRequest RecommendAll(const std::string& user) {
    v1::RecommendRequest request;
    request.add_user_ids(user);
    request.mutable_options()->set_k(4 * kRowsEach);
    request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
    return request;
  }

  void AskLookups(std::size_t other) {
    v1::FetchRequest fetch;
    for (std::size_t row = 0; row < kRowsEach; ++row) fetch.add_ids(RowId(own_, row));
    Ask<v1::FetchResponse>("Fetch", fetch, kOwnRows);
    fetch.add_ids(RowId(other, 1));
    AskForHidden<v1::FetchResponse>("Fetch", fetch);
    v1::LookupRequest lookup;
    lookup.set_text("shop");
    const auto titles = Ask<v1::LookupResponse>("Lookup", lookup, kOwnRows);
    Expect(titles.match_count() == kRowsEach, "Lookup counts more rows");
    if (Text(other).empty()) return;
    lookup.set_field("tenant");
    lookup.set_text(Text(other));
    const auto matches = Ask<v1::LookupResponse>("Lookup by tenant", lookup, "");
    Expect(matches.match_count() <= kRowsEach, "Lookup by tenant counts more rows");
  }

  void AskStream() {
    std::vector<v1::SearchStreamRequest> requests(2);
    const auto complete = [&](auto& request) {
      request.set_collection(collection_);
      if (!required_.empty()) Require(required_, request);
    };
    *requests[0].mutable_search() = SearchAll();
    complete(*requests[0].mutable_search());
    *requests[1].mutable_recommend() = RecommendAll("nobody");
    complete(*requests[1].mutable_recommend());
    std::vector<v1::SearchStreamResponse> responses;
    const Outcome outcome = client_->SearchStream(requests, responses);
    Expect(outcome.ok() && responses.size() == requests.size(), "SearchStream fails");
    for (const auto& response : responses) Look("SearchStream", response, kOwnRows);
  }

  // Calls that a bound caller may be refused. An answer has the caller's rows alone.
  void AskWhatMayBeRefused() {
    v1::RecommendResponse recommended;
    AskAnything(RecommendAll("user-1"), recommended);
    Look("Recommend", recommended, "");
    v1::DescribeFieldsRequest describe;
    describe.set_collection(collection_);
    v1::DescribeFieldsResponse described;
    if (required_.empty()) client_->DescribeFields(describe, described);
    Look("DescribeFields", described, "");
    v1::GetCollectionResponse got;
    client_->Get(collection_, got);
    Look("GetCollection", got, "");
  }

  void AskAll(std::size_t other) {
    AskSearches(other);
    AskPages();
    AskLookups(other);
    Ask<v1::RecommendResponse>("Recommend", RecommendAll("nobody"), kOwnRows);
    AskStream();
    AskWhatMayBeRefused();
  }

  // For a caller who sees all rows: one group and one count for each text.
  void AskForGroupsAndCounts() {
    client_ = std::make_unique<Client>(server_->NewClient("anyone"));
    const std::vector<std::string>& texts = tenants_->texts();
    v1::SearchResponse grouped;
    EXPECT_TRUE(AskAnything(GroupAll(2 * texts.size()), grouped).ok());
    std::map<std::string, std::string> marks;  // of the rows in each text's group
    for (const v1::SearchResult& result : grouped.results()) {
      for (const v1::HitGroup& group : result.groups()) {
        for (const v1::Hit& hit : group.hits()) marks[group.keyword()] += hit.id();
      }
    }
    v1::DescribeFieldsRequest describe;
    describe.set_collection(collection_);
    describe.set_values_max(static_cast<std::uint32_t>(2 * texts.size()));
    v1::DescribeFieldsResponse described;
    EXPECT_TRUE(client_->DescribeFields(describe, described).ok());
    std::map<std::string, std::uint64_t> counts;
    std::uint64_t distinct = 0;
    for (const v1::FieldDescription& field : described.fields()) {
      if (field.field().name() != "tenant") continue;
      distinct = field.distinct_values();
      for (const auto& value : field.values()) counts[value.value().string_value()] = value.rows();
    }
    for (own_ = 0; own_ < texts.size(); ++own_) {
      const auto in_group = MarksIn(marks[Text(own_)] + ' ');
      Expect(in_group.size() == 1 && in_group.contains(own_), "group_by mixes groups");
      Expect(counts[Text(own_)] == kRowsEach, "DescribeFields counts other rows");
    }
    own_ = 0;
    Expect(distinct == texts.size(), fmt::format("DescribeFields counts {} texts", distinct));
    Expect(marks.size() == texts.size(), fmt::format("group_by makes {} groups", marks.size()));
  }

  std::string Described(std::size_t text) const {
    for (std::size_t pair = 0; pair < tenants_->pairs().size(); ++pair) {
      if (text != tenants_->A(pair) && text != tenants_->B(pair)) continue;
      return fmt::format(" {} ({})", nlohmann::json(Text(text)).dump(-1, ' ', true),
                         tenants_->pairs()[pair].kind);
    }
    return "";
  }

  inline static std::unique_ptr<TextTenants> tenants_;
  inline static std::unique_ptr<AccessServer> server_;
  std::string collection_ = "declared";
  std::unique_ptr<Client> client_;
  std::size_t own_ = 0;                          // the caller's text
  std::string required_;                         // of the caller's requests
  std::map<std::string, std::size_t> findings_;  // what is wrong, and how often
};

TEST_F(TenantTextsTest, ThePairsDiffer) {
  std::set<std::string> kinds;
  for (const NearTexts& pair : tenants_->pairs()) {
    EXPECT_NE(pair.a, pair.b) << pair.kind;
    kinds.insert(pair.kind);
  }
  EXPECT_EQ(tenants_->pairs().size(), kPairs);
  EXPECT_GT(tenants_->texts().size(), 2 * kPairs - 10);
  for (const char* const kind :
       {"case", "width", "spaces", "invisible", "bars", "prefixes", "numbers", "empty"}) {
    EXPECT_THAT(kinds, Contains(kind));
  }
  EXPECT_GE(std::ranges::count_if(kinds, [](auto& kind) { return kind.starts_with("marks,"); }),
            12);
}

TEST_F(TenantTextsTest, NoCallShowsRowsOfANearText) {
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    for (const bool by_access_file : {true, false}) {
      collection_ = by_access_file ? "declared" : "guessed";
      ActAs(tenants_->A(pair), by_access_file);
      AskAll(tenants_->B(pair));
      ActAs(tenants_->B(pair), by_access_file);
      AskAll(tenants_->A(pair));
    }
  }
  EXPECT_THAT(findings_, IsEmpty());
}

TEST_F(TenantTextsTest, FiltersTellNearTextsApart) {
  client_ = std::make_unique<Client>(server_->NewClient("anyone"));
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    collection_ = pair % 2 == 0 ? "declared" : "guessed";
    const std::size_t a = tenants_->A(pair);
    const std::size_t b = tenants_->B(pair);
    const std::string text = filter::WriteQuoted(Text(a));
    const std::string both = fmt::format("tenant IN [{}, {}]", text, filter::WriteQuoted(Text(b)));
    const std::pair<std::string, std::set<std::size_t>> cases[] = {
        {fmt::format("tenant = {}", text), {a}},
        {fmt::format("tenant IN [{}]", text), {a}},
        {both, {a, b}},
        {fmt::format("tenant != {} AND {}", text, both), {b}},
        {fmt::format("tenant NOT IN [{}] AND {}", text, both), {b}},
        {fmt::format("NOT tenant = {} AND {}", text, both), {b}}};
    for (const auto& [filter, expected] : cases) {
      v1::SearchRequest request = SearchAll();
      request.mutable_options()->set_filter(filter);
      v1::SearchResponse response;
      const Outcome outcome = AskAnything(request, response);
      own_ = a;
      Expect(outcome.ok(), fmt::format("{} fails: {}", filter, outcome.message));
      std::set<std::size_t> passing;
      for (const auto& [found, rows] : MarksIn(response.SerializeAsString())) passing.insert(found);
      Expect(passing == expected, filter + " passes other rows");
    }
  }
  EXPECT_THAT(findings_, IsEmpty());
}

TEST_F(TenantTextsTest, EachTextHasAGroupAndACountOfItsOwn) {
  for (const char* const name : {"declared", "guessed"}) {
    collection_ = name;
    AskForGroupsAndCounts();
  }
  EXPECT_THAT(findings_, IsEmpty());
}

// A filter that folds, in the place of the required one.
TEST_F(TenantTextsTest, FindsTheRowsThatAFoldingFilterShows) {
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    if (Text(tenants_->A(pair)) != "true") continue;
    ActAs(tenants_->A(pair), false);
    required_.clear();
    v1::SearchRequest request = SearchAll();
    request.mutable_options()->set_filter("tenant:\"true\"");
    Ask<v1::SearchResponse>("Search", request, kOwnRows);
  }
  EXPECT_THAT(findings_,
              ElementsAre(Pair(HasSubstr("Search shows \"True\" (case) as \"true\""), 1)));
}

TEST_F(TenantTextsTest, FindsTenantsThatTheServerTakesForOne) {
  collection_ = "merged";
  std::size_t pair = 0;
  while (Text(tenants_->A(pair)) != "true") ++pair;
  ActAs(tenants_->A(pair), true);
  AskAll(tenants_->B(pair));
  for (const char* const found :
       {"Search shows", "Search counts more", "Search by id shows", "Search by id finds",
        "group_by shows", "filter !=", "pages shows", "pages have other", "Fetch shows",
        "Fetch finds", "Lookup shows", "Lookup counts more", "Recommend shows",
        "SearchStream shows"}) {
    EXPECT_THAT(findings_, Contains(Pair(HasSubstr(found), testing::_))) << found;
  }
  findings_.clear();
  AskForGroupsAndCounts();
  EXPECT_THAT(findings_, Contains(Pair(HasSubstr("group_by mixes groups"), testing::_)));
  EXPECT_THAT(findings_, Contains(Pair(HasSubstr("DescribeFields counts other"), testing::_)));
}

}  // namespace
}  // namespace simile::integration
