#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "net/pem.h"

namespace simile::net {
namespace {

// Of TLS 1.2. All of TLS 1.3 encrypt and authenticate at once.
constexpr char kCiphers[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:"
    "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305";
constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};  // as ALPN writes it

// False when OpenSSL refuses some of it.
bool UseCertificate(SSL_CTX* context, const TlsContent& content) {
  const Bio bio = BioOf(content.certificate);
  const Certificate own = NextCertificate(bio.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (Certificate signer = NextCertificate(bio.get())) {
    if (SSL_CTX_add0_chain_cert(context, signer.get()) != 1) return false;
    static_cast<void>(signer.release());  // the context owns it
  }
  ERR_clear_error();  // the end of the text
  const Key key = KeyOf(content.key);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

bool AskForCertificates(SSL_CTX* context, const TlsContent& content, bool required) {
  const Bio bio = BioOf(content.client_ca);
  while (const Certificate authority = NextCertificate(bio.get())) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1) {
      return false;
    }
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return true;
}

int SelectHttp2(SSL* /*ssl*/, const unsigned char** selected, unsigned char* length,
                const unsigned char* offered, unsigned offered_bytes, void* /*data*/) {
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, length, kHttp2.data(), kHttp2.size(), offered, offered_bytes) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *selected = found;
  return SSL_TLSEXT_ERR_OK;
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> MakeContext(const TlsFiles& files,
                                                     const TlsContent& content) {
  std::shared_ptr<SSL_CTX> made(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  SSL_CTX* const context = made.get();
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                   SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  // A connection is kept for long. One that is resumed would skip the certificates of now.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // One call of the system reads many records.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, 64U << 10);
  SSL_CTX_set_alpn_select_cb(context, &SelectHttp2, nullptr);
  const bool is_usable = SSL_CTX_set_cipher_list(context, kCiphers) == 1 &&
                         UseCertificate(context, content) &&
                         (files.client_ca.empty() ||
                          AskForCertificates(context, content, files.client_certificates_required));
  if (is_usable) return made;
  std::array<char, 256> why{};
  ERR_error_string_n(ERR_get_error(), why.data(), why.size());
  ERR_clear_error();
  return absl::InvalidArgumentError(fmt::format(
      "{}: OpenSSL does not take the certificate and its key: {}; issue a new one with a key of "
      "ECDSA P-256, or of RSA with 2,048 bits or more",
      files.certificate.string(), why.data()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Tls>> Tls::Create(TlsFiles files, const Clock& clock) {
  const std::shared_ptr<Tls> tls(new Tls(std::move(files), clock));
  const auto read = tls->Reload();
  if (!read.ok()) return read.status();
  return tls;
}

absl::StatusOr<bool> Tls::Reload() {
  auto content = ReadTlsFiles(files_, clock_.WallNow());
  if (!content.ok()) return content.status();
  {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr && content->IsSameAs(content_)) return false;
  }
  auto context = MakeContext(files_, *content);
  if (!context.ok()) return context.status();
  const std::lock_guard lock(mutex_);
  content_ = *std::move(content);
  context_ = *std::move(context);
  return true;
}

TlsContent Tls::content() const {
  const std::lock_guard lock(mutex_);
  return content_;
}

std::shared_ptr<SSL_CTX> Tls::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

}  // namespace simile::net
