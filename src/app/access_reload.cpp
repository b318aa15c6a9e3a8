#include "app/access_reload.h"

#include <sys/stat.h>

#include <chrono>
#include <string>
#include <utility>

#include "app/access_file.h"

namespace simile::app {
namespace {

using Paths = std::vector<std::filesystem::path>;

constexpr std::chrono::hours kWarnedBefore{14 * 24};
constexpr std::chrono::hours kWarningInterval{24};

Paths FilesOf(const net::Tls* tls) {
  if (tls == nullptr) return {};
  const net::TlsFiles& files = tls->files();
  Paths paths = {files.certificate, files.key};
  if (!files.client_ca.empty()) paths.push_back(files.client_ca);
  return paths;
}

}  // namespace

AccessReload::AccessReload(std::filesystem::path access_file, std::shared_ptr<net::Tls> tls,
                           service::AccessControl& access, const Clock& clock,
                           const observe::Logger& log)
    : access_file_(std::move(access_file)),
      tls_(std::move(tls)),
      access_(access),
      clock_(clock),
      log_(log),
      access_files_(access_file_.empty() ? Paths{} : Paths{access_file_}),
      tls_files_(FilesOf(tls_.get())),
      access_stamps_(StampsOf(access_files_)),
      tls_stamps_(StampsOf(tls_files_)),
      next_warning_(clock.Now()) {}

AccessReload::Stamps AccessReload::StampsOf(const Paths& files) {
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

// The stamps are taken before the content, so that a change in between is seen the next time.
void AccessReload::Look() {
  if (Stamps now = StampsOf(access_files_); now != access_stamps_) {
    access_stamps_ = std::move(now);
    ReloadAccessFile();
  }
  if (Stamps now = StampsOf(tls_files_); now != tls_stamps_) {
    tls_stamps_ = std::move(now);
    ReloadCertificates();
  }
  WarnOfExpiry();
}

void AccessReload::ReloadAccessFile() {
  auto policy = ReadAccessFile(access_file_);
  if (!policy.ok()) {
    log_.Error("audit", {{"change", "access file"},
                         {"result", "refused: the former one stays in force"},
                         {"error", std::string(policy.status().message())}});
    return;
  }
  const std::size_t count = (*policy)->principals().size();
  access_.SetPolicy(*std::move(policy));
  log_.Info("audit", {{"change", "access file"}, {"result", "done"}, {"principals", count}});
}

void AccessReload::ReloadCertificates() {
  const absl::StatusOr<bool> changed = tls_->Reload();
  if (!changed.ok()) {
    log_.Error("audit", {{"change", "certificates"},
                         {"result", "refused: the former ones stay in use"},
                         {"error", std::string(changed.status().message())}});
    return;
  }
  if (!*changed) return;
  log_.Info("audit",
            {{"change", "certificates"}, {"result", "done"}, {"subject", tls_->content().subject}});
  next_warning_ = clock_.Now();
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

}  // namespace simile::app
