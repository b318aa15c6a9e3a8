#include "cli/client_security.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_interceptor.h>

#include "base/atomic_file.h"
#include "base/loopback.h"
#include "base/message_text.h"
#include "cli/environment.h"

namespace simile::cli {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Adds the token to every call of a channel. gRPC's own call credentials cannot be used: they
// refuse an unencrypted connection, even to this machine.
class AddToken final : public Interceptor {
 public:
  explicit AddToken(const std::string& token) : token_(token) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", "Bearer " + token_);
    }
    methods->Proceed();
  }

 private:
  const std::string& token_;  // belongs to the factory, which outlives the channel's calls
};

class AddTokenFactory final : public ClientInterceptorFactoryInterface {
 public:
  explicit AddTokenFactory(std::string token) : token_(std::move(token)) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo* /*info*/) override {
    return new AddToken(token_);  // gRPC owns it
  }

 private:
  const std::string token_;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const ClientSecurity& security) {
  if (!security.encrypted) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({security.ca, security.key, security.certificate});
}

constexpr std::size_t kFileBytesMax = 1U << 20;

// A file's name, and the flag or variable that gave it.
struct Source {
  std::string origin;  // "--ca "
  std::string file;
};

// The file that the flag names, or else the file that the variable names.
std::optional<Source> FindSource(const std::optional<std::string>& flag, std::string_view flag_name,
                                 const char* variable = nullptr) {
  if (flag) return Source{fmt::format("{} ", flag_name), *flag};
  if (variable == nullptr) return std::nullopt;
  const auto value = ReadVariable(variable);
  if (!value) return std::nullopt;
  return Source{fmt::format("{}=", variable), *value};
}

absl::StatusOr<std::string> Read(const Source& source) {
  auto text = base::ReadWholeFile(source.file, kFileBytesMax);
  if (text.ok() && !text->empty()) return text;
  return absl::InvalidArgumentError(fmt::format(
      "{}{}: {}", source.origin, source.file,
      text.ok() ? "no such file, or an empty one" : std::string(text.status().message())));
}

// Ends of the BEGIN line of a PEM part; they name the kind of the part.
constexpr std::string_view kCertificate = " CERTIFICATE-----";
constexpr std::string_view kPrivateKey = " PRIVATE KEY-----";

// The kinds of all parts of a PEM file: `PRIVATE KEY, CERTIFICATE`.
std::string ParsePemKinds(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  std::string kinds;
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    const std::string_view kind = text.substr(at, text.find("-----", at) - at);
    kinds.append(kinds.empty() ? "" : ", ").append(kind);
  }
  return kinds;
}

// Reads the PEM file into `text`, if a file is named.
//   wanted  the kind of part that the file must contain: kCertificate or kPrivateKey
absl::Status ReadPem(const std::optional<Source>& source, std::string_view wanted,
                     std::string& text) {
  if (!source) return absl::OkStatus();
  auto read = Read(*source);
  if (!read.ok()) return read.status();
  // `-----BEGIN PRIVATE KEY-----`, `-----BEGIN EC PRIVATE KEY-----`
  if (read->find(wanted) == std::string::npos) {
    const std::string kinds = ParsePemKinds(*read);
    return absl::InvalidArgumentError(fmt::format(
        "{}{}: {}; a PEM file of {} has a line -----BEGIN{}", source->origin, source->file,
        kinds.empty() ? "not a PEM file" : "it holds " + base::Quoted(kinds),
        wanted == kCertificate ? "certificates" : "a private key", wanted));
  }
  text = *std::move(read);
  return absl::OkStatus();
}

// The text without trailing white space, such as the line end that editors add.
std::string Trimmed(std::string text) {
  const auto is_space = [](unsigned char character) { return std::isspace(character) != 0; };
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

absl::StatusOr<std::string> ReadToken(const SecurityFlags& flags) {
  const auto source = FindSource(flags.token_file, "--token-file", "SIMILE_TOKEN_FILE");
  std::string token;
  if (source) {
    auto text = Read(*source);
    if (!text.ok()) return text.status();
    token = Trimmed(*std::move(text));
  } else {
    token = Trimmed(ReadVariable("SIMILE_TOKEN").value_or(""));
  }
  const bool is_sendable = std::ranges::all_of(
      token, [](unsigned char character) { return character > ' ' && character < 0x7F; });
  if (is_sendable) return token;
  return absl::InvalidArgumentError(
      fmt::format("{}: a token is one word of printable ASCII characters",
                  source ? source->origin + source->file : "SIMILE_TOKEN"));
}

bool IsThisMachine(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return base::IsLoopback(host);
}

}  // namespace

absl::StatusOr<ClientSecurity> ReadClientSecurity(const SecurityFlags& flags,
                                                  const std::string& address) {
  ClientSecurity security;
  const auto ca = FindSource(flags.ca, "--ca", "SIMILE_CA");
  absl::Status status = ReadPem(ca, kCertificate, security.ca);
  if (status.ok())
    status = ReadPem(FindSource(flags.certificate, "--cert"), kCertificate, security.certificate);
  if (status.ok()) status = ReadPem(FindSource(flags.key, "--key"), kPrivateKey, security.key);
  if (!status.ok()) return status;
  if (flags.certificate.has_value() != flags.key.has_value()) {
    return absl::InvalidArgumentError("--cert and --key go together: give both, or neither");
  }
  security.server_name = flags.server_name.value_or("");
  security.encrypted = flags.tls || ca || flags.certificate || flags.server_name;
  auto token = ReadToken(flags);
  if (!token.ok()) return token.status();
  if (!token->empty() && !security.encrypted && !IsThisMachine(address)) {
    return absl::InvalidArgumentError(fmt::format(
        "the token would reach {} unencrypted: give --tls, with --ca FILE where this machine does "
        "not trust the server's authority",
        address));
  }
  security.token = *std::move(token);
  return security;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ClientSecurity& security,
                                           grpc::ChannelArguments arguments) {
  if (!security.server_name.empty()) arguments.SetSslTargetNameOverride(security.server_name);
  if (security.token.empty()) {
    return grpc::CreateCustomChannel(address, CredentialsFor(security), arguments);
  }
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<AddTokenFactory>(security.token));
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, CredentialsFor(security), arguments, std::move(interceptors));
}

}  // namespace simile::cli
