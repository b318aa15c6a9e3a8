#include "net/tls.h"

#include <utility>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>

namespace simile::net {
namespace {

grpc_ssl_client_certificate_request_type RequestOf(const TlsFiles& files) {
  if (files.client_ca.empty()) return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  return files.client_certificates_required
             ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
             : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
}

}  // namespace

// gRPC's C++ interface can load certificates once, or watch files and take a pair that does not
// fit; the C interface asks before each handshake.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(std::shared_ptr<Tls> tls) : tls_(std::move(tls)) {}

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(RequestOf(tls_->files()),
                                                                        &Fetch, this));
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  // gRPC serializes these calls.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    auto& credentials = *static_cast<TlsCredentials*>(self);
    Tls& tls = *credentials.tls_;
    const std::lock_guard lock(tls.mutex_);
    if (credentials.fetched_version_ == tls.version_) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair{tls.content_.key.c_str(),
                                          tls.content_.certificate.c_str()};
    // gRPC demands authorities even where it asks for no client certificates.
    const std::string& authorities =
        tls.content_.client_ca.empty() ? tls.content_.certificate : tls.content_.client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    credentials.fetched_version_ = tls.version_;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<Tls> tls_;
  std::uint64_t fetched_version_ = 0;  // guarded by the mutex of tls_
};

absl::StatusOr<std::shared_ptr<Tls>> Tls::Create(TlsFiles files, const Clock& clock) {
  auto content = ReadTlsFiles(files, clock.WallNow());
  if (!content.ok()) return content.status();
  return std::shared_ptr<Tls>(new Tls(std::move(files), clock, *std::move(content)));
}

absl::StatusOr<bool> Tls::Reload() {
  auto content = ReadTlsFiles(files_, clock_.WallNow());
  if (!content.ok()) return content.status();
  const std::lock_guard lock(mutex_);
  if (content->IsSameAs(content_)) return false;
  content_ = *std::move(content);
  ++version_;
  return true;
}

TlsContent Tls::content() const {
  const std::lock_guard lock(mutex_);
  return content_;
}

std::shared_ptr<grpc::ServerCredentials> Tls::Credentials() {
  return std::make_shared<TlsCredentials>(shared_from_this());
}

}  // namespace simile::net
