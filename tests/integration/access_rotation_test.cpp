// New tokens and certificates under load.
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/await_true.h"
#include "integration/access_server.h"

namespace simile::integration {
namespace {

using absl::StatusCode;
using Encryption = AccessServer::Encryption;

StatusCode SearchOnce(const Client& client) {
  v1::SearchResponse response;
  return client.Search(ToyStory(), response).code;
}

// Searches over and over until it is told to end; counts failures.
class Load {
 public:
  explicit Load(std::function<StatusCode()> search)
      : thread_([this, search = std::move(search)] {
          while (!ends_) (search() == StatusCode::kOk ? answered_ : failed_)++;
        }) {}
  // Over the connections of one client.
  explicit Load(Client client)
      : Load([client = std::make_shared<const Client>(std::move(client))] {
          return SearchOnce(*client);
        }) {}
  // Each search by a client that connects for it and leaves.
  Load(const AccessServer& server, cli::ClientSecurity security)
      : Load([&server, security = std::move(security)] {
          return SearchOnce(server.NewClient(security));
        }) {}
  ~Load() { End(); }

  void End() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int answered() const { return answered_; }
  int failed() const { return failed_; }

 private:
  std::atomic<bool> ends_ = false;
  std::atomic<int> answered_ = 0;
  std::atomic<int> failed_ = 0;
  std::thread thread_;
};

// Calls until it ends as expected. The server looks at its files once a second.
void Await(const std::function<bool()>& happened) { EXPECT_TRUE(base::AwaitTrue(happened)); }

TEST(AccessRotationTest, TakesANewTokenWhileTheOldOneStillWorks) {
  const std::string old_entry = AccessServer::Entry("old", "read");
  const std::string new_entry = AccessServer::Entry("new", "read");
  AccessServer server({old_entry});
  const Client new_client = server.NewClient("new");
  EXPECT_EQ(SearchOnce(new_client), StatusCode::kUnauthenticated);
  Load old_load(server.NewClient("old"));
  server.WriteAccess({old_entry, new_entry});
  Await([&] { return SearchOnce(new_client) == StatusCode::kOk; });
  Load new_load(server.NewClient("new"));
  // A file that is wrong changes nothing.
  server.WriteAccess({"{}"});
  const int answered = new_load.answered();
  Await([&] { return new_load.answered() > answered + 500; });
  old_load.End();
  EXPECT_EQ(old_load.failed(), 0);
  EXPECT_GT(old_load.answered(), 0);
  server.WriteAccess({new_entry});
  const Client old_client = server.NewClient("old");
  Await([&] { return SearchOnce(old_client) == StatusCode::kUnauthenticated; });
  new_load.End();
  EXPECT_EQ(new_load.failed(), 0);
}

cli::ClientSecurity RankerTrusting(const TestAuthority& authority) {
  cli::ClientSecurity security;
  security.encrypted = true;
  security.ca = authority.certificate();
  security.token = AccessServer::MakeToken("ranker");
  return security;
}

TEST(AccessRotationTest, TakesANewCertificateWithoutBreakingConnections) {
  AccessServer server({AccessServer::Entry("ranker", "read")}, Encryption::kServerOnly);
  const TestAuthority next("Next authority");
  const cli::ClientSecurity trusts_next = RankerTrusting(next);
  const cli::ClientSecurity trusts_old = RankerTrusting(server.authority());
  cli::ClientSecurity trusts_both = trusts_old;
  trusts_both.ca += next.certificate();
  EXPECT_EQ(server.NewClient(trusts_next).CheckHealth(""), Health::kUnreachable);
  Load load(server.NewClient("ranker"));
  Load newcomers(server, trusts_both);
  Await([&] { return load.answered() > 100 && newcomers.answered() > 10; });
  server.WriteCertificate(next.Issue());
  Await([&] { return server.NewClient(trusts_next).CheckHealth("") == Health::kServing; });
  const int answered = load.answered();
  const int came = newcomers.answered();
  Await([&] { return load.answered() > answered + 100 && newcomers.answered() > came + 10; });
  load.End();
  newcomers.End();
  EXPECT_EQ(load.failed(), 0);
  EXPECT_EQ(newcomers.failed(), 0);
  EXPECT_EQ(SearchOnce(server.NewClient(trusts_next)), StatusCode::kOk);
  EXPECT_EQ(server.NewClient(trusts_old).CheckHealth(""), Health::kUnreachable);
  std::printf("%d calls of a lasting connection and %d new connections, no failure\n",
              load.answered(), newcomers.answered());
}

// The usual order: first the server trusts both authorities, then clients change their
// certificates, then the server trusts the new authority alone.
TEST(AccessRotationTest, TakesANewAuthorityOfClientsWithoutRefusingAny) {
  AccessServer server({R"({"name": "ranker", "role": "read", "certificates": ["ranker"]})"},
                      Encryption::kClientsMust);
  const TestAuthority next("Next authority");
  const auto certified = [&](const TestAuthority& authority) {
    cli::ClientSecurity security = server.Trusting();
    const CertificatePair pair = authority.Issue({.common_name = "ranker"});
    security.certificate = pair.certificate;
    security.key = pair.key;
    return security;
  };
  const cli::ClientSecurity old_client = certified(server.authority());
  const cli::ClientSecurity new_client = certified(next);
  EXPECT_EQ(server.NewClient(new_client).CheckHealth(""), Health::kUnreachable);
  Load load(server.NewClient(old_client));
  Load old_newcomers(server, old_client);
  server.WriteClientAuthorities(server.authority().certificate() + next.certificate());
  Await([&] { return server.NewClient(new_client).CheckHealth("") == Health::kServing; });
  Load new_newcomers(server, new_client);
  Await([&] { return old_newcomers.answered() > 10 && new_newcomers.answered() > 10; });
  old_newcomers.End();
  server.WriteClientAuthorities(next.certificate());
  Await([&] { return server.NewClient(old_client).CheckHealth("") == Health::kUnreachable; });
  const int answered = load.answered();
  const int came = new_newcomers.answered();
  Await([&] { return load.answered() > answered + 100 && new_newcomers.answered() > came + 10; });
  load.End();
  new_newcomers.End();
  EXPECT_EQ(load.failed(), 0) << "a connection that exists goes on";
  EXPECT_EQ(old_newcomers.failed(), 0);
  EXPECT_EQ(new_newcomers.failed(), 0);
}

}  // namespace
}  // namespace simile::integration
