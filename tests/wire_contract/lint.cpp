#include "wire_contract/lint.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "google/protobuf/descriptor.pb.h"
#include "wire_contract/file_options.h"
#include "wire_contract/name_case.h"

namespace simile::wire_contract {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::MethodOptions;
using google::protobuf::ServiceDescriptor;

void Add(Findings& findings, const std::string& where, const std::string& text) {
  findings.push_back({.rule = {}, .where = where, .text = text});
}

std::string FolderOf(const FileDescriptor& file) {
  const auto slash = file.name().rfind('/');
  return slash == std::string::npos ? "" : file.name().substr(0, slash);
}

// Files and packages.

void PackageDefined(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    if (file->package().empty()) Add(findings, file->name(), "has no package");
  }
}

void PackageDirectoryMatch(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    std::string folder = file->package();
    std::ranges::replace(folder, '.', '/');
    if (FolderOf(*file) != folder) Add(findings, file->name(), "belongs in " + folder);
  }
}

void PackageLowerSnakeCase(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    std::string words = file->package();
    std::ranges::replace(words, '.', '_');
    if (!words.empty() && !IsLowerSnakeCase(words)) {
      Add(findings, file->name(), "package " + file->package());
    }
  }
}

// Takes a number without leading zeros from the beginning of the text.
bool TakeNumber(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool is_number = digits > 0 && text.front() != '0';
  text.remove_prefix(digits);
  return is_number;
}

// "v1", "v2beta1"
bool IsVersion(std::string_view text) {
  if (!text.starts_with('v')) return false;
  text.remove_prefix(1);
  if (!TakeNumber(text)) return false;
  for (const std::string_view stage : {"alpha", "beta"}) {
    if (!text.starts_with(stage)) continue;
    text.remove_prefix(stage.size());
    return TakeNumber(text) && text.empty();
  }
  return text.empty();
}

void PackageVersionSuffix(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    const std::string& package = file->package();
    const std::size_t dot = package.rfind('.');
    if (package.empty()) continue;
    if (dot == std::string::npos || !IsVersion(std::string_view(package).substr(dot + 1))) {
      Add(findings, file->name(), "package " + package + " does not end in a version");
    }
  }
}

// Reports the files whose value differs from that of the first file with the same key.
template <typename KeyOf, typename ValueOf>
void CheckSameValue(FilesView files, const KeyOf& key_of, const ValueOf& value_of,
                    Findings& findings) {
  std::map<std::string, std::string> first;
  for (const FileDescriptor* file : files) {
    const std::string value = value_of(*file);
    const std::string& expected = first.try_emplace(key_of(*file), value).first->second;
    if (value != expected) {
      Add(findings, file->name(), "has \"" + value + "\", another file \"" + expected + "\"");
    }
  }
}

std::string PackageOf(const FileDescriptor& file) { return file.package(); }

void PackageSameDirectory(FilesView files, Findings& findings) {
  CheckSameValue(files, PackageOf, FolderOf, findings);
}

void DirectorySamePackage(FilesView files, Findings& findings) {
  CheckSameValue(files, FolderOf, PackageOf, findings);
}

template <FileOption kOption>
void PackageSameOption(FilesView files, Findings& findings) {
  CheckSameValue(
      files, PackageOf, [](const FileDescriptor& file) { return ValueOf(kOption, file.options()); },
      findings);
}

void FileLowerSnakeCase(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    const std::string name = file->name().substr(file->name().rfind('/') + 1);
    const auto dot = name.rfind(".proto");
    if (dot == std::string::npos || !IsLowerSnakeCase(name.substr(0, dot))) {
      Add(findings, file->name(), "is not lower_snake_case.proto");
    }
  }
}

// Descriptors do not tell proto2 from no syntax, so this one asks for proto3.
void SyntaxSpecified(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    if (file->syntax() != FileDescriptor::SYNTAX_PROTO3) Add(findings, file->name(), "not proto3");
  }
}

// Imports.

void ImportNoPublic(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    for (int index = 0; index < file->public_dependency_count(); ++index) {
      Add(findings, file->name(), "imports publicly " + file->public_dependency(index)->name());
    }
  }
}

void ImportNoWeak(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    for (int index = 0; index < file->weak_dependency_count(); ++index) {
      Add(findings, file->name(), "imports weakly " + file->weak_dependency(index)->name());
    }
  }
}

std::set<const FileDescriptor*> FilesUsedBy(const FileDescriptor& file) {
  std::set<const FileDescriptor*> used;
  const auto add_field = [&](const FieldDescriptor& field) {
    if (field.message_type() != nullptr) used.insert(field.message_type()->file());
    if (field.enum_type() != nullptr) used.insert(field.enum_type()->file());
  };
  const FileDescriptor* const one[] = {&file};
  ForEachField(one, [&](const FieldDescriptor& field) {
    add_field(field);
    if (field.is_map()) add_field(*field.message_type()->map_value());
  });
  ForEachMethod(one, [&](const MethodDescriptor& method) {
    used.insert(method.input_type()->file());
    used.insert(method.output_type()->file());
  });
  return used;
}

void ImportUsed(FilesView files, Findings& findings) {
  for (const FileDescriptor* file : files) {
    const std::set<const FileDescriptor*> used = FilesUsedBy(*file);
    for (int index = 0; index < file->dependency_count(); ++index) {
      const FileDescriptor* import = file->dependency(index);
      if (!used.contains(import)) Add(findings, file->name(), import->name() + " is not used");
    }
  }
}

// Messages and fields.

void MessagePascalCase(FilesView files, Findings& findings) {
  ForEachMessage(files, [&](const Descriptor& message) {
    if (!IsPascalCase(message.name())) Add(findings, message.full_name(), "is not PascalCase");
  });
}

void FieldLowerSnakeCase(FilesView files, Findings& findings) {
  ForEachField(files, [&](const FieldDescriptor& field) {
    if (!IsLowerSnakeCase(field.name())) {
      Add(findings, field.full_name(), "is not lower_snake_case");
    }
  });
}

void FieldNotRequired(FilesView files, Findings& findings) {
  ForEachField(files, [&](const FieldDescriptor& field) {
    if (field.is_required()) Add(findings, field.full_name(), "is required");
  });
}

void OneofLowerSnakeCase(FilesView files, Findings& findings) {
  ForEachMessage(files, [&](const Descriptor& message) {
    for (int index = 0; index < message.real_oneof_decl_count(); ++index) {
      const auto& oneof = *message.oneof_decl(index);
      if (!IsLowerSnakeCase(oneof.name())) {
        Add(findings, oneof.full_name(), "is not lower_snake_case");
      }
    }
  });
}

// Enums.

void EnumPascalCase(FilesView files, Findings& findings) {
  ForEachEnum(files, [&](const EnumDescriptor& type) {
    if (!IsPascalCase(type.name())) Add(findings, type.full_name(), "is not PascalCase");
  });
}

void EnumNoAllowAlias(FilesView files, Findings& findings) {
  ForEachEnum(files, [&](const EnumDescriptor& type) {
    if (type.options().allow_alias()) Add(findings, type.full_name(), "allows aliases");
  });
}

void EnumFirstValueZero(FilesView files, Findings& findings) {
  ForEachEnum(files, [&](const EnumDescriptor& type) {
    if (type.value(0)->number() != 0) Add(findings, type.full_name(), "does not begin with 0");
  });
}

void EnumZeroValueSuffix(FilesView files, Findings& findings) {
  ForEachEnumValue(files, [&](const EnumValueDescriptor& value) {
    if (value.number() == 0 && !value.name().ends_with("_UNSPECIFIED")) {
      Add(findings, value.full_name(), "does not end in _UNSPECIFIED");
    }
  });
}

void EnumValuePrefix(FilesView files, Findings& findings) {
  ForEachEnumValue(files, [&](const EnumValueDescriptor& value) {
    const std::string prefix = UpperSnakeCaseOf(value.type()->name()) + "_";
    if (!value.name().starts_with(prefix)) {
      Add(findings, value.full_name(), "does not begin with " + prefix);
    }
  });
}

void EnumValueUpperSnakeCase(FilesView files, Findings& findings) {
  ForEachEnumValue(files, [&](const EnumValueDescriptor& value) {
    if (!IsUpperSnakeCase(value.name())) {
      Add(findings, value.full_name(), "is not UPPER_SNAKE_CASE");
    }
  });
}

// Services.

void ServicePascalCase(FilesView files, Findings& findings) {
  ForEachService(files, [&](const ServiceDescriptor& service) {
    if (!IsPascalCase(service.name())) Add(findings, service.full_name(), "is not PascalCase");
  });
}

void ServiceSuffix(FilesView files, Findings& findings) {
  ForEachService(files, [&](const ServiceDescriptor& service) {
    if (!service.name().ends_with("Service")) {
      Add(findings, service.full_name(), "does not end in Service");
    }
  });
}

void RpcPascalCase(FilesView files, Findings& findings) {
  ForEachMethod(files, [&](const MethodDescriptor& method) {
    if (!IsPascalCase(method.name())) Add(findings, method.full_name(), "is not PascalCase");
  });
}

void RpcRequestResponseUnique(FilesView files, Findings& findings) {
  std::set<const Descriptor*> seen;
  ForEachMethod(files, [&](const MethodDescriptor& method) {
    for (const Descriptor* type : {method.input_type(), method.output_type()}) {
      if (!seen.insert(type).second) {
        Add(findings, method.full_name(), type->full_name() + " has another use already");
      }
    }
  });
}

// Reports a type that is neither MethodSuffix nor ServiceMethodSuffix.
void CheckStandardName(const MethodDescriptor& method, const Descriptor& type,
                       const std::string& suffix, Findings& findings) {
  const std::string name = method.name() + suffix;
  if (type.name() != name && type.name() != method.service()->name() + name) {
    Add(findings, method.full_name(), type.name() + " should be " + name);
  }
}

void RpcRequestStandardName(FilesView files, Findings& findings) {
  ForEachMethod(files, [&](const MethodDescriptor& method) {
    CheckStandardName(method, *method.input_type(), "Request", findings);
  });
}

void RpcResponseStandardName(FilesView files, Findings& findings) {
  ForEachMethod(files, [&](const MethodDescriptor& method) {
    CheckStandardName(method, *method.output_type(), "Response", findings);
  });
}

// Our own.

// Proxies and clients may repeat a call with NO_SIDE_EFFECTS as they like.
void RpcReadsHaveNoSideEffects(FilesView files, Findings& findings) {
  static const std::set<std::string> changes = {"LoadCollection", "ReloadCollection",
                                                "RollbackCollection", "UnloadCollection"};
  ForEachMethod(files, [&](const MethodDescriptor& method) {
    const bool reads = method.options().idempotency_level() == MethodOptions::NO_SIDE_EFFECTS;
    if (reads == changes.contains(method.name())) {
      Add(findings, method.full_name(), reads ? "changes what is served" : "only reads");
    }
  });
}

// Generated code has one namespace for the whole package, so a name in it says what it belongs to.
void PackageNameHasNoun(FilesView files, Findings& findings) {
  static const std::set<std::string> bare = {"Bytes", "Field", "Value", "Backend"};
  for (const FileDescriptor* file : files) {
    for (int index = 0; index < file->message_type_count(); ++index) {
      const Descriptor& message = *file->message_type(index);
      if (bare.contains(message.name())) Add(findings, message.full_name(), "of what?");
    }
    for (int index = 0; index < file->enum_type_count(); ++index) {
      const EnumDescriptor& type = *file->enum_type(index);
      if (bare.contains(type.name())) Add(findings, type.full_name(), "of what?");
    }
  }
}

void RequestSaysCollection(FilesView files, Findings& findings) {
  ForEachMethod(files, [&](const MethodDescriptor& method) {
    if (const FieldDescriptor* name = method.input_type()->FindFieldByName("name")) {
      Add(findings, name->full_name(), "should be called collection");
    }
  });
}

// Java has a method getXBytes for the UTF-8 of a text x, and one for a field x_bytes.
void FieldNamesFitJava(FilesView files, Findings& findings) {
  ForEachField(files, [&](const FieldDescriptor& field) {
    if (field.type() != FieldDescriptor::TYPE_STRING) return;
    const FieldDescriptor* const other =
        field.containing_type()->FindFieldByName(field.name() + "_bytes");
    if (other != nullptr) Add(findings, other->full_name(), "Java has it of " + field.name());
  });
}

constexpr auto kLintRules = std::to_array<LintRule>({
    {"PACKAGE_DEFINED", "Every file has a package.", PackageDefined},
    {"PACKAGE_DIRECTORY_MATCH", "a.b.v1 is in a/b/v1.", PackageDirectoryMatch},
    {"PACKAGE_SAME_DIRECTORY", "A package is in one folder.", PackageSameDirectory},
    {"DIRECTORY_SAME_PACKAGE", "A folder has one package.", DirectorySamePackage},
    {"PACKAGE_LOWER_SNAKE_CASE", "Packages are lower_snake.case.", PackageLowerSnakeCase},
    {"PACKAGE_VERSION_SUFFIX", "Packages end in their version: simile.v1.", PackageVersionSuffix},
    {"PACKAGE_SAME_CSHARP_NAMESPACE", "The files of a package agree.",
     PackageSameOption<FileOption::kCsharpNamespace>},
    {"PACKAGE_SAME_GO_PACKAGE", "The files of a package agree.",
     PackageSameOption<FileOption::kGoPackage>},
    {"PACKAGE_SAME_JAVA_MULTIPLE_FILES", "The files of a package agree.",
     PackageSameOption<FileOption::kJavaMultipleFiles>},
    {"PACKAGE_SAME_JAVA_PACKAGE", "The files of a package agree.",
     PackageSameOption<FileOption::kJavaPackage>},
    {"PACKAGE_SAME_PHP_NAMESPACE", "The files of a package agree.",
     PackageSameOption<FileOption::kPhpNamespace>},
    {"PACKAGE_SAME_RUBY_PACKAGE", "The files of a package agree.",
     PackageSameOption<FileOption::kRubyPackage>},
    {"PACKAGE_SAME_SWIFT_PREFIX", "The files of a package agree.",
     PackageSameOption<FileOption::kSwiftPrefix>},
    {"FILE_LOWER_SNAKE_CASE", "Files are lower_snake_case.proto.", FileLowerSnakeCase},
    {"SYNTAX_SPECIFIED", "Every file says that it is proto3.", SyntaxSpecified},
    {"IMPORT_NO_PUBLIC", "No import is public.", ImportNoPublic},
    {"IMPORT_NO_WEAK", "No import is weak.", ImportNoWeak},
    {"IMPORT_USED", "Every import is used.", ImportUsed},
    {"MESSAGE_PASCAL_CASE", "Messages are PascalCase.", MessagePascalCase},
    {"FIELD_LOWER_SNAKE_CASE", "Fields are lower_snake_case.", FieldLowerSnakeCase},
    {"FIELD_NOT_REQUIRED", "No field is required.", FieldNotRequired},
    {"ONEOF_LOWER_SNAKE_CASE", "Oneofs are lower_snake_case.", OneofLowerSnakeCase},
    {"ENUM_PASCAL_CASE", "Enums are PascalCase.", EnumPascalCase},
    {"ENUM_NO_ALLOW_ALIAS", "Every number has one name.", EnumNoAllowAlias},
    {"ENUM_FIRST_VALUE_ZERO", "Enums begin with 0.", EnumFirstValueZero},
    {"ENUM_ZERO_VALUE_SUFFIX", "0 is ..._UNSPECIFIED.", EnumZeroValueSuffix},
    {"ENUM_VALUE_PREFIX", "Values begin with the name of their enum.", EnumValuePrefix},
    {"ENUM_VALUE_UPPER_SNAKE_CASE", "Values are UPPER_SNAKE_CASE.", EnumValueUpperSnakeCase},
    {"SERVICE_PASCAL_CASE", "Services are PascalCase.", ServicePascalCase},
    {"SERVICE_SUFFIX", "Services end in Service.", ServiceSuffix},
    {"RPC_PASCAL_CASE", "Methods are PascalCase.", RpcPascalCase},
    {"RPC_REQUEST_RESPONSE_UNIQUE", "Every method has messages of its own.",
     RpcRequestResponseUnique},
    {"RPC_REQUEST_STANDARD_NAME", "Search takes a SearchRequest.", RpcRequestStandardName},
    {"RPC_RESPONSE_STANDARD_NAME", "Search returns a SearchResponse.", RpcResponseStandardName},
    {"RPC_READS_HAVE_NO_SIDE_EFFECTS", "Methods that only read say so, and no others.",
     RpcReadsHaveNoSideEffects},
    {"PACKAGE_NAME_HAS_NOUN", "No Bytes, Field, Value, Backend without what they are of.",
     PackageNameHasNoun},
    {"REQUEST_SAYS_COLLECTION", "Requests name a collection in `collection`.",
     RequestSaysCollection},
    {"FIELD_NAMES_FIT_JAVA", "No field x_bytes beside a text x.", FieldNamesFitJava},
});

}  // namespace

std::span<const LintRule> LintRules() { return kLintRules; }

Findings Lint(FilesView files) {
  Findings findings;
  for (const LintRule& rule : kLintRules) {
    Findings found;
    rule.check(files, found);
    for (Finding& finding : found) {
      finding.rule = rule.name;
      finding.text += fmt::format(" ({})", rule.wants);
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace simile::wire_contract
