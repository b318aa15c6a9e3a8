#include "wire_contract/contract.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "files/scratch_folder.h"
#include "google/protobuf/descriptor.pb.h"
#include "simile/v1/admin.pb.h"
#include "simile/v1/lookup.pb.h"
#include "simile/v1/search.pb.h"

namespace simile::wire_contract {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;

// Runs a command of the shell; returns what it prints.
std::string OutputOf(const std::string& command) {
  std::string printed;
  std::FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return command + " does not start";
  char buffer[1'024];
  while (const std::size_t bytes = std::fread(buffer, 1, sizeof buffer, output)) {
    printed.append(buffer, bytes);
  }
  if (pclose(output) != 0 && printed.empty()) return command + " fails";
  return printed;
}

// Otherwise the linker leaves out the files of whose messages nothing is used.
void LinkEveryFile() {
  static_cast<void>(v1::GetServerInfoRequest::descriptor());
  static_cast<void>(v1::FetchRequest::descriptor());
  static_cast<void>(v1::SearchRequest::descriptor());
}

}  // namespace

Contract Compile(const ProtoSources& sources) {
  const ScratchFolder scratch;
  const std::string set = (scratch.path() / "set").string();
  std::string command = "'" SIMILE_PROTOC "' --include_imports -I '" + scratch.path().string() +
                        "' -I '" SIMILE_SOURCE_DIR "/proto' '--descriptor_set_out=" + set + "'";
  for (const auto& [path, text] : sources) {
    scratch.Write(path, text);
    command += " '" + path + "'";
  }
  const std::string printed = OutputOf(command + " 2>&1");

  Contract contract{.pool = std::make_unique<DescriptorPool>(), .files = {}, .problem = {}};
  FileDescriptorSet files;
  std::ifstream compiled(set, std::ios::binary);
  if (!compiled || !files.ParseFromIstream(&compiled)) {
    contract.problem = printed;
    return contract;
  }
  for (const FileDescriptorProto& file : files.file()) {  // imports before what imports them
    const FileDescriptor* built = contract.pool->BuildFile(file);
    if (built == nullptr) contract.problem += file.name() + " does not fit its imports\n";
    if (built != nullptr && sources.contains(file.name())) contract.files.push_back(built);
  }
  return contract;
}

std::vector<const FileDescriptor*> CurrentFiles() {
  LinkEveryFile();
  std::vector<const FileDescriptor*> files;
  for (const auto& [path, text] : ReadProtos(SIMILE_SOURCE_DIR "/proto/simile/v1", "simile/v1/")) {
    files.push_back(DescriptorPool::generated_pool()->FindFileByName(path));
  }
  return files;
}

ProtoSources ReadProtos(const std::string& folder, const std::string& prefix) {
  ProtoSources sources;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".proto") continue;
    std::ifstream file(entry.path());
    sources[prefix + entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return sources;
}

}  // namespace simile::wire_contract
