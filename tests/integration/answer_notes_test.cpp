#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/access_server.h"
#include "integration/films_client_test.h"

namespace simile::integration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kReach = 200;  // limits.k_max of the server

// A change of a request, and what the answer's notes must say.
struct Case {
  std::string note;
  std::function<void(v1::SearchRequest& request)> change;
};

// All notes of an answer: of the call and of its results.
std::vector<std::string> ListNotes(const v1::SearchResponse& response) {
  std::vector<std::string> notes(response.notes().begin(), response.notes().end());
  for (const v1::SearchResult& result : response.results()) {
    notes.insert(notes.end(), result.notes().begin(), result.notes().end());
  }
  return notes;
}

v1::SearchOptions& MutableOptions(v1::SearchRequest& request) { return *request.mutable_options(); }
v1::Query& MutableQuery(v1::SearchRequest& request) { return *request.mutable_queries(0); }

class AnswerNotesTest : public FilmsClientTest {
 protected:
  AnswerNotesTest() : FilmsClientTest(*server_) {}

  static void SetUpTestSuite() {
    server_ =
        std::make_unique<FilmsServer>([](app::Config& config) { config.limits.k_max = kReach; });
  }
  static void TearDownTestSuite() { server_.reset(); }

  // A search for items like one of the films.
  v1::SearchRequest AnySearch() {
    constexpr const char* kIds[] = {"toy-story-1995", "heat-1995", "alien-1979", "batman-1989"};
    v1::SearchRequest request;
    request.set_collection("films");
    request.add_queries()->set_id(kIds[random_() % std::size(kIds)]);
    request.mutable_options()->set_k(static_cast<std::uint32_t>(2 + random_() % 20));
    return request;
  }

  // Follows the pages to the last one.
  v1::SearchResponse LastPage(v1::SearchRequest request) {
    while (true) {
      v1::SearchResponse response = Search(request);
      if (response.next_page_token().empty()) return response;
      EXPECT_THAT(ListNotes(response), testing::Each(testing::Not(HasSubstr("the pages end"))));
      request.mutable_options()->set_page_token(response.next_page_token());
    }
  }

  void ExpectEach(const std::vector<Case>& cases, bool to_last_page) {
    std::cout << "seed " << kSeed << "\n";
    for (const Case& each : cases) {
      v1::SearchRequest request = AnySearch();
      each.change(request);
      const v1::SearchResponse response = to_last_page ? LastPage(request) : Search(request);
      EXPECT_THAT(ListNotes(response), Contains(HasSubstr(each.note)))
          << request.ShortDebugString();
    }
  }

  static constexpr std::uint64_t kSeed = 22;
  inline static std::unique_ptr<FilmsServer> server_;
  std::mt19937_64 random_{kSeed};
};

TEST_F(AnswerNotesTest, APlainAnswerHasNone) {
  EXPECT_THAT(ListNotes(Search(AnySearch())), IsEmpty());
  v1::SearchRequest request = AnySearch();
  MutableOptions(request).set_filter("year >= 1990");
  MutableOptions(request).set_score_threshold(0.01F);
  MutableOptions(request).add_exclude_ids("aliens-1986");
  MutableOptions(request).mutable_diversity()->set_lambda(0.5F);
  EXPECT_THAT(ListNotes(Search(request)), IsEmpty());
}

TEST_F(AnswerNotesTest, AShortAnswerSaysWhyItIsShort) {
  const auto filtered = [](const char* filter) {
    return [filter](v1::SearchRequest& request) { MutableOptions(request).set_filter(filter); };
  };
  ExpectEach(
      {{"0 hits, not ", filtered("year > 3000")},
       {"no row passes the filter", filtered("genres: \"No such genre\"")},
       {"no other row passes the filter", filtered("media_id IN [\"aliens-1986\"]")},
       {"1 hit, not ", filtered("media_id = \"aliens-1986\"")},
       {"no row passes the filter, 1 excluded row aside",
        [](auto& request) {
          MutableQuery(request).set_id("aliens-1986");
          MutableOptions(request).set_filter("media_id = \"aliens-1986\"");
        }},
       {"no row passes the filter, 2 excluded rows aside",
        [](auto& request) {
          MutableOptions(request).set_filter("media_id IN [\"aliens-1986\", \"star-wars-1977\"]");
          MutableOptions(request).add_exclude_ids("aliens-1986");
          MutableQuery(request).add_exclude_ids("star-wars-1977");
        }},
       {"no row scores 0.99 or more",
        [](auto& request) { MutableOptions(request).set_score_threshold(0.99F); }},
       {"no row passes the filter and scores 0.98 or more",
        [](auto& request) {
          MutableOptions(request).set_filter("year > 1990");
          MutableOptions(request).set_score_threshold(0.98F);
        }},
       {"no row scores 2 or more; such scores are at most 1",
        [](auto& request) { MutableOptions(request).set_score_threshold(2); }},
       {"offset 100 skips every row that passes the filter",
        [](auto& request) {
          MutableOptions(request).set_filter("media_id = \"aliens-1986\"");
          MutableOptions(request).set_offset(100);
        }},
       {"no other group has a row that passes the filter",
        [](auto& request) {
          MutableOptions(request).set_filter("media_id = \"aliens-1986\"");
          MutableOptions(request).mutable_group_by()->set_field("genres");
          MutableOptions(request).set_k(20);
        }},
       {"fewer than the 8 hits of group_size",
        [](auto& request) {
          MutableOptions(request).mutable_group_by()->set_field("cast");
          MutableOptions(request).mutable_group_by()->set_group_size(8);
        }},
       {"rows that can be returned have no genres and are in no group",
        [](auto& request) { MutableOptions(request).mutable_group_by()->set_field("genres"); }}},
      false);
}

TEST_F(AnswerNotesTest, TheLastPageSaysThatRowsFollow) {
  const auto paged = [](std::uint32_t k) {
    return [k](v1::SearchRequest& request) {
      MutableOptions(request).set_paged(true);
      MutableOptions(request).set_k(k);
    };
  };
  const auto with = [&](std::uint32_t k, auto change) {
    return [=](v1::SearchRequest& request) {
      paged(k)(request);
      change(MutableOptions(request));
    };
  };
  ExpectEach(
      {{"the pages end at rank 200, since offset + k is at most 200 (limits.k_max), and up to "
        "4,799 "
        "rows follow: narrow the filter to reach them",
        paged(200)},
       {"the pages end at rank 200", paged(100)},
       {"the pages end at rank 150", paged(150)},
       {"the pages end at rank 198", paged(99)},
       {"the pages end at rank 200", with(50, [](auto& options) { options.set_offset(50); })},
       {"the pages end at rank 200",
        with(100, [](auto& options) { options.set_filter("year >= 1980"); })},
       {"the pages end at rank 100, since diversity chooses from 100 candidates, and up to 4,899 "
        "rows follow: raise diversity.candidates, or leave out diversity",
        with(10, [](auto& options) { options.mutable_diversity(); })},
       {"the pages end at rank 30, since diversity chooses from 40 candidates",
        with(15, [](auto& options) { options.mutable_diversity()->set_candidates(40); })},
       {"the pages end at group 10, since groups times group_size are at most 200 (limits.k_max), "
        "and more groups may follow",
        with(10,
             [](auto& options) {
               options.mutable_group_by()->set_field("cast");
               options.mutable_group_by()->set_group_size(20);
             })},
       {"the pages end at rank 20, since the pages of queries[1] end",
        [&](v1::SearchRequest& request) {
          paged(20)(request);
          v1::Query& other = *request.add_queries();
          other.set_id("aliens-1986");
          other.mutable_diversity()->set_candidates(25);
        }}},
      true);
}

TEST_F(AnswerNotesTest, TheLastPageOfAllRowsSaysNothing) {
  v1::SearchRequest request = AnySearch();
  MutableOptions(request).set_paged(true);
  MutableOptions(request).set_k(7);
  MutableOptions(request).set_filter("genres = \"Western\" AND year >= 1990");
  const v1::SearchResponse last = LastPage(request);
  EXPECT_THAT(ListNotes(last), IsEmpty());
  EXPECT_LE(last.results(0).rows_passing(), kReach) << "this test needs a smaller filter";
}

TEST_F(AnswerNotesTest, OptionsWithoutEffectAreSaid) {
  const auto with_weight = [](float weight) {
    return [weight](v1::SearchRequest& request) {
      v1::Examples& examples = *MutableQuery(request).mutable_examples();
      examples.set_strategy(v1::Examples::STRATEGY_AVERAGE_VECTOR);
      examples.add_positive()->set_id("heat-1995");
      examples.mutable_positive(0)->set_weight(weight);
    };
  };
  ExpectEach(
      {{"options.exclude_ids: the collection does not have 1 of these ids, which excludes nothing: "
        "\"zz\"",
        [](auto& request) { MutableOptions(request).add_exclude_ids("zz"); }},
       {"exclude_ids: the collection does not have 2 of these ids, which exclude nothing: \"zz\", "
        "\"yy\"",
        [](auto& request) {
          for (const char* const id : {"zz", "aliens-1986", "yy"}) {
            MutableQuery(request).add_exclude_ids(id);
          }
        }},
       {"options.exclude_seen has no effect: no query is by user_id or blend",
        [](auto& request) { MutableOptions(request).set_exclude_seen(true); }},
       {"options.exclude_seen has no effect: every query by user_id or blend sets its own",
        [](auto& request) {
          MutableOptions(request).set_exclude_seen(true);
          MutableQuery(request).set_user_id("user_00042");
          MutableQuery(request).set_exclude_seen(false);
        }},
       {"exclude_seen has no effect: no interactions of the user are known",
        [](auto& request) {
          MutableQuery(request).set_user_id("new");
          MutableQuery(request).set_exclude_seen(true);
          MutableOptions(request).mutable_cold_start()->set_order(
              v1::ColdStart::ORDER_MOST_POPULAR);
        }},
       {"options.cold_start has no effect: no query is by user_id",
        [](auto& request) {
          MutableOptions(request).mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
        }},
       {"options.cold_start has no effect: every user has a profile",
        [](auto& request) {
          MutableQuery(request).set_user_id("user_00042");
          MutableOptions(request).mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
        }},
       {"score_threshold has no effect on a cold start",
        [](auto& request) {
          MutableQuery(request).set_user_id("new");
          MutableOptions(request).set_score_threshold(0.5F);
          MutableOptions(request).mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
        }},
       {"diversity has no effect on a cold start",
        [](auto& request) {
          MutableQuery(request).set_user_id("new");
          MutableOptions(request).mutable_diversity();
          MutableOptions(request).mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
        }},
       {"score_threshold -1 has no effect: no cosine is below -1",
        [](auto& request) { MutableOptions(request).set_score_threshold(-1); }},
       {"diversity has no effect: with lambda 1 the score alone decides",
        [](auto& request) { MutableOptions(request).mutable_diversity()->set_lambda(1); }},
       {"diversity has no effect on a single hit",
        [](auto& request) {
          MutableOptions(request).set_k(1);
          MutableOptions(request).mutable_diversity();
        }},
       {"examples.positive: weight 3 has no effect", with_weight(3)},
       {"blend: the user's profile has no effect with user_weight 0",
        [](auto& request) {
          MutableQuery(request).mutable_blend()->set_id("heat-1995");
          MutableQuery(request).mutable_blend()->set_user_id("user_00042");
          MutableQuery(request).mutable_blend()->set_user_weight(0);
        }},
       {"blend: the target has no effect on scores with user_weight 1",
        [](auto& request) {
          MutableQuery(request).mutable_blend()->set_id("heat-1995");
          MutableQuery(request).mutable_blend()->set_user_id("user_00042");
          MutableQuery(request).mutable_blend()->set_user_weight(1);
        }},
       {"options.k has no effect: every query sets its own",
        [](auto& request) { MutableQuery(request).set_k(3); }},
       {"options.filter has no effect: every query sets its own",
        [](auto& request) {
          MutableOptions(request).set_filter("year > 1990");
          MutableQuery(request).set_filter("");
        }},
       {"options.score_threshold has no effect: every query sets its own",
        [](auto& request) {
          MutableOptions(request).set_score_threshold(0.5F);
          MutableQuery(request).set_score_threshold(0.1F);
        }},
       {"options.offset has no effect: every query sets its own",
        [](auto& request) {
          MutableOptions(request).set_offset(5);
          MutableQuery(request).set_offset(0);
        }},
       {"options.diversity has no effect: every query sets its own",
        [](auto& request) {
          MutableOptions(request).mutable_diversity();
          MutableQuery(request).mutable_group_by()->set_field("genres");
        }},
       {"options.group_by has no effect: every query sets its own",
        [](auto& request) {
          MutableOptions(request).mutable_group_by()->set_field("genres");
          MutableQuery(request).mutable_diversity();
        }},
       {"options.receipt_detail adds no device_us: no GPU answered",
        [](auto& request) {
          MutableOptions(request).set_receipt_detail(v1::RECEIPT_DETAIL_TIMED);
        }}},
      false);
}

TEST_F(AnswerNotesTest, AColdStartSaysWhichHitsAreInNoOrder) {
  v1::RecommendRequest request;
  request.set_collection("films");
  request.add_user_ids("new");
  v1::SearchOptions& options = *request.mutable_options();
  options.set_k(kReach);
  options.mutable_cold_start()->set_order(v1::ColdStart::ORDER_MOST_POPULAR);
  EXPECT_THAT(Recommend(request).results(0).notes(), IsEmpty());
  // No user has seen most films of the first years.
  options.set_filter("year < 1918");
  const v1::RecommendResponse response = Recommend(request);
  EXPECT_THAT(response.results(0).notes(),
              Contains(testing::MatchesRegex("cold_start: [0-9]+ of [0-9]+ hits have been seen by "
                                             "no user, and come last in the order of rows")));
}

TEST_F(AnswerNotesTest, RecommendSaysThemToo) {
  v1::RecommendRequest request;
  request.set_collection("films");
  request.add_user_ids("new");
  request.mutable_options()->set_exclude_seen(true);
  request.mutable_options()->mutable_cold_start()->set_order(v1::ColdStart::ORDER_NEWEST);
  request.mutable_options()->add_exclude_ids("zz");
  const v1::RecommendResponse response = Recommend(request);
  EXPECT_THAT(response.notes(),
              ElementsAre(HasSubstr("options.exclude_ids: the collection does not have 1")));
  EXPECT_THAT(response.results(0).notes(), ElementsAre(HasSubstr("exclude_seen has no effect")));
}

TEST(AnswerNotesAccessTest, BoundCallersLearnThatTheyGetNoRows) {
  const AccessServer server({AccessServer::Entry(
      "bound", "read", R"("required_filter": "year < 1990", "users": "all")")});
  const Client client = server.NewClient("bound");
  v1::SearchRequest search;
  search.set_collection("films");
  search.add_queries()->set_id("star-wars-1977");
  search.mutable_options()->set_with_rows(true);
  search.mutable_options()->set_receipt_detail(v1::RECEIPT_DETAIL_TIMED);
  v1::SearchResponse found;
  ASSERT_TRUE(client.Search(search, found).ok());
  EXPECT_THAT(
      found.notes(),
      ElementsAre("options.with_rows has no effect: callers with a required filter get no rows",
                  "options.receipt_detail adds no device_us: callers with a required filter get "
                  "none"));
  v1::FetchRequest fetch;
  fetch.set_collection("films");
  fetch.add_ids("star-wars-1977");
  fetch.set_with_rows(true);
  v1::FetchResponse fetched;
  ASSERT_TRUE(client.Fetch(fetch, fetched).ok());
  EXPECT_THAT(fetched.notes(),
              ElementsAre("with_rows has no effect: callers with a required filter get no rows"));
  v1::LookupRequest lookup;
  lookup.set_collection("films");
  lookup.set_text("star wars");
  lookup.set_with_rows(true);
  v1::LookupResponse looked_up;
  ASSERT_TRUE(client.Lookup(lookup, looked_up).ok());
  EXPECT_THAT(looked_up.notes(),
              ElementsAre("with_rows has no effect: callers with a required filter get no rows"));
}

}  // namespace
}  // namespace simile::integration
