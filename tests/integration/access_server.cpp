#include "integration/access_server.h"

#include <filesystem>
#include <memory>

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include "service/access/access_policy.h"

namespace simile::integration {

AccessServer::AccessServer(const std::vector<std::string>& principals, Encryption encryption,
                           const FilmsServer::Change& change)
    : encryption_(encryption) {
  WriteAccess(principals);
  WriteCertificate(authority_.Issue());
  WriteClientAuthorities(authority_.certificate());
  films_ = std::make_unique<FilmsServer>([&](app::Config& config) {
    config.access_file = folder_.path() / "access.json";
    if (encryption != Encryption::kNone) {
      config.tls.certificate = folder_.path() / "server.pem";
      config.tls.key = folder_.path() / "server.key";
    }
    if (encryption == Encryption::kClientsMay || encryption == Encryption::kClientsMust) {
      config.tls.client_ca = folder_.path() / "client_ca.pem";
      config.tls.client_certificates_required = encryption == Encryption::kClientsMust;
    }
    if (change) change(config);
  });
}

std::string AccessServer::Entry(const std::string& name, const std::string& role,
                                const std::string& members) {
  const service::TokenHash hash = service::HashToken(MakeToken(name));
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
  return fmt::format(R"({{"name": "{}", "role": "{}", "token_sha256": "{}"{}{}}})", name, role, hex,
                     members.empty() ? "" : ", ", members);
}

Client AccessServer::NewClient(const std::string& name) const {
  cli::ClientSecurity security = Trusting();
  if (!name.empty()) security.token = MakeToken(name);
  return NewClient(security);
}

Client AccessServer::NewClient(const cli::ClientSecurity& security) const {
  return Client(films_->app().address(), security);
}

cli::ClientSecurity AccessServer::Trusting() const {
  cli::ClientSecurity security;
  security.encrypted = encryption_ != Encryption::kNone;
  security.ca = authority_.certificate();
  return security;
}

void AccessServer::WriteAccess(const std::vector<std::string>& principals) const {
  WriteWhole("access.json", fmt::format(R"({{"principals": [{}]}})", fmt::join(principals, ", ")));
}

// The pair is complete only after the second file: the server must keep the former pair in between.
void AccessServer::WriteCertificate(const CertificatePair& pair) const {
  WriteWhole("server.pem", pair.certificate);
  WriteWhole("server.key", pair.key);
}

void AccessServer::WriteClientAuthorities(const std::string& certificates) const {
  WriteWhole("client_ca.pem", certificates);
}

void AccessServer::WriteWhole(const std::string& name, const std::string& text) const {
  folder_.Write(name + ".new", text);
  std::filesystem::rename(folder_.path() / (name + ".new"), folder_.path() / name);
}

}  // namespace simile::integration
