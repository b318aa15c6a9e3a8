// Who may call the real server, and what exists for them.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "integration/access_server.h"
#include "integration/raw_call.h"
#include "integration/server_process.h"

namespace simile::integration {
namespace {

using namespace std::chrono_literals;
using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Encryption = AccessServer::Encryption;

// How an empty call of any method ends, whatever kind of method it is.
grpc::StatusCode CallWithNothing(const std::string& address, const std::string& method,
                                 const std::string& token) {
  auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 30s);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(&tag);
  queue.Next(&tag, &ok);
  call->WriteLast(grpc::ByteBuffer(nullptr, 0), {}, &tag);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer answer;
  do {
    answer.Clear();
    call->Read(&answer, &tag);
    queue.Next(&tag, &ok);
  } while (ok);
  grpc::Status status;
  call->Finish(&status, &tag);
  queue.Next(&tag, &ok);
  return status.error_code();
}

// All methods of the wire contract: a new one that asks for no role fails here.
std::vector<std::string> ContractMethods() {
  std::vector<std::string> methods;
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  for (const char* name : {"simile.v1.SearchService", "simile.v1.CollectionService",
                           "simile.v1.LookupService", "simile.v1.AdminService"}) {
    const google::protobuf::ServiceDescriptor* const service = pool.FindServiceByName(name);
    if (service == nullptr) continue;
    for (int i = 0; i < service->method_count(); ++i) {
      methods.push_back("/" + service->full_name() + "/" + service->method(i)->name());
    }
  }
  return methods;
}

TEST(AccessTest, EveryMethodNeedsItsRole) {
  AccessServer server({AccessServer::Entry("reader", "read"),
                       AccessServer::Entry("writer", "write"),
                       AccessServer::Entry("admin", "admin")});
  const std::set<std::string> writes = {"LoadCollection", "ReloadCollection", "RollbackCollection",
                                        "UnloadCollection"};
  const std::set<std::string> administers = {"GetStats", "Diagnose"};
  const std::vector<std::string> methods = ContractMethods();
  ASSERT_GE(methods.size(), 15U);
  const std::string address = server.films().app().address();
  for (const std::string& method : methods) {
    const std::string name = method.substr(method.rfind('/') + 1);
    const int needed = administers.contains(name) ? 3 : writes.contains(name) ? 2 : 1;
    EXPECT_EQ(CallWithNothing(address, method, ""), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_EQ(CallWithNothing(address, method, "wrong"), grpc::StatusCode::UNAUTHENTICATED)
        << method;
    int role = 0;
    for (const char* caller : {"reader", "writer", "admin"}) {
      ++role;
      const grpc::StatusCode code =
          CallWithNothing(address, method, AccessServer::MakeToken(caller));
      EXPECT_EQ(code == grpc::StatusCode::PERMISSION_DENIED, role < needed) << method << caller;
      EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << method << caller;
    }
  }
  EXPECT_EQ(server.NewClient("").CheckHealth(""), Health::kServing);
  std::vector<std::string> services;
  EXPECT_EQ(server.NewClient("admin").ListServices(services).code, StatusCode::kUnimplemented);
}

TEST(AccessTest, ShowsOnlyTheCollectionsOfACaller) {
  AccessServer server({AccessServer::Entry("films-only", "write", R"("collections": ["films"])"),
                       AccessServer::Entry("books-only", "write", R"("collections": ["books"])")});
  const Client films = server.NewClient("films-only");
  const Client books = server.NewClient("books-only");
  v1::ListCollectionsResponse listed;
  ASSERT_TRUE(films.List(listed).ok());
  EXPECT_EQ(listed.collections_size(), 1);
  ASSERT_TRUE(books.List(listed).ok());
  EXPECT_EQ(listed.collections_size(), 0);
  v1::SearchResponse found;
  EXPECT_TRUE(films.Search(ToyStory(), found).ok());
  const Outcome refused = books.Search(ToyStory(), found);
  EXPECT_EQ(refused.code, StatusCode::kPermissionDenied);
  EXPECT_EQ(refused.reason, "PERMISSION_DENIED");
  EXPECT_EQ(refused.message, "books-only may not use the collection \"films\"; it may use books");
  v1::GetCollectionResponse got;
  EXPECT_EQ(books.Get("films", got).code, StatusCode::kPermissionDenied);
  ChangeAnswer answer;
  EXPECT_EQ(books.Reload("films", answer).code, StatusCode::kPermissionDenied);
  EXPECT_EQ(books.Unload("films").code, StatusCode::kPermissionDenied);
  v1::FetchRequest fetch;
  fetch.set_collection("films");
  fetch.add_ids("toy-story-1995");
  v1::FetchResponse fetched;
  EXPECT_EQ(books.Fetch(fetch, fetched).code, StatusCode::kPermissionDenied);
}

// A log that keeps nothing but errors keeps the audit.
TEST(AccessTest, WritesALineForEachChangeAndEachRefusedOne) {
  const ScratchFolder folder;
  folder.Write("access.json",
               fmt::format(R"({{"principals": [{}, {}]}})", AccessServer::Entry("loader", "write"),
                           AccessServer::Entry("reader", "read")));
  ServerProcess server({"--collection", std::string("films=") + kFilmsFolder, "--port", "0",
                        "--no-metrics", "--log-level", "error", "--access-file",
                        (folder.path() / "access.json").string()});
  const std::string address = server.AwaitListening();
  const auto client_of = [&](const std::string& name) {
    cli::ClientSecurity security;
    if (!name.empty()) security.token = AccessServer::MakeToken(name);
    return Client(address, security);
  };
  EXPECT_TRUE(server.AwaitOutput(" audit change=\"access file\" result=done principals=2\n"));
  ChangeAnswer answer;
  EXPECT_TRUE(client_of("loader").Reload("films", answer).ok());
  EXPECT_EQ(client_of("loader").Reload("books", answer).code, StatusCode::kNotFound);
  EXPECT_EQ(client_of("reader").Reload("films", answer).code, StatusCode::kPermissionDenied);
  EXPECT_EQ(client_of("").Unload("films").code, StatusCode::kUnauthenticated);
  const std::string head = "info audit rpc=simile.v1.CollectionService/";
  for (const char* end :
       {"result=done collection=films\n", "result=COLLECTION_NOT_FOUND collection=books\n",
        "result=PERMISSION_DENIED\n", "result=UNAUTHENTICATED\n"}) {
    EXPECT_TRUE(server.AwaitOutput(end)) << server.output();
  }
  const std::string lines = server.output();
  EXPECT_THAT(lines, HasSubstr(head + "ReloadCollection principal=loader peer=ipv4:127.0.0.1:"));
  EXPECT_THAT(lines, HasSubstr(head + "ReloadCollection principal=reader peer=ipv4:127.0.0.1:"));
  EXPECT_THAT(lines, HasSubstr(head + "UnloadCollection principal=anyone peer=ipv4:127.0.0.1:"));
  EXPECT_THAT(lines, testing::Not(HasSubstr("request failed")));
}

// Beyond its own limits a caller is refused, which is no fault of the server.
TEST(AccessTest, CountsCallsBeyondTheLimitsOfTheirCaller) {
  AccessServer server(
      {AccessServer::Entry("slow", "read", R"("limits": {"calls_per_second": 0.01})")},
      Encryption::kNone, [](app::Config& config) { config.metrics_enabled = true; });
  const Client client = server.NewClient("slow");
  v1::SearchResponse response;
  EXPECT_TRUE(client.Search(ToyStory(), response).ok());
  EXPECT_EQ(client.Search(ToyStory(), response).reason, "CALLER_LIMIT");
  EXPECT_EQ(client.Search(ToyStory(), response).reason, "CALLER_LIMIT");
  const std::string metrics = ScrapeMetrics(*server.films().app().metrics_port());
  EXPECT_EQ(MetricValue(metrics, R"(simile_rejected_total{reason="caller_limit"})"), 2);
}

// A folder may hold what the caller may not see.
TEST(AccessTest, LoadsForABoundCallerFromItsFoldersAlone) {
  const ScratchFolder root;
  CopyFilms(root.path() / "films");
  CopyFilms(root.path() / "books");
  AccessServer server({AccessServer::Entry("bound", "write", R"("collections": ["books"])"),
                       AccessServer::Entry("free", "write")},
                      Encryption::kNone,
                      [&](app::Config& config) { config.data_root = root.path(); });
  ChangeAnswer answer;
  const Outcome refused = server.NewClient("bound").Load("books", "films", answer);
  EXPECT_EQ(refused.code, StatusCode::kPermissionDenied);
  EXPECT_EQ(
      refused.message,
      "bound may use some collections only, so it may load \"books\" from the folder \"books\" "
      "and those inside, not from \"films\"");
  // The caller may not load it through a link of its own, either.
  std::filesystem::create_directory_symlink("../films", root.path() / "books" / "link");
  EXPECT_EQ(server.NewClient("bound").Load("books", "books/link", answer).code,
            StatusCode::kPermissionDenied);
  std::filesystem::remove(root.path() / "books" / "link");
  EXPECT_TRUE(server.NewClient("bound").Load("books", "books", answer).ok());
  EXPECT_TRUE(server.NewClient("free").Load("others", "films", answer).ok());
}

class RequiredFilterTest : public ::testing::Test {
 protected:
  static constexpr const char* kHidden = "breakout-1975";

  // Fields that the caller may not see are not in the answers of any query.
  void ExpectOnlyNew(const v1::SearchResponse& response) const {
    ASSERT_GT(response.results_size(), 0);
    for (const v1::SearchResult& result : response.results()) {
      EXPECT_GT(result.hits_size(), 0);
      for (const v1::Hit& hit : result.hits()) {
        EXPECT_GE(hit.payload().at("year").int_value(), 1990) << hit.id();
      }
    }
  }

  AccessServer server_{{AccessServer::Entry("new-films", "read",
                                            R"("required_filter": "year >= 1990", "users": "all")"),
                        AccessServer::Entry("all-films", "read")}};
  const Client client_ = server_.NewClient("new-films");
};

TEST_F(RequiredFilterTest, HidesRowsFromEveryKindOfQuery) {
  v1::SearchRequest request = ToyStory();
  request.mutable_options()->mutable_payload()->add_fields("year");
  v1::SearchResponse response;
  ASSERT_TRUE(client_.Search(request, response).ok());
  ExpectOnlyNew(response);
  request.mutable_options()->set_filter("year < 1992");
  ASSERT_TRUE(client_.Search(request, response).ok());
  ExpectOnlyNew(response);
  // Both required filters apply.
  request.mutable_options()->set_required_filter("year < 1992 OR year = 1995");
  request.mutable_options()->clear_filter();
  ASSERT_TRUE(client_.Search(request, response).ok());
  ExpectOnlyNew(response);
  for (const v1::Hit& hit : response.results(0).hits()) {
    const std::int64_t year = hit.payload().at("year").int_value();
    EXPECT_TRUE(year < 1992 || year == 1995) << year;
  }
  request.mutable_options()->clear_required_filter();
  auto& examples = *request.mutable_queries(0)->mutable_examples();
  examples.set_strategy(v1::Examples::STRATEGY_BEST_SCORE);
  examples.add_positive()->set_id("toy-story-1995");
  ASSERT_TRUE(client_.Search(request, response).ok());
  ExpectOnlyNew(response);
  request.mutable_queries(0)->set_user_id("user_00042");
  ASSERT_TRUE(client_.Search(request, response).ok());
  ExpectOnlyNew(response);
}

TEST_F(RequiredFilterTest, HiddenItemsDoNotExist) {
  v1::SearchRequest request = ToyStory();
  request.mutable_queries(0)->set_id(kHidden);
  v1::SearchResponse response;
  EXPECT_TRUE(server_.NewClient("all-films").Search(request, response).ok());
  const Outcome refused = client_.Search(request, response);
  request.mutable_queries(0)->set_id("no-such-film");
  const Outcome unknown = client_.Search(request, response);
  EXPECT_EQ(refused.code, StatusCode::kNotFound);
  EXPECT_EQ(refused.message, "no item \"breakout-1975\" in films");
  EXPECT_EQ(unknown.message, "no item \"no-such-film\" in films");
  v1::FetchRequest fetch;
  fetch.set_collection("films");
  fetch.add_ids(kHidden);
  v1::FetchResponse fetched;
  EXPECT_EQ(client_.Fetch(fetch, fetched).code, StatusCode::kNotFound);
  v1::LookupRequest lookup;
  lookup.set_collection("films");
  lookup.set_text("Breakout");
  v1::LookupResponse looked_up;
  ASSERT_TRUE(client_.Lookup(lookup, looked_up).ok());
  for (const auto& item : looked_up.matches()) EXPECT_NE(item.item().id(), kHidden);
  v1::DescribeFieldsRequest describe;
  describe.set_collection("films");
  v1::DescribeFieldsResponse described;
  ASSERT_TRUE(client_.DescribeFields(describe, described).ok());
  const auto year = std::ranges::find_if(
      described.fields(), [](const auto& field) { return field.field().name() == "year"; });
  ASSERT_NE(year, described.fields().end());
  EXPECT_GE(year->least().int_value(), 1990);
}

TEST(AccessTest, AFilterThatDoesNotFitShowsNothing) {
  AccessServer server(
      {AccessServer::Entry("ranker", "read", R"("required_filter": "tenant = 7")")});
  v1::SearchResponse response;
  const Outcome refused = server.NewClient("ranker").Search(ToyStory(), response);
  EXPECT_EQ(refused.code, StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message, HasSubstr("cannot be applied to films"));
}

TEST(TlsTest, RefusesClientsThatItDoesNotTrust) {
  const std::string loader = R"({"name": "loader", "role": "write", "certificates": ["loader"]})";
  AccessServer server({loader}, Encryption::kClientsMust);
  const auto health = [&](const cli::ClientSecurity& security) {
    return server.NewClient(security).CheckHealth("");
  };
  const auto with = [&](const CertificatePair& pair) {
    cli::ClientSecurity security = server.Trusting();
    security.certificate = pair.certificate;
    security.key = pair.key;
    return security;
  };
  const TestAuthority other("Another authority");
  const cli::ClientSecurity right = with(server.authority().Issue({.common_name = "loader"}));
  EXPECT_EQ(health(right), Health::kServing);
  EXPECT_EQ(health(server.Trusting()), Health::kUnreachable);  // no certificate
  EXPECT_EQ(health(with(other.Issue({.common_name = "loader"}))), Health::kUnreachable);
  EXPECT_EQ(health(with(server.authority().Issue(
                {.common_name = "loader", .begins_in = -2h, .ends_in = -1h}))),
            Health::kUnreachable);
  cli::ClientSecurity mistrusting = right;
  mistrusting.ca = other.certificate();
  EXPECT_EQ(health(mistrusting), Health::kUnreachable);
  EXPECT_EQ(health({}), Health::kUnreachable);  // not encrypted

  ChangeAnswer answer;
  EXPECT_TRUE(server.NewClient(right).Reload("films", answer).ok());
  v1::GetStatsResponse stats;
  EXPECT_EQ(server.NewClient(right).GetStats(stats).code, StatusCode::kPermissionDenied);
  const Client stranger =
      server.NewClient(with(server.authority().Issue({.common_name = "stranger"})));
  v1::SearchResponse response;
  const Outcome unknown = stranger.Search(ToyStory(), response);
  EXPECT_EQ(unknown.code, StatusCode::kUnauthenticated);
  EXPECT_THAT(unknown.message, HasSubstr("the server knows no caller by the name"));
}

TEST(TlsTest, TakesTokensBesideCertificates) {
  const std::string loader =
      R"({"name": "loader", "role": "write", "certificates": ["spiffe://test/loader"]})";
  AccessServer server({loader, AccessServer::Entry("ranker", "read")}, Encryption::kClientsMay);
  v1::SearchResponse response;
  EXPECT_TRUE(server.NewClient("ranker").Search(ToyStory(), response).ok());
  EXPECT_EQ(server.NewClient("").Search(ToyStory(), response).code, StatusCode::kUnauthenticated);
  const CertificatePair pair = server.authority().Issue(
      {.common_name = "x", .alternative_names = "DNS:loader.test,URI:spiffe://test/loader"});
  cli::ClientSecurity security = server.Trusting();
  security.certificate = pair.certificate;
  security.key = pair.key;
  ChangeAnswer answer;
  EXPECT_TRUE(server.NewClient(security).Reload("films", answer).ok());
}

}  // namespace
}  // namespace simile::integration
