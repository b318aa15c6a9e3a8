#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace simile::request_mutations {

// A method of the contract.
struct Method {
  std::string path;                                    // "/simile.v1.SearchService/Search"
  std::string name;                                    // "Search"
  const google::protobuf::Message* request = nullptr;  // prototypes
  const google::protobuf::Message* response = nullptr;
  bool client_streams = false;
  bool server_streams = false;
};
std::vector<Method> AllMethods();

// What is sent: a message, or bytes that are none.
struct Request {
  const Method* method = nullptr;
  std::unique_ptr<google::protobuf::Message> message;  // null for bytes
  std::string bytes;

  std::string Serialized() const;
  Request Copy() const;
};

// Reads requests, one a line: the method's name and the message as text, or "hex" and bytes. Lines
// that begin with # are comments.
std::vector<Request> ReadCorpus(const std::filesystem::path& file,
                                const std::vector<Method>& methods);
std::string LineOf(const Request& request);

}  // namespace simile::request_mutations
