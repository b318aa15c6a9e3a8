// Which versions of TLS and which ciphers the server agrees to, asked by OpenSSL itself.
#include <string>

#include <gtest/gtest.h>

#include "integration/access_server.h"
#include "integration/tls_session.h"
#include "net/loopback.h"

namespace simile::integration {
namespace {

// What a client is willing to speak: one version, and for TLS 1.2 and older these ciphers, the weak
// ones too.
struct Offer {
  int version;
  std::string ciphers = "ALL";
};

// `TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256`, or empty when the handshake fails.
std::string Agreed(std::uint16_t port, const Offer& offer) {
  const TlsSession session = NewTlsSession();
  EXPECT_EQ(SSL_set_min_proto_version(session.get(), offer.version), 1);
  EXPECT_EQ(SSL_set_max_proto_version(session.get(), offer.version), 1);
  EXPECT_EQ(SSL_set_cipher_list(session.get(), (offer.ciphers + ":@SECLEVEL=0").c_str()), 1);
  const base::FileDescriptor fd = net::ConnectTo(port);
  SSL_set_fd(session.get(), fd.get());
  if (SSL_connect(session.get()) != 1) return "";
  return std::string(SSL_get_version(session.get())) + " " + SSL_get_cipher_name(session.get());
}

// Ciphers of TLS 1.2 that encrypt and authenticate apart from each other, of all key exchanges that
// fit the server's key.
constexpr char kCbc[] =
    "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:ECDHE-ECDSA-AES128-SHA256:"
    "ECDHE-ECDSA-AES256-SHA384";

void ExpectModernTls(std::uint16_t port) {
  EXPECT_EQ(Agreed(port, {TLS1_VERSION}), "");
  EXPECT_EQ(Agreed(port, {TLS1_1_VERSION}), "");
  EXPECT_EQ(Agreed(port, {TLS1_2_VERSION, kCbc}), "");
  for (const std::string cipher :
       {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"}) {
    EXPECT_EQ(Agreed(port, {TLS1_2_VERSION, std::string(kCbc) + ":" + cipher}),
              "TLSv1.2 " + cipher);
  }
  const std::string newest = Agreed(port, {TLS1_3_VERSION});
  EXPECT_TRUE(newest.starts_with("TLSv1.3 TLS_")) << newest;
}

TEST(TlsHandshakeTest, AgreesToModernTlsAlone) {
  AccessServer server({AccessServer::Entry("ranker", "read")},
                      AccessServer::Encryption::kServerOnly);
  ExpectModernTls(server.films().app().port());
}

}  // namespace
}  // namespace simile::integration
