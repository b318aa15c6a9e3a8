// Calls with a required filter, as a gateway makes them for tenants who share a collection: random
// calls of every kind with random filters. No answer has a row of another tenant. Every answer
// equals that of a collection with the tenant's rows alone. Hits and groups equal those of brute
// force over the tenant's rows. A failure prints the seed of its case; SIMILE_TENANTS_SEED=<seed>
// runs that case alone.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "data/load/load.h"
#include "engine/query/query_oracle.h"
#include "engine/query/resolve.h"
#include "engine/sample_data.h"
#include "integration/films_server.h"
#include "integration/tenant_calls.h"
#include "integration/tenant_catalogue.h"
#include "service/requests/validate_search.h"

namespace simile::integration {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::SeededRandom;

constexpr std::uint64_t kFirstSeed = 7'000'000;
constexpr std::size_t kCases = 1'000;
constexpr int kTenantPages = 3;

// The ids of all rows of an answer.
template <class Response>
std::vector<std::string> ListIds(const Response& response) {
  std::vector<std::string> ids;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) ids.push_back(row.id());
  };
  if constexpr (requires { response.results(); }) {
    for (const v1::SearchResult& result : response.results()) {
      add(result.hits());
      for (const v1::HitGroup& group : result.groups()) add(group.hits());
    }
  } else if constexpr (requires { response.items(); }) {
    add(response.items());
  } else {
    for (const v1::LookupMatch& match : response.matches()) ids.push_back(match.item().id());
  }
  return ids;
}

// Takes out what differs between equal answers of two collections.
//   row_count  of the tenant: the rows that pass without a filter
template <class Response>
void MakeComparable(std::uint64_t row_count, Response& response) {
  if constexpr (requires { response.results(); }) {
    response.clear_receipt();
    if (!response.next_page_token().empty()) response.set_next_page_token("more");
    for (v1::SearchResult& result : *response.mutable_results()) {
      if (!result.has_rows_passing()) result.set_rows_passing(row_count);
    }
  } else {
    response.clear_snapshot_id();
    response.clear_snapshot_version();
  }
}

template <class Element>
const Element& DrawElement(const std::vector<Element>& elements, SeededRandom& random) {
  return elements[random.Below(elements.size())];
}

std::vector<float> RandomVector(SeededRandom& random) {
  std::vector<float> values(TenantCatalogue::kDim);
  for (float& value : values) value = random.Signed();
  values[0] += 2;
  return values;
}

std::string RandomUser(SeededRandom& random) {
  return fmt::format("user-{}", random.Below(TenantCatalogue::kUsers));
}

// What a query is made from.
enum class Kind : std::uint8_t { kVector, kPacked, kItem, kUser, kAverage, kBest, kSum, kBlend };
constexpr std::uint8_t kKinds = 8;

// Draws calls of one tenant.
class CallDrawer {
 public:
  //   ids  of the tenant's items
  CallDrawer(const std::vector<std::string>& ids, const std::vector<std::string>& other_ids,
             SeededRandom& random)
      : ids_(ids), other_ids_(other_ids), random_(random) {}

  // One query of each kind, and what the filter of each lets pass.
  v1::SearchRequest Search(std::vector<TenantFilter>& filters) {
    v1::SearchRequest request;
    const TenantFilter shared = SetOptions(*request.mutable_options());
    for (std::uint8_t kind = 0; kind < kKinds; ++kind) {
      v1::Query& query = *request.add_queries();
      SetTarget(static_cast<Kind>(kind), query);
      filters.push_back(SetOwnFilter(shared, query));
      query.set_k(static_cast<std::uint32_t>(random_.Between(1, 12)));
      if (random_.OneIn(3)) query.set_offset(static_cast<std::uint32_t>(random_.Below(6)));
      if (random_.OneIn(5)) query.set_score_threshold(0.5F * random_.Signed());
      for (std::size_t left = random_.Below(4); left > 0; --left) {
        query.add_exclude_ids(DrawElement(random_.OneIn(2) ? ids_ : other_ids_, random_));
      }
      SetRefinement(query);
    }
    return request;
  }

  v1::RecommendRequest Recommend() {
    v1::RecommendRequest request;
    SetOptions(*request.mutable_options());
    request.add_user_ids(RandomUser(random_));
    request.add_user_ids("a-new-user");
    request.add_user_ids(RandomUser(random_));
    request.mutable_options()->set_exclude_seen(random_.OneIn(2));
    request.mutable_options()->mutable_cold_start()->set_order(
        random_.OneIn(2) ? v1::ColdStart::ORDER_NEWEST : v1::ColdStart::ORDER_MOST_POPULAR);
    SetRefinement(*request.mutable_options());
    return request;
  }

  v1::FetchRequest Fetch() {
    v1::FetchRequest request;
    for (std::size_t left = random_.Between(1, 5); left > 0; --left) {
      request.add_ids(DrawElement(ids_, random_));
    }
    request.set_with_vectors(random_.OneIn(2));
    return request;
  }

  v1::LookupRequest Lookup() {
    v1::LookupRequest request;
    const char* const texts[] = {"river", "night", "harbour", "a", "Harbour Lights", "nothing"};
    request.set_text(texts[random_.Below(std::size(texts))]);
    request.set_limit(static_cast<std::uint32_t>(random_.Between(1, 30)));
    return request;
  }

  // A query that names this item, in one of the ways in which a query can.
  v1::SearchRequest SearchFrom(const std::string& id) {
    v1::SearchRequest request;
    v1::Query& query = *request.add_queries();
    const auto kind = static_cast<Kind>(random_.Between(2, kKinds - 1));
    if (kind == Kind::kBlend) {
      query.mutable_blend()->set_id(id);
      query.mutable_blend()->set_user_id(RandomUser(random_));
    } else if (kind == Kind::kItem || kind == Kind::kUser) {
      query.set_id(id);
    } else {
      SetExamples(kind, *query.mutable_examples());
      v1::Examples& examples = *query.mutable_examples();
      (random_.OneIn(2) ? examples.add_positive() : examples.add_negative())->set_id(id);
    }
    return request;
  }

 private:
  // What applies to all queries of a call; returns its filter.
  TenantFilter SetOptions(v1::SearchOptions& options) {
    options.set_paged(random_.OneIn(2));
    options.set_k(static_cast<std::uint32_t>(random_.Between(1, 12)));
    options.set_with_vectors(random_.OneIn(8));
    if (random_.OneIn(2)) {
      options.mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
    }
    TenantFilter filter{"", [](const TenantItem&) { return true; }};
    if (random_.OneIn(2)) filter = RandomTenantFilter(random_);
    if (!filter.text.empty()) options.set_filter(filter.text);
    return filter;
  }

  // Returns the filter that holds for the query.
  TenantFilter SetOwnFilter(const TenantFilter& shared, v1::Query& query) {
    if (random_.OneIn(2)) return shared;
    TenantFilter filter{"", [](const TenantItem&) { return true; }};
    if (!random_.OneIn(3)) filter = RandomTenantFilter(random_);
    query.set_filter(filter.text);
    return filter;
  }

  template <class Message>
  void SetRefinement(Message& message) {
    if (random_.OneIn(4)) {
      message.mutable_group_by()->set_field("tags");
      message.mutable_group_by()->set_group_size(static_cast<std::uint32_t>(random_.Between(1, 3)));
    } else if (random_.OneIn(3)) {
      message.mutable_diversity()->set_lambda(static_cast<float>(random_.Below(11)) / 10.0F);
      message.mutable_diversity()->set_candidates(
          static_cast<std::uint32_t>(random_.Between(20, 60)));
    }
  }

  void SetTarget(Kind kind, v1::Query& query) {
    switch (kind) {
      case Kind::kVector:
        return SetVector(*query.mutable_vector());
      case Kind::kPacked: {
        const std::vector<float> values = RandomVector(random_);
        query.mutable_packed_vector()->set_format(v1::PackedVector::FORMAT_F32_LE);
        query.mutable_packed_vector()->set_data(values.data(), values.size() * sizeof(float));
        return;
      }
      case Kind::kItem:
        return query.set_id(DrawElement(ids_, random_));
      case Kind::kUser:
        query.set_exclude_seen(random_.OneIn(2));
        return query.set_user_id(RandomUser(random_));
      case Kind::kAverage:
      case Kind::kBest:
      case Kind::kSum:
        return SetExamples(kind, *query.mutable_examples());
      case Kind::kBlend:
        query.mutable_blend()->set_user_id(RandomUser(random_));
        query.mutable_blend()->set_user_weight(static_cast<float>(random_.Below(11)) / 10.0F);
        return random_.OneIn(3) ? SetVector(*query.mutable_blend()->mutable_vector())
                                : query.mutable_blend()->set_id(DrawElement(ids_, random_));
    }
  }

  void SetVector(v1::FloatVector& vector) {
    const std::vector<float> values = RandomVector(random_);
    vector.mutable_values()->Add(values.begin(), values.end());
  }

  void SetExamples(Kind kind, v1::Examples& examples) {
    examples.set_strategy(kind == Kind::kAverage ? v1::Examples::STRATEGY_AVERAGE_VECTOR
                          : kind == Kind::kBest  ? v1::Examples::STRATEGY_BEST_SCORE
                                                 : v1::Examples::STRATEGY_SUM_SCORES);
    for (std::size_t left = random_.Between(1, 3); left > 0; --left) {
      SetExample(*examples.add_positive());
    }
    for (std::size_t left = random_.Below(3); left > 0; --left)
      SetExample(*examples.add_negative());
  }

  void SetExample(v1::Example& example) {
    if (random_.OneIn(3)) return SetVector(*example.mutable_vector());
    example.set_id(DrawElement(ids_, random_));
  }

  const std::vector<std::string>& ids_;
  const std::vector<std::string>& other_ids_;
  SeededRandom& random_;
};

class TenantsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    catalogue_ = std::make_unique<TenantCatalogue>();
    server_ = std::make_unique<FilmsServer>([](app::Config& config) {
      config.collections = {{"shared", catalogue_->FolderPath("shared")}};
      for (const char* const tenant : kTenants) {
        config.collections.push_back({tenant, catalogue_->FolderPath(tenant)});
      }
    });
  }
  static void TearDownTestSuite() {
    server_.reset();
    catalogue_.reset();
  }

  TenantsTest() {
    const auto plan = data::PlanDataset(catalogue_->FolderPath("shared"), Limits{});
    auto dataset = data::LoadDataset(plan.value(), Limits{}, nullptr);
    snapshot_ = engine::MakeSnapshot(std::make_shared<data::Dataset>(*std::move(dataset)));
  }

  // The calls that follow are this tenant's.
  void ActAs(const std::string& tenant, SeededRandom& random) {
    tenant_ = tenant;
    ids_ = catalogue_->ListIds(tenant);
    other_ids_ = catalogue_->ListIds(tenant, false);
    const std::string texts[] = {fmt::format("tenant = {}", tenant),
                                 fmt::format("tenant IN [\"{}\"]", tenant),
                                 fmt::format("NOT (tenant != \"{}\" OR NOT has(tenant))", tenant),
                                 fmt::format("tenant = \"{}\" AND year >= 1900", tenant)};
    required_filter_ = texts[random.Below(std::size(texts))];
  }

  // The tenant's answer, which equals that of its own collection.
  template <class Response, class Request>
  Response ExpectOwnAnswer(Request request, const Request& own_request) {
    request.set_collection("shared");
    Require(required_filter_, request);
    Response answer;
    Response own_answer;
    const Outcome outcome = MakeCall(client_, request, answer);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome) << request.DebugString();
    const Outcome own_outcome = MakeCall(client_, own_request, own_answer);
    EXPECT_TRUE(own_outcome.ok()) << testing::PrintToString(own_outcome);
    for (const std::string& id : ListIds(answer)) {
      EXPECT_EQ(catalogue_->Item(id).tenant, tenant_) << id;
    }
    rows_seen_ += ListIds(answer).size();
    Response comparable = answer;
    last_own_token_ = NextToken(own_answer);
    MakeComparable(ids_.size(), comparable);
    MakeComparable(ids_.size(), own_answer);
    std::string difference;
    MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(own_answer, comparable)) << difference << request.DebugString();
    return answer;
  }
  template <class Response, class Request>
  Response ExpectOwnAnswer(const Request& request) {
    Request own_request = request;
    own_request.set_collection(tenant_);
    return ExpectOwnAnswer<Response>(request, own_request);
  }

  // The first page. The next pages equal those of the tenant's own collection, too.
  template <class Response, class Request>
  Response ExpectOwnPages(const Request& first) {
    const Response answer = ExpectOwnAnswer<Response>(first);
    Request request = first;
    Request own_request = first;
    own_request.set_collection(tenant_);
    std::string token = answer.next_page_token();
    for (int page = 1; page < kTenantPages && !token.empty() && !HasFailure(); ++page) {
      request.mutable_options()->set_page_token(token);
      own_request.mutable_options()->set_page_token(last_own_token_);
      token = ExpectOwnAnswer<Response>(request, own_request).next_page_token();
      ++pages_;
    }
    return answer;
  }

  // The answer has the hits and groups of brute force over the tenant's rows.
  //   filters  of the queries
  void ExpectBruteForce(v1::SearchRequest request, const v1::SearchResponse& answer,
                        const std::vector<TenantFilter>& filters) {
    request.set_collection("shared");
    const auto valid = service::ValidateSearch(request, Limits{});
    ASSERT_TRUE(valid.ok()) << valid.status();
    engine::SearchTask task;
    task.deadline = Clock::TimePoint::max();
    base::LongWork work = tests::UnaskedWork();
    engine::CallReport report{std::vector<engine::QueryReport>(valid->queries.size()), {}};
    const absl::Status resolved = engine::ResolveQueries(snapshot_, valid->queries,
                                                         engine::CallOptions{}, work, task, report);
    ASSERT_TRUE(resolved.ok()) << resolved;
    std::size_t vector = 0;
    for (std::size_t i = 0; i < filters.size(); ++i) {
      const std::uint32_t count = task.queries[i].vector_count;
      const auto passes = [&](Row row) {
        const TenantItem& item = catalogue_->items()[row];
        return item.tenant == tenant_ && filters[i].passes(item);
      };
      const engine::ExpectedAnswer expected = engine::BruteForce(
          *snapshot_.dataset, valid->queries[i], task.vectors.view().Slice(vector, count), passes);
      vector += count;
      SCOPED_TRACE(request.queries(static_cast<int>(i)).ShortDebugString());
      ExpectSame(answer.results(static_cast<int>(i)), expected, valid->queries[i].offset);
      EXPECT_EQ(answer.results(static_cast<int>(i)).rows_passing(), CountPassing(passes));
    }
  }

  // Each query's explanation of own and other items equals that of the tenant's own collection.
  void ExpectOwnExplanations(const v1::SearchRequest& search, SeededRandom& random) {
    for (int index = 0; index < search.queries_size(); ++index) {
      v1::ExplainRequest request;
      request.set_query_index(static_cast<std::uint32_t>(index));
      for (int i = 0; i < 6; ++i)
        request.add_ids(DrawElement(random.OneIn(3) ? other_ids_ : ids_, random));
      v1::ExplainRequest own_request = request;
      *request.mutable_search() = *own_request.mutable_search() = search;
      request.mutable_search()->set_collection("shared");
      Require(required_filter_, *request.mutable_search());
      own_request.mutable_search()->set_collection(tenant_);
      v1::ExplainResponse answer;
      v1::ExplainResponse own_answer;
      const Outcome outcome = client_.Explain(request, answer);
      ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome) << request.DebugString();
      ASSERT_TRUE(client_.Explain(own_request, own_answer).ok());
      for (v1::ExplainResponse* const each : {&answer, &own_answer}) {
        each->clear_receipt();
        each->clear_notes();
        for (v1::Explanation& item : *each->mutable_explanations()) {
          ++explained_[item.reasons_size() > 0 ? item.reasons(0) : 0];
          if (!item.has_rank()) item.clear_text();  // which names the collection
        }
      }
      std::string difference;
      MessageDifferencer differencer;
      differencer.ReportDifferencesToString(&difference);
      EXPECT_TRUE(differencer.Compare(own_answer, answer)) << difference << request.DebugString();
    }
  }

  // An export, whole and in two parts, has the sources and hits of the tenant's own collection.
  void ExpectOwnExport(v1::ExportRequest request) {
    const auto texts_of = [](const std::vector<v1::ExportResponse>& messages) {
      std::vector<std::string> texts;
      for (const v1::ExportResponse& message : messages) {
        EXPECT_EQ(message.source_ids_size(), message.answer().results_size());
        for (int i = 0; i < message.source_ids_size(); ++i) {
          texts.push_back(message.source_ids(i));
          for (const v1::Hit& hit : message.answer().results(i).hits()) {
            texts.push_back(fmt::format("{} {} {}", hit.rank(), hit.id(), hit.score()));
          }
        }
      }
      return texts;
    };
    v1::ExportRequest own_request = request;
    own_request.set_collection(tenant_);
    request.set_collection("shared");
    Require(required_filter_, request);
    // Messages of a few sources, so that there are cursors within.
    request.mutable_options()->set_reply_bytes_max(2'000);
    std::vector<v1::ExportResponse> messages;
    std::vector<v1::ExportResponse> own_messages;
    ASSERT_TRUE(client_.Export(own_request, own_messages).ok());
    const Outcome outcome = client_.Export(request, messages);
    ASSERT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    EXPECT_EQ(texts_of(messages), texts_of(own_messages));
    ASSERT_GT(messages.size(), 2U);
    EXPECT_EQ(messages.back().cursor(), "");
    EXPECT_EQ(messages.back().exported_count(), own_messages.back().source_count());
    EXPECT_EQ(messages.front().source_count(), own_messages.front().source_count());

    const std::size_t half = messages.size() / 2;
    request.set_cursor(messages[half].cursor());
    std::vector<v1::ExportResponse> rest;
    ASSERT_TRUE(client_.Export(request, rest).ok());
    messages.resize(half + 1);
    messages.insert(messages.end(), rest.begin(), rest.end());
    EXPECT_EQ(texts_of(messages), texts_of(own_messages));
  }

  // An item of another tenant is answered like an item that nobody has.
  void ExpectHidden(SeededRandom& random) {
    const std::string hidden = DrawElement(other_ids_, random);
    const std::string missing = "item-99999";
    const std::uint64_t seed = random.Bits();
    const auto ask = [&](const std::string& id) {
      SeededRandom same(seed);
      v1::SearchRequest request = CallDrawer(ids_, other_ids_, same).SearchFrom(id);
      return AskForHidden<v1::SearchResponse>(std::move(request), id);
    };
    EXPECT_EQ(ask(hidden), ask(missing));
    const auto fetch = [&](const std::string& id) {
      v1::FetchRequest request;
      request.add_ids(ids_.front());
      request.add_ids(id);
      return AskForHidden<v1::FetchResponse>(std::move(request), id);
    };
    EXPECT_EQ(fetch(hidden), fetch(missing));
  }

  inline static std::unique_ptr<TenantCatalogue> catalogue_;
  inline static std::unique_ptr<FilmsServer> server_;
  const Client client_ = server_->NewClient();
  engine::Snapshot snapshot_;  // of "shared", to resolve queries for brute force
  std::string tenant_;
  std::string required_filter_;
  std::vector<std::string> ids_;          // of the tenant's items
  std::vector<std::string> other_ids_;    // of other tenants' items
  std::string last_own_token_;            // of the next page of the tenant's own collection
  std::map<int, std::size_t> explained_;  // by the first reason; 0: returned
  std::size_t rows_seen_ = 0;
  std::size_t pages_ = 0;  // after the first of a call

 private:
  template <class Response>
  static std::string NextToken(const Response& response) {
    if constexpr (requires { response.next_page_token(); }) return response.next_page_token();
    return "";
  }

  // The message of the error, with ID in place of the id.
  template <class Response, class Request>
  std::string AskForHidden(Request request, const std::string& id) const {
    request.set_collection("shared");
    Require(required_filter_, request);
    Response response;
    const Outcome outcome = MakeCall(client_, request, response);
    EXPECT_EQ(outcome.reason, "ITEM_NOT_FOUND")
        << testing::PrintToString(outcome) << request.DebugString();
    EXPECT_THAT(outcome.message, Not(HasSubstr("Did you mean")));
    std::string message = outcome.message;
    const std::size_t place = message.find('"' + id + '"');
    if (place != std::string::npos) message.replace(place + 1, id.size(), "ID");
    return message;
  }

  template <class Passes>
  std::uint64_t CountPassing(const Passes& passes) const {
    std::uint64_t count = 0;
    for (Row row = 0; row < snapshot_.row_count(); ++row) count += passes(row) ? 1 : 0;
    return count;
  }

  void ExpectSameHits(const google::protobuf::RepeatedPtrField<v1::Hit>& actual,
                      std::span<const Hit> expected) const {
    ASSERT_EQ(static_cast<std::size_t>(actual.size()), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const v1::Hit& hit = actual[static_cast<int>(i)];
      EXPECT_EQ(hit.id(), catalogue_->items()[expected[i].row].id) << "hit " << i;
      EXPECT_EQ(hit.score(), expected[i].score) << "hit " << i;
    }
  }

  void ExpectSame(const v1::SearchResult& actual, const engine::ExpectedAnswer& expected,
                  std::size_t offset) const {
    const auto hits = std::span(expected.hits).subspan(std::min(offset, expected.hits.size()));
    ExpectSameHits(actual.hits(), hits);
    const auto groups =
        std::span(expected.groups).subspan(std::min(offset, expected.groups.size()));
    ASSERT_EQ(static_cast<std::size_t>(actual.groups_size()), groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(actual.groups(static_cast<int>(i)).keyword(), groups[i].keyword);
      ExpectSameHits(actual.groups(static_cast<int>(i)).hits(), groups[i].hits);
    }
  }
};

TEST_F(TenantsTest, NoCallReachesRowsOfAnotherTenant) {
  std::uint64_t first = kFirstSeed;
  std::size_t cases = kCases;
  if (const char* const only = std::getenv("SIMILE_TENANTS_SEED")) {
    first = std::strtoull(only, nullptr, 10);
    cases = 1;
  }
  for (std::uint64_t seed = first; seed < first + cases && !HasFailure(); ++seed) {
    SCOPED_TRACE("SIMILE_TENANTS_SEED=" + std::to_string(seed));
    SeededRandom random(seed);
    ActAs(kTenants[random.Below(kTenants.size())], random);
    CallDrawer draw(ids_, other_ids_, random);
    std::vector<TenantFilter> filters;
    const v1::SearchRequest search = draw.Search(filters);
    const v1::SearchResponse answer = ExpectOwnPages<v1::SearchResponse>(search);
    if (HasFailure()) break;
    ExpectBruteForce(search, answer, filters);
    ExpectOwnPages<v1::RecommendResponse>(draw.Recommend());
    ExpectOwnAnswer<v1::FetchResponse>(draw.Fetch());
    ExpectOwnAnswer<v1::LookupResponse>(draw.Lookup());
    ExpectHidden(random);
  }
  if (cases == 1) return;
  EXPECT_GT(rows_seen_, 20 * kCases) << "the filters let hardly any row pass";
  EXPECT_GT(pages_, kCases / 4);
}

TEST_F(TenantsTest, ExplanationsAreThoseOfTheTenantsOwnCollection) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    ActAs(kTenants[random.Below(kTenants.size())], random);
    std::vector<TenantFilter> filters;
    ExpectOwnExplanations(CallDrawer(ids_, other_ids_, random).Search(filters), random);
  }
  for (const auto reason : {v1::Explanation::REASON_NOT_FOUND, v1::Explanation::REASON_FILTER,
                            v1::Explanation::REASON_RANK, v1::Explanation::REASON_GROUP_RANK}) {
    EXPECT_GT(explained_[reason], 100U) << v1::Explanation::Reason_Name(reason);
  }
  EXPECT_GT(explained_[0], 50U);
}

TEST_F(TenantsTest, ExportsAreThoseOfTheTenantsOwnCollection) {
  SeededRandom random(3);
  for (const char* const tenant : kTenants) {
    ActAs(tenant, random);
    v1::ExportRequest request;
    request.mutable_options()->set_k(3);
    ExpectOwnExport(request);
    request.set_source_filter("year >= 1980");
    request.mutable_options()->set_filter("year < 1990");
    ExpectOwnExport(request);
    request.clear_source_filter();
    request.set_sources(v1::ExportRequest::SOURCES_USERS);
    request.mutable_options()->set_exclude_seen(true);
    ExpectOwnExport(request);
  }
}

TEST_F(TenantsTest, AUsersSeenCountHasOwnItemsOnly) {
  const std::string user = "user-3";
  SeededRandom random(1);
  std::uint32_t total = 0;
  for (const char* const tenant : kTenants) {
    ActAs(tenant, random);
    v1::RecommendRequest request;
    request.add_user_ids(user);
    total += ExpectOwnAnswer<v1::RecommendResponse>(request).results(0).seen_count();
  }
  v1::RecommendRequest request;
  request.set_collection("shared");
  request.add_user_ids(user);
  v1::RecommendResponse response;
  ASSERT_TRUE(client_.Recommend(request, response).ok());
  EXPECT_GT(total, 0U);
  EXPECT_EQ(response.results(0).seen_count(), total);
}

}  // namespace
}  // namespace simile::integration
