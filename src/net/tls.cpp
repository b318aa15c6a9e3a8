#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <cstddef>
#include <ctime>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/atomic_file.h"

namespace simile::net {
namespace {

using WallTime = std::chrono::system_clock::time_point;

constexpr std::size_t kFileBytesMax = 1 << 20;

absl::Status Refuse(const std::filesystem::path& file, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", file.string(), why));
}

absl::StatusOr<std::string> ReadText(const std::filesystem::path& file) {
  auto text = base::ReadWholeFile(file, kFileBytesMax);
  if (!text.ok()) return Refuse(file, std::string(text.status().message()));
  if (text->empty()) return Refuse(file, "no such file, or an empty one");
  return text;
}

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;
using Key = std::unique_ptr<EVP_PKEY, FreePem>;

// The text must outlive it. Throws bad_alloc.
Bio MakeBio(std::string_view text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio == nullptr) throw std::bad_alloc();
  return bio;
}

// A passphrase is never asked for: the server may have no terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*data*/) { return -1; }

// The certificates in a text of PEM. None when the text has none, or a damaged one.
std::vector<Certificate> ParseCertificates(std::string_view text) {
  const Bio bio = MakeBio(text);
  std::vector<Certificate> found;
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)}) {
    found.push_back(std::move(next));
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) found.clear();
  ERR_clear_error();
  return found;
}

// Null for a damaged key, or a key with a passphrase.
Key ParseKey(std::string_view text) {
  Key key(PEM_read_bio_PrivateKey(MakeBio(text).get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return key;
}

WallTime ToWallTime(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

std::string FormatUtc(WallTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(time));
}

std::string FormatSubject(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

absl::Status CheckDates(const std::filesystem::path& file, const X509* certificate, WallTime now) {
  const WallTime begins = ToWallTime(X509_get0_notBefore(certificate));
  const WallTime ends = ToWallTime(X509_get0_notAfter(certificate));
  if (now > ends) {
    return Refuse(
        file, fmt::format("the certificate expired at {}; put a new one there", FormatUtc(ends)));
  }
  if (now >= begins) return absl::OkStatus();
  return Refuse(file, fmt::format("the certificate is not valid before {}; this machine's clock "
                                  "says {}",
                                  FormatUtc(begins), FormatUtc(now)));
}

// The ciphers of TLS 1.2. All ciphers of TLS 1.3 encrypt and authenticate at once.
constexpr char kCiphers[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:"
    "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305";
constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};  // as ALPN writes it

// False when OpenSSL refuses some of it.
bool UseCertificate(SSL_CTX* context, const TlsContent& content) {
  const std::vector<Certificate> chain = ParseCertificates(content.certificate);
  if (chain.empty() || SSL_CTX_use_certificate(context, chain.front().get()) != 1) return false;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return false;
  }
  const Key key = ParseKey(content.key);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

bool AskForCertificates(SSL_CTX* context, const TlsContent& content, bool required) {
  for (const Certificate& authority : ParseCertificates(content.client_ca)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1) {
      return false;
    }
  }
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
  // No session is resumed: it would skip the check of the current certificates. A connection stays
  // long, so handshakes are few.
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

absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files, WallTime now) {
  TlsContent content;
  for (const auto& [file, text] : std::array{std::pair(&files.certificate, &content.certificate),
                                             std::pair(&files.key, &content.key),
                                             std::pair(&files.client_ca, &content.client_ca)}) {
    if (file->empty()) continue;
    auto read = ReadText(*file);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  const std::vector<Certificate> chain = ParseCertificates(content.certificate);
  if (chain.empty()) {
    return Refuse(files.certificate,
                  "no PEM certificate; it begins with -----BEGIN CERTIFICATE-----");
  }
  const Key key = ParseKey(content.key);
  if (key == nullptr) {
    return Refuse(files.key,
                  "no PEM private key without a passphrase; `openssl pkey -in KEY -out NEW` "
                  "removes one");
  }
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    ERR_clear_error();
    return Refuse(files.key, fmt::format("the key of another certificate than {}",
                                         files.certificate.string()));
  }
  const absl::Status dates = CheckDates(files.certificate, chain.front().get(), now);
  if (!dates.ok()) return dates;
  if (!files.client_ca.empty() && ParseCertificates(content.client_ca).empty()) {
    return Refuse(files.client_ca, "no PEM certificates of authorities, or a damaged one");
  }
  content.subject = FormatSubject(chain.front().get());
  content.expires_at = ToWallTime(X509_get0_notAfter(chain.front().get()));
  return content;
}

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
