#include "cli/channel.h"

#include <utility>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_interceptor.h>

namespace simile::cli {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Adds the token to every call of a channel. gRPC's own credentials of calls would refuse a
// connection to this machine that is not encrypted.
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
  const std::string& token_;  // of the factory, which outlives the channel's calls
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

}  // namespace

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
