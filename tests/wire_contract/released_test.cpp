// The contract that this program has compiled in, against those of the released versions.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "google/protobuf/descriptor.pb.h"
#include "service/admin_handlers.h"
#include "wire_contract/compatibility.h"
#include "wire_contract/contract.h"
#include "wire_contract/planted_change.h"

namespace simile::wire_contract {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::DescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::RepeatedPtrField;

const char* const kReleased = SIMILE_SOURCE_DIR "/tests/wire_contract/released";
const char* const kRemedy =
    "tests/wire_contract/keep_release.py keeps it; a version that is released needs the next "
    "number";

std::vector<std::string> ReleasedVersions() {
  std::vector<std::string> versions;
  for (const auto& entry : std::filesystem::directory_iterator(kReleased)) {
    versions.push_back(entry.path().filename().string());
  }
  std::ranges::sort(versions);
  return versions;
}

// What keep_release.py has kept of a version besides its .proto files.
std::set<std::string> KeptNames(const std::string& version) {
  std::ifstream file(std::string(kReleased) + "/" + version + "/names.tsv");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) names.insert(line);
  return names;
}

// The same of this program.
std::set<std::string> CurrentNames() {
  std::set<std::string> names;
  for (const base::ErrorReasonInfo& reason : base::ErrorReasons()) {
    names.insert(fmt::format("reason\t{}\t{}", reason.name, absl::StatusCodeToString(reason.code)));
  }
  for (const std::string_view name : service::Capabilities()) {
    names.insert(fmt::format("capability\t{}", name));
  }
  return names;
}

Contract ContractOf(const std::string& version) {
  return Compile(ReadProtos(std::string(kReleased) + "/" + version, "simile/v1/"));
}

// Otherwise an addition of this version would not be promised once the version is released.
TEST(ReleasedTest, KeepsTheContractOfThisVersion) {
  ASSERT_EQ(std::ranges::count(ReleasedVersions(), std::string_view(SIMILE_VERSION)), 1) << kRemedy;
  const Contract kept = ContractOf(SIMILE_VERSION);
  ASSERT_EQ(kept.problem, "");
  EXPECT_EQ(BreakingChanges(CurrentFiles(), kept.files), Findings{}) << kRemedy;
  EXPECT_EQ(KeptNames(SIMILE_VERSION), CurrentNames()) << kRemedy;
}

TEST(ReleasedTest, RefusesABreakingChangeSinceAnyVersion) {
  for (const std::string& version : ReleasedVersions()) {
    SCOPED_TRACE(version);
    const Contract released = ContractOf(version);
    ASSERT_EQ(released.problem, "");
    ASSERT_FALSE(released.files.empty());
    EXPECT_EQ(BreakingChanges(released.files, CurrentFiles()), Findings{});
  }
}

TEST(ReleasedTest, RefusesANameThatIsGoneSinceAnyVersion) {
  const std::set<std::string> current = CurrentNames();
  for (const std::string& version : ReleasedVersions()) {
    const std::set<std::string> kept = KeptNames(version);
    EXPECT_FALSE(kept.empty()) << version;
    for (const std::string& name : kept) EXPECT_TRUE(current.contains(name)) << version << name;
  }
}

// The contract, compiled in and read from its text, is the same one.
TEST(ReleasedTest, ReadsProtosAsTheirCompilerDoes) {
  const Contract read = Compile(ReadProtos(SIMILE_SOURCE_DIR "/proto/simile/v1", "simile/v1/"));
  ASSERT_EQ(read.problem, "");
  ASSERT_EQ(read.files.size(), CurrentFiles().size());
  EXPECT_EQ(BreakingChanges(read.files, CurrentFiles()), Findings{});
  EXPECT_EQ(BreakingChanges(CurrentFiles(), read.files), Findings{});
}

// Each field, value and method of the contract in turn is removed or changed; no change is missed.
class EveryPartTest : public testing::Test {
 protected:
  static std::vector<FileDescriptorProto> CurrentProtos() {
    std::vector<FileDescriptorProto> protos;
    for (const FileDescriptor* file : CurrentFiles()) file->CopyTo(&protos.emplace_back());
    return protos;
  }

  // Compares this program's contract with one in which `file` replaces the file of its name.
  void ExpectRefused(const FileDescriptorProto& file, const std::string& what) {
    DescriptorPool pool;
    Add(file.name(), file, pool);
    std::vector<const FileDescriptor*> changed;
    for (const FileDescriptor* current : CurrentFiles()) {
      Add(current->name(), file, pool);
      changed.push_back(pool.FindFileByName(current->name()));
      ASSERT_NE(changed.back(), nullptr) << what;
    }
    EXPECT_FALSE(BreakingChanges(CurrentFiles(), changed).empty()) << what;
    ++tried_;
  }

  int tried() const { return tried_; }

 private:
  void Add(const std::string& path, const FileDescriptorProto& changed, DescriptorPool& pool) {
    if (pool.FindFileByName(path) != nullptr) return;
    FileDescriptorProto file;
    if (path == changed.name()) {
      file = changed;
    } else {
      DescriptorPool::generated_pool()->FindFileByName(path)->CopyTo(&file);
    }
    for (const std::string& import : file.dependency()) Add(import, changed, pool);
    pool.BuildFile(file);
  }

  int tried_ = 0;
};

// Calls visit for a message and those in it.
template <typename Visit>
void ForEachMessageProto(RepeatedPtrField<DescriptorProto>* messages, const Visit& visit) {
  for (DescriptorProto& message : *messages) {
    visit(message);
    ForEachMessageProto(message.mutable_nested_type(), visit);
  }
}

TEST_F(EveryPartTest, OfAFieldIsPromised) {
  for (FileDescriptorProto& file : CurrentProtos()) {
    ForEachMessageProto(file.mutable_message_type(), [&](DescriptorProto& message) {
      if (message.options().map_entry()) return;
      for (FieldDescriptorProto& field : *message.mutable_field()) {
        const FieldDescriptorProto before = field;
        const std::string what = file.name() + " " + message.name() + "." + before.name();
        field.set_number(before.number() + 1'000);
        ExpectRefused(file, what + " renumbered");
        field = before;
        if (!before.type_name().ends_with("Entry")) {  // of a map, whose entry has the field's name
          field.set_name("x_" + before.name());
          ExpectRefused(file, what + " renamed");
          field = before;
        }
        field.clear_type_name();
        field.set_type(before.type() == FieldDescriptorProto::TYPE_BYTES
                           ? FieldDescriptorProto::TYPE_STRING
                           : FieldDescriptorProto::TYPE_BYTES);
        ExpectRefused(file, what + " retyped");
        field = before;
      }
    });
  }
  EXPECT_GT(tried(), 3 * 150);
}

TEST_F(EveryPartTest, OfAnEnumIsPromised) {
  for (FileDescriptorProto& file : CurrentProtos()) {
    const auto change_values = [&](auto& types) {
      for (auto& type : types) {
        for (auto& value : *type.mutable_value()) {
          const auto before = value;
          value.set_name("X_" + before.name());
          ExpectRefused(file, before.name() + " renamed");
          value = before;
          if (before.number() == 0) continue;
          value.set_number(before.number() + 1'000);
          ExpectRefused(file, before.name() + " renumbered");
          value = before;
        }
      }
    };
    change_values(*file.mutable_enum_type());
    ForEachMessageProto(file.mutable_message_type(), [&](DescriptorProto& message) {
      change_values(*message.mutable_enum_type());
    });
  }
  EXPECT_GT(tried(), 40);
}

TEST_F(EveryPartTest, OfAServiceIsPromised) {
  for (FileDescriptorProto& file : CurrentProtos()) {
    for (auto& service : *file.mutable_service()) {
      for (auto& method : *service.mutable_method()) {
        const auto before = method;
        method.set_name("X" + before.name());
        ExpectRefused(file, before.name() + " renamed");
        method = before;
        method.set_input_type(before.output_type());
        ExpectRefused(file, before.name() + " takes another message");
        method = before;
        method.set_output_type(before.input_type());
        ExpectRefused(file, before.name() + " returns another message");
        method = before;
        method.set_server_streaming(!before.server_streaming());
        ExpectRefused(file, before.name() + " streams otherwise");
        method = before;
        method.set_client_streaming(!before.client_streaming());
        ExpectRefused(file, before.name() + " is streamed otherwise");
        method = before;
        method.mutable_options()->set_idempotency_level(
            before.options().idempotency_level() == google::protobuf::MethodOptions::IDEMPOTENT
                ? google::protobuf::MethodOptions::NO_SIDE_EFFECTS
                : google::protobuf::MethodOptions::IDEMPOTENT);
        ExpectRefused(file, before.name() + " may be repeated otherwise");
        method = before;
      }
    }
  }
  EXPECT_GE(tried(), 6 * 13);
}

}  // namespace
}  // namespace simile::wire_contract
