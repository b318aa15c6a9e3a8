#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "google/protobuf/descriptor.pb.h"

namespace simile::wire_contract {

// The options of a file that name code generated from it.
enum class FileOption : std::uint8_t {
  kCsharpNamespace,
  kGoPackage,
  kJavaMultipleFiles,
  kJavaPackage,
  kPhpNamespace,
  kRubyPackage,
  kSwiftPrefix,
};

struct FileOptionName {
  FileOption option;
  std::string_view name;  // as in the names of buf's rules
};
inline constexpr auto kFileOptions = std::to_array<FileOptionName>({
    {FileOption::kCsharpNamespace, "CSHARP_NAMESPACE"},
    {FileOption::kGoPackage, "GO_PACKAGE"},
    {FileOption::kJavaMultipleFiles, "JAVA_MULTIPLE_FILES"},
    {FileOption::kJavaPackage, "JAVA_PACKAGE"},
    {FileOption::kPhpNamespace, "PHP_NAMESPACE"},
    {FileOption::kRubyPackage, "RUBY_PACKAGE"},
    {FileOption::kSwiftPrefix, "SWIFT_PREFIX"},
});

// Empty for an option that the file does not set.
inline std::string ValueOf(FileOption option, const google::protobuf::FileOptions& options) {
  switch (option) {
    case FileOption::kCsharpNamespace:
      return options.csharp_namespace();
    case FileOption::kGoPackage:
      return options.go_package();
    case FileOption::kJavaMultipleFiles:
      return options.java_multiple_files() ? "true" : "";
    case FileOption::kJavaPackage:
      return options.java_package();
    case FileOption::kPhpNamespace:
      return options.php_namespace();
    case FileOption::kRubyPackage:
      return options.ruby_package();
    case FileOption::kSwiftPrefix:
      return options.swift_prefix();
  }
  return {};
}

}  // namespace simile::wire_contract
