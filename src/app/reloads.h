#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include "app/background_work.h"
#include "net/tls.h"
#include "observe/audit_log.h"
#include "observe/log.h"
#include "service/access/access_control.h"
#include "simile/clock.h"

namespace simile::app {

// Reloads on SIGHUP what changed on disk, on a thread of its own. A request during a reload starts
// another reload after it, since a folder may have changed after it was read. A reload that fails
// for lack of memory, a thread or a descriptor is logged.
class Reloads {
 public:
  //   reload  may throw
  //   log     borrowed
  Reloads(std::function<void()> reload, const observe::Logger& log);

  void Request() { is_requested_ = true; }
  // Begins a requested reload, and ends a reload that is done. To be called once everything is
  // loaded, after a request and when done_fd is readable.
  void Advance();
  int done_fd() const { return running_ ? running_->done_fd() : -1; }

 private:
  // Runs the step; logs why it failed.
  template <class Step>
  void Try(Step&& step) const noexcept;

  const std::function<void()> reload_;
  const observe::Logger& log_;
  bool is_requested_ = false;
  std::optional<BackgroundTask> running_;
};

// Takes a changed access file and changed certificates into use while the server runs. A file that
// is invalid, or cannot be read now, changes nothing. It is tried again at each look, and reported
// at once and then every ten minutes. Warns of likely mistakes in a valid file: an access that has
// ended, a hash that was made with a line end. Not thread-safe.
class AccessReload {
 public:
  //   access_file  empty for none
  //   tls          null for none
  //   access, clock, log, audit  borrowed
  AccessReload(std::filesystem::path access_file, std::shared_ptr<net::Tls> tls,
               service::AccessControl& access, const Clock& clock, const observe::Logger& log,
               observe::AuditLog& audit);

  // Reads the files that changed since they were last taken into use. Reads all files the first
  // time, because they may have changed after the server's start read them. To be called before the
  // first call is taken and then about once a second: a few system calls where nothing changed.
  void Look();

 private:
  // What tells one content of a file from another, without reading it.
  struct Stamp {
    std::uint64_t inode = 0;  // 0: there is no file
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Stamps = std::vector<Stamp>;
  // Files that are taken into use together.
  struct Watched {
    std::string_view name;        // in the log
    std::string_view if_refused;  // in the log
    std::vector<std::filesystem::path> files;
    Stamps stamps = {};
    bool is_in_use = false;  // the content with these stamps
    Clock::TimePoint next_report = {};
  };

  static Stamps ReadStamps(const std::vector<std::filesystem::path>& files);
  void Look(Watched& watched, absl::FunctionRef<absl::Status()> reload);
  absl::Status ReloadAccessFile();
  absl::Status ReloadCertificates();
  void WarnOfExpiry();
  void WarnOfEndedAccess(const service::AccessPolicy& policy) const;
  void WarnOfLineEnds();

  const std::filesystem::path access_file_;
  const std::shared_ptr<net::Tls> tls_;
  service::AccessControl& access_;
  const Clock& clock_;
  const observe::Logger& log_;
  observe::AuditLog& audit_;
  Watched watched_access_;
  Watched watched_certificates_;
  Clock::TimePoint next_warning_;
  Clock::TimePoint next_line_end_warning_;
};

}  // namespace simile::app
