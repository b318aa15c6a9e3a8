#pragma once

#include <functional>
#include <memory>
#include <string>

#include <grpcpp/server.h>

#include "simile/v1/search.pb.h"

namespace simile::cli::bench {

// Passes ListCollections, Search and SearchStream on to another server and changes the answers to
// searches on their way back: a server that answers wrongly.
class AlteringServer {
 public:
  using Alter = std::function<void(const v1::SearchRequest& request, v1::SearchResponse& response)>;

  AlteringServer(const std::string& behind, Alter alter);
  ~AlteringServer();
  AlteringServer(const AlteringServer&) = delete;
  AlteringServer& operator=(const AlteringServer&) = delete;

  const std::string& address() const { return address_; }

 private:
  class Searches;
  class Collections;

  const std::unique_ptr<Searches> searches_;
  const std::unique_ptr<Collections> collections_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace simile::cli::bench
