#include "service/changes/change_audit.h"

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"

namespace simile::service {
namespace {

using ::testing::HasSubstr;

// A call that somebody made.
class MadeCall final : public Call {
 public:
  explicit MadeCall(Caller caller) : access_(std::move(caller)) {}

  std::string_view method() const override { return "simile.v1.CollectionService/Reload"; }
  std::string_view request_id() const override { return "r-1"; }
  Clock::TimePoint arrived_at() const override { return {}; }
  std::optional<Clock::TimePoint> deadline() const override { return std::nullopt; }
  std::stop_token cancelled() const override { return {}; }
  CallAccess& access() override { return access_; }
  std::string_view peer() const override { return "ipv4:192.0.2.7:4711"; }
  void SetReplyLimit(std::uint64_t /*bytes_max*/, std::string_view /*remedy*/) override {}
  void Finish(const absl::Status& /*status*/) override {}
  void FinishWith(const Reply& /*reply*/) override {}

 private:
  CallAccess access_;
};

Caller Loader() {
  auto principal = std::make_shared<Principal>();
  principal->name = "loader";
  Caller caller;
  caller.principal = std::move(principal);
  caller.use = std::make_shared<PrincipalUse>();
  return caller;
}

class ChangeAuditTest : public ::testing::Test {
 protected:
  std::ostringstream written_;
  int Count(const std::string& text) const {
    int count = 0;
    const std::string written = written_.str();
    for (auto at = written.find(text); at != std::string::npos; at = written.find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  // The log drops lines that are no errors; the audit is written all the same.
  const observe::Logger log_{{observe::LogFormat::kText, observe::LogLevel::kError, &written_}};
  engine::FakeClock clock_;
  observe::AuditLog audit_{log_, clock_};
};

TEST_F(ChangeAuditTest, SaysWhoChangedWhatAndHowItEnded) {
  MadeCall call(Loader());
  const ChangeAudit audit(audit_, call, "films");
  audit.Ended(absl::OkStatus());
  audit.Ended(base::Error(base::ErrorReason::kDoesNotFit, "too large"));
  log_.Flush();
  EXPECT_THAT(written_.str(),
              HasSubstr("info audit rpc=simile.v1.CollectionService/Reload principal=loader "
                        "peer=ipv4:192.0.2.7:4711 request_id=r-1 result=done collection=films\n"));
  EXPECT_THAT(written_.str(), HasSubstr(" request_id=r-1 result=DOES_NOT_FIT collection=films\n"));
}

TEST_F(ChangeAuditTest, HasTheTextOfAnErrorThatTheReplyLeavesOut) {
  MadeCall call(Loader());
  ChangeAudit(audit_, call, "films")
      .Ended(base::Error(base::ErrorReason::kInvalidFiles, "row 258 is twice there"),
             ChangeAudit::Text::kWritten);
  log_.Flush();
  EXPECT_THAT(written_.str(), HasSubstr(" request_id=r-1 result=INVALID_FILES collection=films "
                                        "error=\"row 258 is twice there\"\n"));
}

TEST_F(ChangeAuditTest, SaysSoOfACallThatWasRefusedUnread) {
  MadeCall call({});
  AuditRefusal(audit_, call, base::Error(base::ErrorReason::kUnauthenticated, "no token"));
  log_.Flush();
  EXPECT_THAT(written_.str(), HasSubstr(" principal=anyone peer=ipv4:192.0.2.7:4711 "
                                        "request_id=r-1 result=UNAUTHENTICATED\n"));
}

TEST_F(ChangeAuditTest, KeepsTheLinesOfChangesAmongAnyNumberOfRefusals) {
  MadeCall stranger({});
  const absl::Status refused = base::Error(base::ErrorReason::kUnauthenticated, "no token");
  for (int call = 0; call < 1'000; ++call) AuditRefusal(audit_, stranger, refused);
  MadeCall call(Loader());
  for (int change = 0; change < 20; ++change) {
    ChangeAudit(audit_, call, "films").Ended(absl::OkStatus());
  }
  log_.Flush();
  EXPECT_EQ(Count(" result=UNAUTHENTICATED"), 10);
  EXPECT_EQ(Count(" result=done collection=films\n"), 20);
  audit_.ReportLeftOut();
  EXPECT_EQ(Count(" without an audit line each reason=UNAUTHENTICATED requests=990\n"), 1);
}

}  // namespace
}  // namespace simile::service
