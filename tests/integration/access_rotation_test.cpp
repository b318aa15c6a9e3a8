// New tokens and certificates under load.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "integration/access_server.h"

namespace simile::integration {
namespace {

using absl::StatusCode;
using Encryption = AccessServer::Encryption;

// Searches over and over until it is told to end; counts failures.
class Load {
 public:
  explicit Load(Client client)
      : client_(std::move(client)), thread_([this] {
          while (!ends_) {
            v1::SearchResponse response;
            (client_.Search(ToyStory(), response).ok() ? answered_ : failed_)++;
          }
        }) {}
  ~Load() { End(); }

  void End() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int answered() const { return answered_; }
  int failed() const { return failed_; }

 private:
  const Client client_;
  std::atomic<bool> ends_ = false;
  std::atomic<int> answered_ = 0;
  std::atomic<int> failed_ = 0;
  std::thread thread_;
};

// Calls until it ends as expected. The server looks at its files once a second.
void Await(const std::function<bool()>& happened) {
  while (!happened()) std::this_thread::yield();
}

StatusCode SearchOnce(const Client& client) {
  v1::SearchResponse response;
  return client.Search(ToyStory(), response).code;
}

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

TEST(AccessRotationTest, TakesANewCertificateWithoutBreakingConnections) {
  AccessServer server({AccessServer::Entry("ranker", "read")}, Encryption::kServerOnly);
  const TestAuthority next("Next authority");
  cli::ClientSecurity trusts_next = server.Trusting();
  trusts_next.ca = next.certificate();
  trusts_next.token = AccessServer::TokenOf("ranker");
  EXPECT_EQ(server.NewClient(trusts_next).CheckHealth(""), Health::kUnreachable);
  Load load(server.NewClient("ranker"));
  Await([&] { return load.answered() > 100; });
  server.WriteCertificate(next.Issue());
  Await([&] { return server.NewClient(trusts_next).CheckHealth("") == Health::kServing; });
  const int answered = load.answered();
  Await([&] { return load.answered() > answered + 100; });
  load.End();
  EXPECT_EQ(load.failed(), 0);
  EXPECT_EQ(SearchOnce(server.NewClient(trusts_next)), StatusCode::kOk);
}

}  // namespace
}  // namespace simile::integration
