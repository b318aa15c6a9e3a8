#pragma once

#include <google/protobuf/descriptor.h>

namespace simile::wire_contract {

// Calls visit(descriptor) for a message and all messages in it. The entries of maps are left out:
// no .proto file declares them.
template <typename Visit>
void ForEachMessageIn(const google::protobuf::Descriptor& message, const Visit& visit) {
  if (message.options().map_entry()) return;
  visit(message);
  for (int index = 0; index < message.nested_type_count(); ++index) {
    ForEachMessageIn(*message.nested_type(index), visit);
  }
}

template <typename Visit>
void ForEachMessage(const google::protobuf::FileDescriptor& file, const Visit& visit) {
  for (int index = 0; index < file.message_type_count(); ++index) {
    ForEachMessageIn(*file.message_type(index), visit);
  }
}

template <typename Visit>
void ForEachField(const google::protobuf::FileDescriptor& file, const Visit& visit) {
  ForEachMessage(file, [&](const google::protobuf::Descriptor& message) {
    for (int index = 0; index < message.field_count(); ++index) visit(*message.field(index));
  });
}

template <typename Visit>
void ForEachEnum(const google::protobuf::FileDescriptor& file, const Visit& visit) {
  for (int index = 0; index < file.enum_type_count(); ++index) visit(*file.enum_type(index));
  ForEachMessage(file, [&](const google::protobuf::Descriptor& message) {
    for (int index = 0; index < message.enum_type_count(); ++index) {
      visit(*message.enum_type(index));
    }
  });
}

template <typename Visit>
void ForEachEnumValue(const google::protobuf::FileDescriptor& file, const Visit& visit) {
  ForEachEnum(file, [&](const google::protobuf::EnumDescriptor& type) {
    for (int index = 0; index < type.value_count(); ++index) visit(*type.value(index));
  });
}

template <typename Visit>
void ForEachService(const google::protobuf::FileDescriptor& file, const Visit& visit) {
  for (int index = 0; index < file.service_count(); ++index) visit(*file.service(index));
}

template <typename Visit>
void ForEachMethod(const google::protobuf::FileDescriptor& file, const Visit& visit) {
  ForEachService(file, [&](const google::protobuf::ServiceDescriptor& service) {
    for (int index = 0; index < service.method_count(); ++index) visit(*service.method(index));
  });
}

}  // namespace simile::wire_contract
