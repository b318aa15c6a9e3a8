#include "app/reloads.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "app/access_file.h"
#include "service/calls/call.h"

namespace simile::app {
namespace {

using Paths = std::vector<std::filesystem::path>;

constexpr std::chrono::hours kWarnedBefore{14 * 24};
constexpr std::chrono::hours kWarningInterval{24};
constexpr std::chrono::minutes kReportInterval{10};

Paths ListTlsFiles(const net::Tls* tls) {
  if (tls == nullptr) return {};
  const net::TlsFiles& files = tls->files();
  Paths paths = {files.certificate, files.key};
  if (!files.client_ca.empty()) paths.push_back(files.client_ca);
  return paths;
}

// For a line of the log.
std::string FirstNames(std::span<const std::string> names) {
  constexpr std::size_t kNamesMax = 20;
  const auto first = names.first(std::min(names.size(), kNamesMax));
  return fmt::format("{}{}", fmt::join(first, ", "), first.size() < names.size() ? ", ..." : "");
}

}  // namespace

Reloads::Reloads(std::function<void()> reload, const observe::Logger& log)
    : reload_(std::move(reload)), log_(log) {}

template <class Step>
void Reloads::Try(Step&& step) const noexcept {
  const absl::Status made = service::Guarded(step);
  if (made.ok()) return;
  log_.Error("the reload on SIGHUP did not finish; another SIGHUP tries again",
             {{"error", std::string_view(made.message().data(), made.message().size())}});
}

void Reloads::Advance() {
  if (running_ && running_->done()) running_.reset();
  if (running_ || !is_requested_) return;
  is_requested_ = false;
  Try([this] { running_.emplace([this] { Try(reload_); }); });
}

AccessReload::AccessReload(std::filesystem::path access_file, std::shared_ptr<net::Tls> tls,
                           service::AccessControl& access, const Clock& clock,
                           const observe::Logger& log, observe::AuditLog& audit)
    : access_file_(std::move(access_file)),
      tls_(std::move(tls)),
      access_(access),
      clock_(clock),
      log_(log),
      audit_(audit),
      watched_access_{"access file", "refused: the former one stays in force",
                      access_file_.empty() ? Paths{} : Paths{access_file_}},
      watched_certificates_{"certificates", "refused: the former ones stay in use",
                            ListTlsFiles(tls_.get())},
      next_warning_(clock.Now()),
      next_line_end_warning_(clock.Now()) {}

AccessReload::Stamps AccessReload::ReadStamps(const Paths& files) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  Stamps stamps;
  for (const std::filesystem::path& file : files) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) {
      stamps.emplace_back();
      continue;
    }
    stamps.push_back({status.st_ino, status.st_size,
                      status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec});
  }
  return stamps;
}

void AccessReload::Look() {
  Look(watched_access_, [this] { return ReloadAccessFile(); });
  Look(watched_certificates_, [this] { return ReloadCertificates(); });
  WarnOfExpiry();
  WarnOfLineEnds();
}

// The stamps are taken before the content, so that a change in between is seen the next time.
void AccessReload::Look(Watched& watched, absl::FunctionRef<absl::Status()> reload) {
  if (watched.files.empty()) return;
  Stamps now = ReadStamps(watched.files);
  if (now != watched.stamps) {
    watched.is_in_use = false;
    watched.next_report = clock_.Now();
    watched.stamps = std::move(now);
  }
  if (watched.is_in_use) return;
  const absl::Status status = reload();
  watched.is_in_use = status.ok();
  if (status.ok() || clock_.Now() < watched.next_report) return;
  watched.next_report = clock_.Now() + kReportInterval;
  log_.Error("audit", {{"change", watched.name},
                       {"result", watched.if_refused},
                       {"error", std::string(status.message())}});
}

absl::Status AccessReload::ReloadAccessFile() {
  auto policy = ReadAccessFile(access_file_);
  if (!policy.ok()) return policy.status();
  const std::size_t count = (*policy)->principals().size();
  access_.SetPolicy(*policy);
  audit_.Write({{"change", watched_access_.name}, {"result", "done"}, {"principals", count}});
  WarnOfEndedAccess(**policy);
  return absl::OkStatus();
}

absl::Status AccessReload::ReloadCertificates() {
  const absl::StatusOr<bool> changed = tls_->Reload();
  if (!changed.ok()) return changed.status();
  if (!*changed) return absl::OkStatus();
  audit_.Write({{"change", watched_certificates_.name},
                {"result", "done"},
                {"subject", tls_->content().subject}});
  next_warning_ = clock_.Now();
  return absl::OkStatus();
}

void AccessReload::WarnOfExpiry() {
  if (tls_ == nullptr || clock_.Now() < next_warning_) return;
  next_warning_ = clock_.Now() + kWarningInterval;
  const auto left = tls_->content().expires_at - clock_.WallNow();
  if (left > kWarnedBefore) return;
  log_.Warn(
      "the server's certificate expires soon: put a new one in its place, which takes effect "
      "at once",
      {{"file", tls_->files().certificate.string()},
       {"hours_left", std::chrono::duration_cast<std::chrono::hours>(left).count()}});
}

void AccessReload::WarnOfEndedAccess(const service::AccessPolicy& policy) const {
  std::vector<std::string> ended;
  for (const service::PrincipalPtr& principal : policy.principals()) {
    if (principal->expires_at && clock_.WallNow() >= *principal->expires_at) {
      ended.push_back(principal->name);
    }
  }
  if (ended.empty()) return;
  log_.Warn("the access of these principals has ended: give them another `expires`, or remove them",
            {{"file", access_file_.string()},
             {"count", ended.size()},
             {"principals", FirstNames(ended)}});
}

void AccessReload::WarnOfLineEnds() {
  if (clock_.Now() < next_line_end_warning_) return;
  const std::vector<std::string> names = access_.RemoveNamesWithLineEnd();
  if (names.empty()) return;
  next_line_end_warning_ = clock_.Now() + kReportInterval;
  log_.Warn(
      "a token was refused whose hash in the access file was made with a line end behind the "
      "token: make the hash by `printf %s TOKEN | sha256sum`",
      {{"file", access_file_.string()},
       {"count", names.size()},
       {"principals", FirstNames(names)}});
}

}  // namespace simile::app
