#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

namespace simile::wire_contract {

// The .proto files of a contract by their import path: "simile/v1/search.proto".
using ProtoSources = std::map<std::string, std::string>;

// The .proto files of one package, compiled into a pool of their own.
struct Contract {
  std::unique_ptr<google::protobuf::DescriptorPool> pool;
  std::vector<const google::protobuf::FileDescriptor*> files;  // without their imports
  std::string problem;  // of the files that do not compile; empty for none
};

// Runs protoc. What the sources import from outside is found in proto/ and beside protoc.
Contract Compile(const ProtoSources& sources);

// The files of simile.v1 as this program has compiled them in. A file of proto/simile/v1 that it
// has not compiled in is a nullptr.
std::vector<const google::protobuf::FileDescriptor*> CurrentFiles();

// All .proto files of a folder, by `prefix` and their name.
ProtoSources ReadProtos(const std::string& folder, const std::string& prefix);

}  // namespace simile::wire_contract
