#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <new>
#include <string_view>

// Certificates and keys in texts of PEM, as OpenSSL has them.
namespace simile::net {

struct FreePem {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreePem>;
using Certificate = std::unique_ptr<X509, FreePem>;
using Key = std::unique_ptr<EVP_PKEY, FreePem>;

// The text must outlive it. Throws bad_alloc.
inline Bio BioOf(std::string_view text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio == nullptr) throw std::bad_alloc();
  return bio;
}

// A passphrase is never asked for: the server may have no terminal.
inline int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*data*/) {
  return -1;
}

// Null at the end, or for a damaged one; OpenSSL's list of errors says which.
inline Certificate NextCertificate(BIO* bio) {
  return Certificate(PEM_read_bio_X509(bio, nullptr, NoPassphrase, nullptr));
}

// Null for a damaged one, or one with a passphrase.
inline Key KeyOf(std::string_view text) {
  return Key(PEM_read_bio_PrivateKey(BioOf(text).get(), nullptr, NoPassphrase, nullptr));
}

}  // namespace simile::net
