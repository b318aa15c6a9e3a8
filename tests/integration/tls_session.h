#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace simile::integration {

using TlsSession = std::unique_ptr<SSL, decltype(&SSL_free)>;

// A client's side of TLS by OpenSSL itself, which speaks HTTP/2 and believes any certificate.
TlsSession NewTlsSession();

// The first message of a client of TLS.
std::string ClientHello();

}  // namespace simile::integration
