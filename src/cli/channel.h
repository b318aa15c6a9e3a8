#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "cli/client_security.h"

namespace simile::cli {

// A channel that encrypts and shows who calls as `security` says. Connects at the first call.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address,
                                           const ClientSecurity& security,
                                           grpc::ChannelArguments arguments);

}  // namespace simile::cli
