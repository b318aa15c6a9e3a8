// Compares queries by an item of another collection with queries by the item's vector, as Fetch
// returns it. Also what the other collection hides.
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "base/await_true.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"
#include "integration/access_server.h"

namespace simile::integration {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kDim = 6;

// Folders of collections whose items are PREFIX-0, PREFIX-1, ..., of the tenants acme and beta by
// turns.
class Folders {
 public:
  Folders() {
    Write("jobs", "job", 300, kDim);
    WriteUsers("jobs");
    Write("cvs", "cv", 40, kDim);
    Write("cvs-2", "cv", 40, kDim);  // the same ids, other vectors
    Write("wide", "wide", 5, kDim + 1);
    Write("dots", "dot", 5, kDim, R"({"metric": "dot"})");
  }

  std::filesystem::path Of(const std::string& collection) const {
    return root_.path() / collection;
  }
  const std::filesystem::path& root() const { return root_.path(); }

  void Serve(app::Config& config) const {
    config.collections.clear();
    for (const char* const name : {"jobs", "cvs", "wide", "dots"}) {
      config.collections.push_back({name, Of(name)});
    }
    config.changes_allowed = true;
    config.data_root = root();
  }

  // Replaces the vectors of the CVs by other vectors.
  void ReplaceCvs() const {
    std::filesystem::remove_all(Of("cvs"));
    std::filesystem::copy(Of("cvs-2"), Of("cvs"));
  }

 private:
  std::vector<float> Numbers(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count);
    for (float& number : numbers) number = normal(random_);
    return numbers;
  }

  void Write(const std::string& folder, const std::string& prefix, std::size_t rows,
             std::size_t dim, const std::string& settings = "{}") {
    root_.Write(folder + "/content_vectors.npy", NpyFile(Numbers(rows * dim), dim));
    std::string metadata;
    for (std::size_t row = 0; row < rows; ++row) {
      metadata += fmt::format(R"({{"media_id": "{}-{}", "tenant": "{}", "{}_only": 1}})"
                              "\n",
                              prefix, row, row % 2 == 0 ? "acme" : "beta", prefix);
    }
    root_.Write(folder + "/metadata.jsonl", metadata);
    root_.Write(folder + "/collection.json", settings);
  }

  void WriteUsers(const std::string& folder) {
    root_.Write(folder + "/preference_vectors.npy", NpyFile(Numbers(2 * kDim), kDim));
    root_.Write(folder + "/user_ids.json", R"(["ann", "ben"])");
  }

  ScratchFolder root_;
  std::mt19937 random_{42};
};

class ItemsOfCollectionsTest : public testing::Test {
 protected:
  static v1::SearchRequest InJobs() {
    v1::SearchRequest request;
    request.set_collection("jobs");
    request.mutable_options()->set_k(20);
    return request;
  }
  static v1::SearchRequest ByItem(const std::string& collection, const std::string& id) {
    v1::SearchRequest request = InJobs();
    SetItem(collection, id, *request.add_queries());
    return request;
  }
  template <class Target>
  static void SetItem(const std::string& collection, const std::string& id, Target& target) {
    target.mutable_item()->set_collection(collection);
    target.mutable_item()->set_id(id);
  }

  static v1::FloatVector FetchVector(const Client& client, const std::string& collection,
                                     const std::string& id) {
    v1::FetchRequest request;
    request.set_collection(collection);
    request.add_ids(id);
    request.set_with_vectors(true);
    v1::FetchResponse response;
    const Outcome outcome = client.Fetch(request, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response.items_size() == 1 ? response.items(0).vector() : v1::FloatVector();
  }

  static v1::SearchResponse Search(const Client& client, const v1::SearchRequest& request) {
    v1::SearchResponse response;
    const Outcome outcome = client.Search(request, response);
    EXPECT_TRUE(outcome.ok()) << testing::PrintToString(outcome);
    return response;
  }
  static Outcome Refusal(const Client& client, const v1::SearchRequest& request) {
    v1::SearchResponse response;
    return client.Search(request, response);
  }

  static void ExpectSameResults(const v1::SearchResponse& one, const v1::SearchResponse& other) {
    ASSERT_EQ(one.results_size(), other.results_size());
    for (int i = 0; i < one.results_size(); ++i) {
      EXPECT_THAT(one.results(i).hits(), testing::Not(IsEmpty()));
      EXPECT_TRUE(MessageDifferencer::Equals(one.results(i), other.results(i)))
          << one.results(i).ShortDebugString() << "\n"
          << other.results(i).ShortDebugString();
    }
  }

  static std::string FetchSnapshotId(const Client& client, const std::string& collection) {
    v1::GetCollectionResponse response;
    EXPECT_TRUE(client.Get(collection, response).ok());
    return response.collection().snapshot_id();
  }

  Folders folders_;
};

class OpenItemsOfCollectionsTest : public ItemsOfCollectionsTest {
 protected:
  // Has the server read other vectors of the CVs.
  void ReloadOtherCvs() {
    folders_.ReplaceCvs();
    ChangeAnswer reloaded;
    v1::ReloadCollectionRequest reload;
    reload.set_collection("cvs");
    reload.set_min_overlap(0);
    ASSERT_TRUE(client_.Reload(reload, reloaded).ok());
  }

  const FilmsServer server_{[this](app::Config& config) { folders_.Serve(config); }};
  const Client client_ = server_.NewClient();
};

TEST_F(OpenItemsOfCollectionsTest, SearchAsTheirVectorsDo) {
  v1::SearchRequest by_item = InJobs();
  v1::SearchRequest by_vector = InJobs();
  for (int cv = 0; cv < 40; ++cv) {
    const std::string id = fmt::format("cv-{}", cv);
    SetItem("cvs", id, *by_item.add_queries());
    *by_vector.add_queries()->mutable_vector() = FetchVector(client_, "cvs", id);
  }
  const v1::SearchResponse answer = Search(client_, by_item);
  ExpectSameResults(answer, Search(client_, by_vector));
  ASSERT_THAT(answer.receipt().item_snapshots(), SizeIs(1));
  const v1::ItemSnapshot& of_items = answer.receipt().item_snapshots(0);
  EXPECT_EQ(of_items.collection(), "cvs");
  EXPECT_EQ(of_items.snapshot_id(), FetchSnapshotId(client_, "cvs"));
  EXPECT_EQ(of_items.snapshot_version(), 1U);
  EXPECT_EQ(answer.receipt().snapshot_id(), FetchSnapshotId(client_, "jobs"));
}

TEST_F(OpenItemsOfCollectionsTest, AreExamplesAndPartsOfBlends) {
  v1::SearchRequest by_item = InJobs();
  v1::SearchRequest by_vector = InJobs();
  for (const auto strategy :
       {v1::Examples::STRATEGY_AVERAGE_VECTOR, v1::Examples::STRATEGY_BEST_SCORE,
        v1::Examples::STRATEGY_SUM_SCORES}) {
    v1::Examples& items = *by_item.add_queries()->mutable_examples();
    v1::Examples& vectors = *by_vector.add_queries()->mutable_examples();
    items.set_strategy(strategy);
    vectors.set_strategy(strategy);
    for (const char* const id : {"cv-3", "cv-4"}) {
      SetItem("cvs", id, *items.add_positive());
      *vectors.add_positive()->mutable_vector() = FetchVector(client_, "cvs", id);
    }
    SetItem("cvs", "cv-5", *items.add_negative());
    *vectors.add_negative()->mutable_vector() = FetchVector(client_, "cvs", "cv-5");
    items.add_positive()->set_id("job-7");
    vectors.add_positive()->set_id("job-7");
  }
  v1::Blend& of_item = *by_item.add_queries()->mutable_blend();
  v1::Blend& of_vector = *by_vector.add_queries()->mutable_blend();
  SetItem("cvs", "cv-6", of_item);
  *of_vector.mutable_vector() = FetchVector(client_, "cvs", "cv-6");
  for (v1::Blend* const blend : {&of_item, &of_vector}) {
    blend->set_user_id("ann");
    blend->set_user_weight(0.25F);
  }
  ExpectSameResults(Search(client_, by_item), Search(client_, by_vector));
}

TEST_F(OpenItemsOfCollectionsTest, AreAskedForInStreams) {
  std::vector<v1::SearchStreamRequest> requests(2);
  *requests[0].mutable_search() = ByItem("cvs", "cv-1");
  *requests[1].mutable_search() = ByItem("cvs", "cv-99");
  std::vector<v1::SearchStreamResponse> responses;
  ASSERT_TRUE(client_.SearchStream(requests, responses).ok());
  ASSERT_THAT(responses, SizeIs(2));
  ExpectSameResults(responses[0].search(), Search(client_, ByItem("cvs", "cv-1")));
  EXPECT_EQ(ReadOutcome(responses[1]).reason, "ITEM_NOT_FOUND");
}

TEST_F(OpenItemsOfCollectionsTest, OfTheSearchedCollectionAreAsThoseById) {
  v1::SearchRequest by_id = InJobs();
  by_id.add_queries()->set_id("job-7");
  const v1::SearchResponse answer = Search(client_, ByItem("jobs", "job-7"));
  ExpectSameResults(answer, Search(client_, by_id));
  EXPECT_THAT(answer.receipt().item_snapshots(), IsEmpty());
  EXPECT_EQ(Refusal(client_, ByItem("jobs", "job-x")).field, "queries[0].item.id");
}

TEST_F(OpenItemsOfCollectionsTest, AreOfTheContentOfTheReceiptAfterAReloadToo) {
  const v1::SearchResponse before = Search(client_, ByItem("cvs", "cv-1"));
  ASSERT_NO_FATAL_FAILURE(ReloadOtherCvs());
  const v1::SearchResponse after = Search(client_, ByItem("cvs", "cv-1"));
  EXPECT_EQ(after.receipt().item_snapshots(0).snapshot_id(), FetchSnapshotId(client_, "cvs"));
  EXPECT_EQ(after.receipt().item_snapshots(0).snapshot_version(), 2U);
  EXPECT_NE(before.receipt().item_snapshots(0).snapshot_id(),
            after.receipt().item_snapshots(0).snapshot_id());
  v1::SearchRequest by_vector = InJobs();
  *by_vector.add_queries()->mutable_vector() = FetchVector(client_, "cvs", "cv-1");
  ExpectSameResults(after, Search(client_, by_vector));
}

TEST_F(OpenItemsOfCollectionsTest, KeepTheirContentFromPageToPage) {
  v1::SearchRequest request = ByItem("cvs", "cv-1");
  request.mutable_options()->set_k(40);
  const v1::SearchResponse whole = Search(client_, request);
  request.mutable_options()->set_k(20);
  request.mutable_options()->set_paged(true);
  v1::SearchResponse page = Search(client_, request);
  ASSERT_NO_FATAL_FAILURE(ReloadOtherCvs());
  request.mutable_options()->set_page_token(page.next_page_token());
  page = Search(client_, request);
  ASSERT_THAT(page.results(0).hits(), SizeIs(20));
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(MessageDifferencer::Equals(page.results(0).hits(i), whole.results(0).hits(20 + i)));
  }
  EXPECT_TRUE(MessageDifferencer::Equals(page.receipt().item_snapshots(0),
                                         whole.receipt().item_snapshots(0)));
  // Content that is gone ends the pages, also of a partial call.
  request.mutable_options()->clear_page_token();
  request.mutable_options()->set_partial(true);
  page = Search(client_, request);
  ASSERT_TRUE(client_.Unload("cvs").ok());
  request.mutable_options()->set_page_token(page.next_page_token());
  EXPECT_EQ(Refusal(client_, request).reason, "COLLECTION_NOT_FOUND");
}

TEST_F(OpenItemsOfCollectionsTest, AreRefusedWhereTheyCannotBeCompared) {
  const Outcome wide = Refusal(client_, ByItem("wide", "wide-1"));
  EXPECT_EQ(wide.reason, "DIMENSION_MISMATCH");
  EXPECT_EQ(wide.field, "queries[0].item.collection");
  EXPECT_EQ(wide.message,
            "wide has 7 dimensions, jobs has 6; a vector from another model cannot be compared");
  const Outcome dots = Refusal(client_, ByItem("dots", "dot-1"));
  EXPECT_EQ(dots.reason, "INVALID_FIELD");
  EXPECT_EQ(dots.field, "queries[0].item.collection");
  EXPECT_THAT(dots.message, HasSubstr("dots has the metric dot, jobs has cosine"));
}

TEST_F(OpenItemsOfCollectionsTest, AreRefusedWhereTheyAreNotThere) {
  const Outcome unknown = Refusal(client_, ByItem("cvs", "cv-x"));
  EXPECT_EQ(unknown.reason, "ITEM_NOT_FOUND");
  EXPECT_EQ(unknown.field, "queries[0].item.id");
  EXPECT_THAT(unknown.message, HasSubstr("no item \"cv-x\" in cvs. Did you mean \"cv-"));
  const Outcome nowhere = Refusal(client_, ByItem("cv", "cv-1"));
  EXPECT_EQ(nowhere.reason, "COLLECTION_NOT_FOUND");
  EXPECT_EQ(nowhere.field, "queries[0].item.collection");
  EXPECT_THAT(nowhere.message, HasSubstr("Did you mean \"cvs\""));
  EXPECT_EQ(Refusal(client_, ByItem("a/b", "cv-1")).field, "queries[0].item.collection");
  EXPECT_EQ(Refusal(client_, ByItem("cvs", "")).field, "queries[0].item.id");
  v1::SearchRequest several = ByItem("cvs", "cv-x");
  several.add_queries()->set_id("job-x");
  EXPECT_EQ(Refusal(client_, several).message,
            "2 ids are not in their collections: item \"job-x\", item of another collection "
            "\"cvs/cv-x\"");
}

TEST_F(OpenItemsOfCollectionsTest, FailAloneInAPartialCall) {
  v1::SearchRequest request = ByItem("cvs", "cv-1");
  for (const auto& [collection, id] :
       {std::pair{"cvs", "cv-x"}, {"nowhere", "a"}, {"wide", "wide-1"}}) {
    SetItem(collection, id, *request.add_queries());
  }
  request.mutable_options()->set_partial(true);
  const v1::SearchResponse answer = Search(client_, request);
  ASSERT_THAT(answer.results(), SizeIs(4));
  EXPECT_EQ(answer.failed_count(), 3U);
  EXPECT_THAT(answer.results(0).hits(), SizeIs(20));
  EXPECT_EQ(ReadOutcome(answer.results(1).error()).reason, "ITEM_NOT_FOUND");
  EXPECT_EQ(ReadOutcome(answer.results(2).error()).reason, "COLLECTION_NOT_FOUND");
  EXPECT_EQ(ReadOutcome(answer.results(2).error()).field, "queries[2].item.collection");
  EXPECT_EQ(ReadOutcome(answer.results(3).error()).reason, "DIMENSION_MISMATCH");
  std::vector<std::string> names;
  for (const v1::ItemSnapshot& of_items : answer.receipt().item_snapshots()) {
    names.push_back(of_items.collection());
  }
  EXPECT_THAT(names, ElementsAre("cvs", "wide"));
}

TEST_F(OpenItemsOfCollectionsTest, AreHiddenByTheRequestsRequiredFilterToo) {
  v1::SearchRequest request = ByItem("cvs", "cv-2");
  request.mutable_options()->set_required_filter("tenant = \"acme\"");
  EXPECT_THAT(Search(client_, request).results(0).hits(), SizeIs(20));
  SetItem("cvs", "cv-3", *request.mutable_queries(0));
  EXPECT_EQ(Refusal(client_, request).message, "no item \"cv-3\" in cvs");
  request.mutable_options()->set_required_filter("job_only = 1");
  const Outcome unfit = Refusal(client_, request);
  EXPECT_EQ(unfit.reason, "INVALID_FILTER");
  EXPECT_EQ(unfit.field, "options.required_filter");
  EXPECT_THAT(unfit.message, HasSubstr("options.required_filter also applies to cvs"));
}

TEST_F(OpenItemsOfCollectionsTest, AreOfALimitedNumberOfCollections) {
  const FilmsServer server([this](app::Config& config) {
    folders_.Serve(config);
    config.limits.item_collections_per_call_max = 1;
  });
  v1::SearchRequest request = ByItem("cvs", "cv-1");
  SetItem("cvs", "cv-2", *request.add_queries());
  SetItem("jobs", "job-1", *request.add_queries());
  EXPECT_THAT(Search(server.NewClient(), request).results(), SizeIs(3));
  SetItem("wide", "wide-1", *request.add_queries());
  const Outcome refused = Refusal(server.NewClient(), request);
  EXPECT_EQ(refused.reason, "INVALID_FIELD");
  EXPECT_EQ(refused.field, "queries");
  EXPECT_THAT(refused.message, HasSubstr("items of more than 1 other collection"));
}

TEST_F(ItemsOfCollectionsTest, AreHiddenByTheCallersRights) {
  const AccessServer server(
      {AccessServer::Entry("all", "read"),
       AccessServer::Entry("jobs-only", "read", R"("collections": ["jobs"])"),
       AccessServer::Entry("acme", "read", R"("required_filter": "tenant = \"acme\"")")},
      AccessServer::Encryption::kNone, [this](app::Config& config) { folders_.Serve(config); });
  const v1::SearchRequest of_acme = ByItem("cvs", "cv-2");
  const v1::SearchRequest of_beta = ByItem("cvs", "cv-3");
  const v1::SearchRequest of_nobody = ByItem("cvs", "cv-9999");

  const Client all = server.NewClient("all");
  ExpectSameResults(Search(all, of_beta), Search(all, of_beta));
  const Outcome refused = Refusal(server.NewClient("jobs-only"), of_acme);
  EXPECT_EQ(refused.reason, "PERMISSION_DENIED");
  EXPECT_EQ(refused.field, "queries[0].item.collection");
  EXPECT_EQ(refused.message, "jobs-only may not use the collection \"cvs\"; it may use jobs");

  const Client acme = server.NewClient("acme");
  const v1::SearchResponse answer = Search(acme, of_acme);
  ASSERT_THAT(answer.results(0).hits(), SizeIs(20));
  for (const v1::Hit& hit : answer.results(0).hits()) {
    EXPECT_EQ(hit.payload().at("tenant").string_value(), "acme");
  }
  // Answered like an item that nobody has.
  const Outcome hidden = Refusal(acme, of_beta);
  EXPECT_EQ(hidden.reason, "ITEM_NOT_FOUND");
  EXPECT_EQ(hidden.message, "no item \"cv-3\" in cvs");
  EXPECT_EQ(Refusal(acme, of_nobody).message, "no item \"cv-9999\" in cvs");
  for (const bool positive : {true, false}) {
    v1::SearchRequest example = InJobs();
    v1::Examples& examples = *example.add_queries()->mutable_examples();
    examples.set_strategy(v1::Examples::STRATEGY_BEST_SCORE);
    SetItem("cvs", "cv-3", positive ? *examples.add_positive() : *examples.add_negative());
    EXPECT_EQ(Refusal(acme, example).reason, "ITEM_NOT_FOUND");
  }
  // A caller of some rows whose filter does not fit the other collection.
  server.WriteAccess({AccessServer::Entry("acme", "read", R"("required_filter": "job_only = 1")")});
  EXPECT_TRUE(
      base::AwaitTrue([&] { return Refusal(acme, of_acme).reason == "PERMISSION_DENIED"; }));
  EXPECT_EQ(Refusal(acme, of_acme).field, "queries[0].item.collection");
}

}  // namespace
}  // namespace simile::integration
