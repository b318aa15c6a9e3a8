#include "files/certificates.h"

#include <cstdio>
#include <cstdlib>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace simile {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

void Require(bool worked) {
  if (worked) return;
  std::fprintf(stderr, "OpenSSL does not make the certificate of a test\n");
  std::abort();
}

template <class Write>
std::string PemOf(const Write& write) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  Require(write(bio.get()) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

void SetName(X509* certificate, const std::string& common_name) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  Require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(common_name.c_str()),
                                     -1, -1, 0) == 1);
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  Require(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

// An unsigned certificate of the key.
Certificate NewCertificate(EVP_PKEY* key, const CertificateOptions& options) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  std::int64_t serial = 0;
  Require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), 7) == 1);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), options.begins_in.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), options.ends_in.count());
  X509_set_pubkey(certificate.get(), key);
  SetName(certificate.get(), options.common_name);
  return certificate;
}

}  // namespace

struct TestAuthority::Parts {
  Key key{EVP_EC_gen("P-256")};
  Certificate certificate;
  std::string pem;
};

TestAuthority::TestAuthority(const std::string& common_name) : parts_(std::make_unique<Parts>()) {
  Parts& own = *parts_;
  own.certificate = NewCertificate(own.key.get(), {.common_name = common_name});
  X509* const self = own.certificate.get();
  X509_set_issuer_name(self, X509_get_subject_name(self));
  AddExtension(self, self, NID_basic_constraints, "critical,CA:TRUE");
  Require(X509_sign(self, own.key.get(), EVP_sha256()) > 0);
  own.pem = PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, self); });
}

TestAuthority::~TestAuthority() = default;

const std::string& TestAuthority::certificate() const { return parts_->pem; }

CertificatePair TestAuthority::Issue(const CertificateOptions& options) const {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = NewCertificate(key.get(), options);
  X509* const issuer = parts_->certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  if (!options.alternative_names.empty()) {
    AddExtension(certificate.get(), issuer, NID_subject_alt_name, options.alternative_names);
  }
  Require(X509_sign(certificate.get(), parts_->key.get(), EVP_sha256()) > 0);
  return {PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); }),
          PemOf([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace simile
