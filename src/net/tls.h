#pragma once

#include <openssl/types.h>

#include <memory>
#include <mutex>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "net/tls_files.h"
#include "simile/clock.h"

namespace simile::net {

// The server's side of TLS by OpenSSL: versions 1.2 and 1.3 with ciphers that encrypt and
// authenticate at once. Certificates can be replaced while it serves: each handshake takes those
// that were read last, and connections that exist go on. Safe to use from any thread.
class Tls {
 public:
  // Errors: those of ReadTlsFiles; kInvalidArgument for what OpenSSL refuses of the files.
  static absl::StatusOr<std::shared_ptr<Tls>> Create(TlsFiles files, const Clock& clock);

  // Reads the files again. True when they hold something new, which new handshakes take from now
  // on. With an error the former content stays.
  // Errors: those of Create.
  absl::StatusOr<bool> Reload();

  TlsContent content() const;
  const TlsFiles& files() const { return files_; }
  // For new connections, which keep it.
  std::shared_ptr<SSL_CTX> context() const;

 private:
  Tls(TlsFiles files, const Clock& clock) : files_(std::move(files)), clock_(clock) {}

  const TlsFiles files_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards the members below
  TlsContent content_;
  std::shared_ptr<SSL_CTX> context_;
};

}  // namespace simile::net
