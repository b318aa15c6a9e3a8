#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <vector>

#include "net/tls.h"
#include "observe/log.h"
#include "service/access/access_control.h"
#include "simile/clock.h"

namespace simile::app {

// Takes what changed in the access file and the certificates into use while the server runs. A file
// that is not valid changes nothing and is reported once. Not thread-safe.
class AccessReload {
 public:
  //   access_file  empty for none
  //   tls          null for none
  //   access, clock, log  borrowed
  AccessReload(std::filesystem::path access_file, std::shared_ptr<net::Tls> tls,
               service::AccessControl& access, const Clock& clock, const observe::Logger& log);

  // Looks whether files changed. To be called about once a second: a few system calls.
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

  static Stamps StampsOf(const std::vector<std::filesystem::path>& files);
  void ReloadAccessFile();
  void ReloadCertificates();
  void WarnOfExpiry();

  const std::filesystem::path access_file_;
  const std::shared_ptr<net::Tls> tls_;
  service::AccessControl& access_;
  const Clock& clock_;
  const observe::Logger& log_;
  const std::vector<std::filesystem::path> access_files_;  // none or one
  const std::vector<std::filesystem::path> tls_files_;
  Stamps access_stamps_;
  Stamps tls_stamps_;
  Clock::TimePoint next_warning_;
};

}  // namespace simile::app
