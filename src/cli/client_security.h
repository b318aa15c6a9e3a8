#pragma once

#include <memory>
#include <optional>
#include <string>

#include <absl/status/statusor.h>

namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace simile::cli {

// How a client connects, and what it shows of itself.
struct ClientSecurity {
  bool encrypted = false;
  std::string ca;           // PEM; empty: the authorities that this machine trusts
  std::string certificate;  // PEM, the client's own; empty: none
  std::string key;          // PEM, of the certificate
  std::string server_name;  // that the server's certificate must have; empty: the address's
  std::string token;        // empty: none

  bool names_caller() const { return !token.empty() || !certificate.empty(); }
};

// The flags of every command that calls a server.
struct SecurityFlags {
  bool tls = false;
  std::optional<std::string> ca;
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  std::optional<std::string> server_name;
  std::optional<std::string> token_file;
};

// Reads the files that the flags name, and, where they name none, SIMILE_CA, SIMILE_TOKEN_FILE or
// SIMILE_TOKEN. Anything about certificates means an encrypted connection.
//   address  HOST:PORT: a token is not sent unencrypted to another machine
// Errors: kInvalidArgument, which names the flag or variable and what would be right.
absl::StatusOr<ClientSecurity> ReadClientSecurity(const SecurityFlags& flags,
                                                  const std::string& address);

// A channel that encrypts and shows who calls as `security` says. Connects at the first call.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ClientSecurity& security,
                                           grpc::ChannelArguments arguments);

}  // namespace simile::cli
