#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace simile::integration {

// The words that text fields get, by a field's name.
struct RequestWords {
  // What makes a request answerable; empty to leave the field unset.
  std::function<std::string(const std::string& field)> usual;
  // What a field is tried with besides.
  std::function<std::vector<std::string>(const std::string& field)> tried;
};

// Requests of any type, by its descriptor alone: usual ones, and copies of these in which one
// field, however deep, has another value. A field that is added to the contract is among them.
std::vector<std::unique_ptr<google::protobuf::Message>> GenerateRequests(
    const google::protobuf::Message& prototype, const RequestWords& words);

}  // namespace simile::integration
