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

// How a client connects, and the credentials that it sends.
struct ClientSecurity {
  bool encrypted = false;
  std::string ca;           // PEM; empty: trust the authorities that this machine trusts
  std::string certificate;  // PEM, the client's own certificate; empty: none
  std::string key;          // PEM, the private key of the certificate
  std::string server_name;  // the name that the server's certificate must have; empty: the name in
                            // the address
  std::string token;        // empty: none

  bool names_caller() const { return !token.empty() || !certificate.empty(); }
};

// The flags for encryption and credentials, of every command that calls a server.
struct SecurityFlags {
  bool tls = false;
  std::optional<std::string> ca;
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  std::optional<std::string> server_name;
  std::optional<std::string> token_file;
};

// Reads the files that the flags name. Without a flag, SIMILE_CA, SIMILE_TOKEN_FILE or SIMILE_TOKEN
// takes its place. Any certificate setting makes the connection encrypted.
//   address  HOST:PORT; refuses to send a token unencrypted to another machine
// Errors: kInvalidArgument naming the flag or variable and what would be right.
absl::StatusOr<ClientSecurity> ReadClientSecurity(const SecurityFlags& flags,
                                                  const std::string& address);

// A channel with the encryption and credentials of `security`. Connects at the first call.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ClientSecurity& security,
                                           grpc::ChannelArguments arguments);

}  // namespace simile::cli
