#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "net/tls_files.h"
#include "simile/clock.h"

namespace grpc {
class ServerCredentials;
}

namespace simile::net {

// The server's side of TLS: gRPC's own, which takes TLS 1.2 and 1.3 with ciphers that encrypt and
// authenticate at once. Certificates can be replaced while it serves: each handshake takes those
// that were read last, and connections that exist go on. Outlives the server. Safe to use from any
// thread.
class Tls : public std::enable_shared_from_this<Tls> {
 public:
  // Errors: those of ReadTlsFiles.
  static absl::StatusOr<std::shared_ptr<Tls>> Create(TlsFiles files, const Clock& clock);

  // Reads the files again. True when they hold something new, which new handshakes take from now
  // on. With an error the former content stays.
  // Errors: those of ReadTlsFiles.
  absl::StatusOr<bool> Reload();

  TlsContent content() const;
  const TlsFiles& files() const { return files_; }
  // For a server, which keeps this object.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

 private:
  friend class TlsCredentials;
  Tls(TlsFiles files, const Clock& clock, TlsContent content)
      : files_(std::move(files)), clock_(clock), content_(std::move(content)) {}

  const TlsFiles files_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards the members below
  TlsContent content_;
  std::uint64_t version_ = 1;  // of the content
};

}  // namespace simile::net
