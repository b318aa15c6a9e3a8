#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace simile {

// A certificate with its private key, both PEM.
struct CertificatePair {
  std::string certificate;
  std::string key;
};

// What a certificate is for.
struct CertificateOptions {
  std::string common_name = "localhost";
  std::string alternative_names = "DNS:localhost,IP:127.0.0.1";  // as OpenSSL's subjectAltName
  std::chrono::seconds begins_in{-60};                           // from now
  std::chrono::seconds ends_in{std::chrono::hours(24 * 30)};
};

// An authority that signs certificates of elliptic curve keys, for tests.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& common_name = "Test authority");
  ~TestAuthority();

  const std::string& certificate() const;
  CertificatePair Issue(const CertificateOptions& options = {}) const;

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace simile
