#pragma once

#include <openssl/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "simile/clock.h"

namespace simile::net {

// The files of the server's certificate, and of the authorities that sign its clients'
// certificates.
struct TlsFiles {
  std::filesystem::path certificate;  // PEM: the server's certificate, then its issuers'
  std::filesystem::path key;          // PEM, without a passphrase
  std::filesystem::path client_ca;    // PEM; empty: clients are not asked for certificates
  // Whether a client without a certificate is refused. Otherwise it may send a token.
  bool client_certificates_required = true;

  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

// The files' content, checked.
struct TlsContent {
  std::string certificate;
  std::string key;
  std::string client_ca;
  std::string subject;                               // "CN=search.example.org"
  std::chrono::system_clock::time_point expires_at;  // of the server's certificate

  bool IsSameAs(const TlsContent& other) const {
    return certificate == other.certificate && key == other.key && client_ca == other.client_ca;
  }
};

// Reads the files, and checks what would fail in every handshake: that they are PEM, that the key
// is the certificate's, that the certificate is valid at `now`, and that the authorities are
// certificates. Reads at most 1 MiB of each.
// Errors: kInvalidArgument, which names the file and what would be right.
absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files,
                                        std::chrono::system_clock::time_point now);

// The server's side of TLS by OpenSSL: versions 1.2 and 1.3 with ciphers that encrypt and
// authenticate at once. Certificates can be replaced while the server runs: each handshake takes
// the certificates that were read last, and open connections go on. Safe to use from any thread.
class Tls {
 public:
  // Errors: those of ReadTlsFiles; kInvalidArgument for what OpenSSL refuses of the files.
  static absl::StatusOr<std::shared_ptr<Tls>> Create(TlsFiles files, const Clock& clock);

  // Reads the files again. True when their content is new; new handshakes take it from now on.
  // After an error the former content stays.
  // Errors: those of Create.
  absl::StatusOr<bool> Reload();

  TlsContent content() const;
  const TlsFiles& files() const { return files_; }
  // The context for new connections, which keep it.
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
