#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

namespace simile::net {

// Where the server's certificate is, and whose clients it takes.
struct TlsFiles {
  std::filesystem::path certificate;  // PEM: the server's certificate, then those that signed it
  std::filesystem::path key;          // PEM, without a passphrase
  std::filesystem::path client_ca;    // PEM; empty: clients are not asked for certificates
  // Whether a client without a certificate is turned away; otherwise it may have a token.
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

}  // namespace simile::net
