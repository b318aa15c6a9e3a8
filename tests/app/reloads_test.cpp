#include "app/reloads.h"

#include <poll.h>

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <semaphore>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/certificates.h"
#include "files/scratch_folder.h"
#include "net/scarce_descriptors.h"

namespace simile::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Waits for the end of the reload under way, if there is one.
void AwaitEnd(Reloads& reloads) {
  pollfd watched{reloads.done_fd(), POLLIN, 0};
  if (watched.fd < 0) return;
  ASSERT_EQ(poll(&watched, 1, -1), 1);
  reloads.Advance();
}

class ReloadsTest : public testing::Test {
 protected:
  void Reload() {
    reloads_.Request();
    reloads_.Advance();
    AwaitEnd(reloads_);
    EXPECT_EQ(reloads_.done_fd(), -1);
  }

  std::ostringstream lines_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kError, &lines_}};
  int runs_ = 0;
  bool fails_ = false;
  Reloads reloads_{[this] {
                     ++runs_;
                     if (fails_) throw std::bad_alloc();
                   },
                   log_};
};

TEST_F(ReloadsTest, RunsOnceForEachRequest) {
  reloads_.Advance();
  EXPECT_EQ(reloads_.done_fd(), -1);
  Reload();
  Reload();
  EXPECT_EQ(runs_, 2);
  EXPECT_THAT(lines_.str(), IsEmpty());
}

TEST_F(ReloadsTest, ReloadsOnceMoreAfterRequestsDuringAReload) {
  std::counting_semaphore<> began(0);
  std::counting_semaphore<> may_end(0);
  int runs = 0;
  Reloads reloads(
      [&] {
        ++runs;
        began.release();
        may_end.acquire();
      },
      log_);
  reloads.Request();
  reloads.Advance();
  began.acquire();
  for (int i = 0; i < 2; ++i) {
    reloads.Request();
    reloads.Advance();
  }
  EXPECT_EQ(runs, 1);
  may_end.release(2);
  AwaitEnd(reloads);
  EXPECT_GE(reloads.done_fd(), 0);
  AwaitEnd(reloads);
  EXPECT_EQ(reloads.done_fd(), -1);
  EXPECT_EQ(runs, 2);
}

TEST_F(ReloadsTest, EndsOnlyTheReloadThatFindsNoMemory) {
  fails_ = true;
  Reload();
  EXPECT_THAT(lines_.str(), HasSubstr("the reload on SIGHUP did not finish"));
  fails_ = false;
  Reload();
  EXPECT_EQ(runs_, 2);
}

TEST_F(ReloadsTest, EndsOnlyTheReloadThatCannotBegin) {
  {
    const net::ScarceDescriptors none_left;
    Reload();
  }
  EXPECT_EQ(runs_, 0);
  EXPECT_THAT(lines_.str(), HasSubstr("Too many open files"));
  Reload();
  EXPECT_EQ(runs_, 1);
}

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Begins at the real time, from which certificates count, and is advanced by the test.
class MovedClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::hours(1)) + moved_; }
  std::chrono::system_clock::time_point WallNow() const override { return began_at_ + moved_; }
  void Advance(std::chrono::seconds by) { moved_ += by; }

 private:
  const std::chrono::system_clock::time_point began_at_ = std::chrono::system_clock::now();
  std::chrono::seconds moved_{0};
};

// Of one principal, whose token is `token`.
//   members  further ones: R"(, "expires": "2027-05-31")"
std::string Principals(const std::string& name, const std::string& members = "",
                       const std::string& token = "a token") {
  const service::TokenHash hash = service::HashToken(token);
  return fmt::format(
      R"({{"principals": [{{"name": "{}", "role": "read", "token_sha256": "{:02x}"{}}}]}})", name,
      fmt::join(hash, ""), members);
}

class AccessReloadTest : public testing::Test {
 protected:
  AccessReloadTest() { Certify({}); }

  void Certify(const CertificateOptions& options) {
    const CertificatePair pair = authority_.Issue(options);
    folder_.Write("server.pem", pair.certificate);
    folder_.Write("server.key", pair.key);
  }
  void Begin() {
    net::TlsFiles files;
    files.certificate = folder_.path() / "server.pem";
    files.key = folder_.path() / "server.key";
    auto tls = net::Tls::Create(std::move(files), clock_);
    ASSERT_TRUE(tls.ok()) << tls.status();
    reload_.emplace(folder_.path() / "access.json", *std::move(tls), access_, clock_, log_, audit_);
  }
  // What a look writes to the log.
  std::string Look() {
    written_.str("");
    reload_->Look();
    log_.Flush();
    return written_.str();
  }
  std::string NameInForce() const {
    return access_.policy() ? access_.policy()->principals().front()->name : "";
  }

  const ScratchFolder folder_;
  const TestAuthority authority_;
  MovedClock clock_;
  std::ostringstream written_;
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kInfo, &written_}};
  observe::AuditLog audit_{log_, clock_};
  service::AccessControl access_{clock_};
  std::optional<AccessReload> reload_;
};

TEST_F(AccessReloadTest, TakesWhatChangedBeforeItLookedFirst) {
  folder_.Write("access.json", Principals("former"));
  Begin();
  folder_.Write("access.json", Principals("latter"));
  EXPECT_THAT(Look(), HasSubstr("info audit change=\"access file\" result=done principals=1\n"));
  EXPECT_EQ(NameInForce(), "latter");
  EXPECT_EQ(Look(), "");
}

TEST_F(AccessReloadTest, TakesACertificateOnceItIsValid) {
  folder_.Write("access.json", Principals("reader"));
  Begin();
  Look();
  Certify({.begins_in = seconds(3'600)});
  EXPECT_THAT(Look(), AllOf(HasSubstr("error audit change=certificates"),
                            HasSubstr("the certificate is not valid before")));
  clock_.Advance(minutes(9));
  EXPECT_EQ(Look(), "") << "reported every ten minutes";
  clock_.Advance(minutes(1));
  EXPECT_THAT(Look(), HasSubstr("error audit change=certificates"));
  clock_.Advance(minutes(51));
  EXPECT_THAT(Look(),
              HasSubstr("info audit change=certificates result=done subject=\"CN=localhost\"\n"));
}

TEST_F(AccessReloadTest, WarnsOnceADayOfACertificateThatExpiresSoon) {
  folder_.Write("access.json", Principals("reader"));
  Certify({.ends_in = hours(24 * 14 + 12) + minutes(30)});
  Begin();
  EXPECT_THAT(Look(), testing::Not(HasSubstr("expires soon")));
  for (int day = 0; day < 2; ++day) {
    clock_.Advance(hours(24));
    const std::string left = fmt::format("hours_left={}\n", 24 * (13 - day) + 12);
    EXPECT_THAT(Look(), AllOf(HasSubstr("expires soon"), HasSubstr(left)));
    EXPECT_EQ(Look(), "");
  }
}

TEST_F(AccessReloadTest, NamesPrincipalsWhoseAccessHasEnded) {
  folder_.Write("access.json", Principals("former", R"(, "expires": "2001-05-31")"));
  Begin();
  EXPECT_THAT(Look(), AllOf(HasSubstr("warning the access of these principals has ended"),
                            HasSubstr("count=1 principals=former\n")));
  EXPECT_EQ(Look(), "") << "said when the file is read";
  folder_.Write("access.json", Principals("latter", R"(, "expires": "2201-05-31")"));
  EXPECT_THAT(Look(), testing::Not(HasSubstr("has ended")));
}

class LineEndTest : public AccessReloadTest {
 protected:
  void Refuse(const std::string& token) {
    const auto no_names = [] { return std::vector<std::string>(); };
    service::Caller caller;
    EXPECT_FALSE(access_
                     .Admit("simile.v1.SearchService/Search", service::Role::kRead,
                            {"Bearer " + token, false, no_names}, caller)
                     .ok());
  }
};

TEST_F(LineEndTest, NamesThePrincipalWhoseHashWasMadeWithOne) {
  for (const char* const line_end : {"\n", "\r\n"}) {
    folder_.Write("access.json", Principals("ranker", "", std::string("a token") + line_end));
    Begin();
    Look();
    Refuse("another token");
    EXPECT_EQ(Look(), "");
    Refuse("a token");
    EXPECT_THAT(Look(), AllOf(HasSubstr("made with a line end behind the token"),
                              HasSubstr("count=1 principals=ranker\n"),
                              testing::Not(HasSubstr("a token\n"))));
    Refuse("a token");
    clock_.Advance(minutes(9));
    EXPECT_EQ(Look(), "") << "said every ten minutes";
    clock_.Advance(minutes(1));
    EXPECT_THAT(Look(), HasSubstr("principals=ranker\n"));
    clock_.Advance(minutes(10));
    EXPECT_EQ(Look(), "") << "refused no more";
  }
}

}  // namespace
}  // namespace simile::app
