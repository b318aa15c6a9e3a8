#include "integration/tls_session.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace simile::integration {

TlsSession NewTlsSession() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  TlsSession session(SSL_new(context.get()), &SSL_free);  // keeps what it needs of the context
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), kHttp2, sizeof kHttp2);
  return session;
}

std::string ClientHello() {
  const TlsSession session = NewTlsSession();
  BIO* const sent = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), sent);
  EXPECT_EQ(SSL_connect(session.get()), -1);  // it waits for the server's
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(sent, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

}  // namespace simile::integration
