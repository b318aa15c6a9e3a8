#include "wire_contract/compatibility.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "google/protobuf/descriptor.pb.h"
#include "wire_contract/file_options.h"

namespace simile::wire_contract {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::ServiceDescriptor;

constexpr auto kBreakingRules = std::to_array<std::string_view>({
    "FILE_NO_DELETE",
    "FILE_SAME_PACKAGE",
    "FILE_SAME_SYNTAX",
    "FILE_SAME_CSHARP_NAMESPACE",
    "FILE_SAME_GO_PACKAGE",
    "FILE_SAME_JAVA_MULTIPLE_FILES",
    "FILE_SAME_JAVA_PACKAGE",
    "FILE_SAME_PHP_NAMESPACE",
    "FILE_SAME_RUBY_PACKAGE",
    "FILE_SAME_SWIFT_PREFIX",
    "SERVICE_NO_DELETE",
    "RPC_NO_DELETE",
    "RPC_SAME_REQUEST_TYPE",
    "RPC_SAME_RESPONSE_TYPE",
    "RPC_SAME_CLIENT_STREAMING",
    "RPC_SAME_SERVER_STREAMING",
    "RPC_SAME_IDEMPOTENCY_LEVEL",
    "MESSAGE_NO_DELETE",
    "ONEOF_NO_DELETE",
    "RESERVED_MESSAGE_NO_DELETE",
    "FIELD_NO_DELETE",
    "FIELD_SAME_NAME",
    "FIELD_SAME_JSON_NAME",
    "FIELD_SAME_TYPE",
    "FIELD_SAME_CARDINALITY",
    "FIELD_SAME_ONEOF",
    "ENUM_NO_DELETE",
    "ENUM_VALUE_NO_DELETE",
    "ENUM_VALUE_SAME_NAME",
    "RESERVED_ENUM_NO_DELETE",
});

// Gathers findings. `released` is where the change is, also when nothing is left there.
class Comparison {
 public:
  void Refuse(std::string_view rule, const std::string& released, std::string text) {
    findings_.push_back({.rule = std::string(rule), .where = released, .text = std::move(text)});
  }
  void RefuseGone(std::string_view rule, const std::string& released) {
    Refuse(rule, released, "is gone");
  }
  void CheckSame(std::string_view rule, const std::string& released, const std::string& before,
                 const std::string& after) {
    if (before != after) Refuse(rule, released, fmt::format("was {}, is {}", before, after));
  }

  Findings TakeFindings() { return std::move(findings_); }

 private:
  Findings findings_;
};

// Fields.

// The type of a value on the wire and in generated code: "string", "simile.v1.Hit".
std::string ElementTypeOf(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

std::string TypeOf(const FieldDescriptor& field) {
  if (!field.is_map()) return ElementTypeOf(field);
  const Descriptor& entry = *field.message_type();
  return fmt::format("map<{}, {}>", ElementTypeOf(*entry.map_key()),
                     ElementTypeOf(*entry.map_value()));
}

// Fields of messages and oneofs always tell set from not set, so `optional` changes nothing there.
std::string CardinalityOf(const FieldDescriptor& field) {
  if (field.is_map()) return "a map";
  if (field.is_repeated()) return "repeated";
  if (field.is_required()) return "required";
  return field.has_presence() ? "optional" : "without presence";
}

std::string OneofOf(const FieldDescriptor& field) {
  const OneofDescriptor* oneof = field.real_containing_oneof();
  return oneof == nullptr ? "in no oneof" : "in oneof " + oneof->name();
}

void CompareFields(const FieldDescriptor& released, const FieldDescriptor& current,
                   Comparison& comparison) {
  const std::string& where = released.full_name();
  comparison.CheckSame("FIELD_SAME_NAME", where, released.name(), current.name());
  comparison.CheckSame("FIELD_SAME_JSON_NAME", where, released.json_name(), current.json_name());
  comparison.CheckSame("FIELD_SAME_TYPE", where, TypeOf(released), TypeOf(current));
  comparison.CheckSame("FIELD_SAME_CARDINALITY", where, CardinalityOf(released),
                       CardinalityOf(current));
  comparison.CheckSame("FIELD_SAME_ONEOF", where, OneofOf(released), OneofOf(current));
}

// Of messages and enums.
//   end_offset  1 when a range includes its end, as those of enums do
template <typename DescriptorType>
void CompareReserved(std::string_view rule, const DescriptorType& released,
                     const DescriptorType& current, int end_offset, Comparison& comparison) {
  for (int index = 0; index < released.reserved_range_count(); ++index) {
    const auto& range = *released.reserved_range(index);
    for (int number = range.start; number < range.end + end_offset; ++number) {
      if (!current.IsReservedNumber(number)) {
        comparison.Refuse(rule, released.full_name(),
                          fmt::format("{} is no longer reserved", number));
      }
    }
  }
  for (int index = 0; index < released.reserved_name_count(); ++index) {
    if (!current.IsReservedName(released.reserved_name(index))) {
      comparison.Refuse(rule, released.full_name(),
                        released.reserved_name(index) + " is no longer reserved");
    }
  }
}

// Enums.

void CompareEnums(const EnumDescriptor& released, const EnumDescriptor& current,
                  Comparison& comparison) {
  for (int index = 0; index < released.value_count(); ++index) {
    const EnumValueDescriptor& value = *released.value(index);
    const EnumValueDescriptor* now = current.FindValueByNumber(value.number());
    if (now == nullptr) {
      comparison.RefuseGone("ENUM_VALUE_NO_DELETE", value.full_name());
    } else {
      comparison.CheckSame("ENUM_VALUE_SAME_NAME", value.full_name(), value.name(), now->name());
    }
  }
  CompareReserved("RESERVED_ENUM_NO_DELETE", released, current, 1, comparison);
}

// Messages.

void CompareMessages(const Descriptor& released, const Descriptor& current,
                     Comparison& comparison) {
  for (int index = 0; index < released.field_count(); ++index) {
    const FieldDescriptor& field = *released.field(index);
    if (const FieldDescriptor* now = current.FindFieldByNumber(field.number())) {
      CompareFields(field, *now, comparison);
    } else {
      comparison.RefuseGone("FIELD_NO_DELETE", field.full_name());
    }
  }
  for (int index = 0; index < released.real_oneof_decl_count(); ++index) {
    const OneofDescriptor& oneof = *released.oneof_decl(index);
    if (current.FindOneofByName(oneof.name()) == nullptr) {
      comparison.RefuseGone("ONEOF_NO_DELETE", oneof.full_name());
    }
  }
  CompareReserved("RESERVED_MESSAGE_NO_DELETE", released, current, 0, comparison);
  for (int index = 0; index < released.enum_type_count(); ++index) {
    const EnumDescriptor& type = *released.enum_type(index);
    if (const EnumDescriptor* now = current.FindEnumTypeByName(type.name())) {
      CompareEnums(type, *now, comparison);
    } else {
      comparison.RefuseGone("ENUM_NO_DELETE", type.full_name());
    }
  }
  for (int index = 0; index < released.nested_type_count(); ++index) {
    const Descriptor& nested = *released.nested_type(index);
    if (nested.options().map_entry()) continue;  // FIELD_SAME_TYPE compares them
    if (const Descriptor* now = current.FindNestedTypeByName(nested.name())) {
      CompareMessages(nested, *now, comparison);
    } else {
      comparison.RefuseGone("MESSAGE_NO_DELETE", nested.full_name());
    }
  }
}

// Services.

std::string LevelOf(const MethodDescriptor& method) {
  return google::protobuf::MethodOptions::IdempotencyLevel_Name(
      method.options().idempotency_level());
}

std::string StreamingOf(bool streaming) { return streaming ? "a stream" : "one message"; }

void CompareMethods(const MethodDescriptor& released, const MethodDescriptor& current,
                    Comparison& comparison) {
  const std::string& where = released.full_name();
  comparison.CheckSame("RPC_SAME_REQUEST_TYPE", where, released.input_type()->full_name(),
                       current.input_type()->full_name());
  comparison.CheckSame("RPC_SAME_RESPONSE_TYPE", where, released.output_type()->full_name(),
                       current.output_type()->full_name());
  comparison.CheckSame("RPC_SAME_CLIENT_STREAMING", where, StreamingOf(released.client_streaming()),
                       StreamingOf(current.client_streaming()));
  comparison.CheckSame("RPC_SAME_SERVER_STREAMING", where, StreamingOf(released.server_streaming()),
                       StreamingOf(current.server_streaming()));
  comparison.CheckSame("RPC_SAME_IDEMPOTENCY_LEVEL", where, LevelOf(released), LevelOf(current));
}

void CompareServices(const ServiceDescriptor& released, const ServiceDescriptor& current,
                     Comparison& comparison) {
  for (int index = 0; index < released.method_count(); ++index) {
    const MethodDescriptor& method = *released.method(index);
    if (const MethodDescriptor* now = current.FindMethodByName(method.name())) {
      CompareMethods(method, *now, comparison);
    } else {
      comparison.RefuseGone("RPC_NO_DELETE", method.full_name());
    }
  }
}

// Files.

// An option that the release did not set may be added: there is no code that depends on it.
void CompareOptions(const FileDescriptor& released, const FileDescriptor& current,
                    Comparison& comparison) {
  for (const FileOptionName& option : kFileOptions) {
    const std::string before = ValueOf(option.option, released.options());
    if (before.empty()) continue;
    comparison.CheckSame(fmt::format("FILE_SAME_{}", option.name), released.name(), before,
                         ValueOf(option.option, current.options()));
  }
}

// A type that moves to another file is gone from its own: C++ and Python clients name the file.
void CompareFiles(const FileDescriptor& released, const FileDescriptor& current,
                  Comparison& comparison) {
  comparison.CheckSame("FILE_SAME_PACKAGE", released.name(), released.package(), current.package());
  comparison.CheckSame("FILE_SAME_SYNTAX", released.name(),
                       FileDescriptor::SyntaxName(released.syntax()),
                       FileDescriptor::SyntaxName(current.syntax()));
  CompareOptions(released, current, comparison);
  for (int index = 0; index < released.message_type_count(); ++index) {
    const Descriptor& message = *released.message_type(index);
    if (const Descriptor* now = current.FindMessageTypeByName(message.name())) {
      CompareMessages(message, *now, comparison);
    } else {
      comparison.RefuseGone("MESSAGE_NO_DELETE", message.full_name());
    }
  }
  for (int index = 0; index < released.enum_type_count(); ++index) {
    const EnumDescriptor& type = *released.enum_type(index);
    if (const EnumDescriptor* now = current.FindEnumTypeByName(type.name())) {
      CompareEnums(type, *now, comparison);
    } else {
      comparison.RefuseGone("ENUM_NO_DELETE", type.full_name());
    }
  }
  for (int index = 0; index < released.service_count(); ++index) {
    const ServiceDescriptor& service = *released.service(index);
    if (const ServiceDescriptor* now = current.FindServiceByName(service.name())) {
      CompareServices(service, *now, comparison);
    } else {
      comparison.RefuseGone("SERVICE_NO_DELETE", service.full_name());
    }
  }
}

}  // namespace

Findings BreakingChanges(std::span<const FileDescriptor* const> released,
                         std::span<const FileDescriptor* const> current) {
  Comparison comparison;
  for (const FileDescriptor* file : released) {
    const auto now = std::ranges::find(current, file->name(), &FileDescriptor::name);
    if (now == current.end()) {
      comparison.RefuseGone("FILE_NO_DELETE", file->name());
    } else {
      CompareFiles(*file, **now, comparison);
    }
  }
  return comparison.TakeFindings();
}

std::span<const std::string_view> BreakingRules() { return kBreakingRules; }

}  // namespace simile::wire_contract
