#pragma once

#include <span>

#include <google/protobuf/descriptor.h>

#include "google/protobuf/descriptor.pb.h"

namespace simile::wire_contract {

using FilesView = std::span<const google::protobuf::FileDescriptor* const>;

// Each function calls visit(descriptor) for all descriptors of a kind. The entries of maps are left
// out: no .proto file declares them.

template <typename Visit>
void ForEachMessageIn(const google::protobuf::Descriptor& message, const Visit& visit) {
  if (message.options().map_entry()) return;
  visit(message);
  for (int index = 0; index < message.nested_type_count(); ++index) {
    ForEachMessageIn(*message.nested_type(index), visit);
  }
}

template <typename Visit>
void ForEachMessage(FilesView files, const Visit& visit) {
  for (const google::protobuf::FileDescriptor* file : files) {
    for (int index = 0; index < file->message_type_count(); ++index) {
      ForEachMessageIn(*file->message_type(index), visit);
    }
  }
}

template <typename Visit>
void ForEachField(FilesView files, const Visit& visit) {
  ForEachMessage(files, [&](const google::protobuf::Descriptor& message) {
    for (int index = 0; index < message.field_count(); ++index) visit(*message.field(index));
  });
}

template <typename Visit>
void ForEachEnum(FilesView files, const Visit& visit) {
  for (const google::protobuf::FileDescriptor* file : files) {
    for (int index = 0; index < file->enum_type_count(); ++index) visit(*file->enum_type(index));
  }
  ForEachMessage(files, [&](const google::protobuf::Descriptor& message) {
    for (int index = 0; index < message.enum_type_count(); ++index) {
      visit(*message.enum_type(index));
    }
  });
}

template <typename Visit>
void ForEachEnumValue(FilesView files, const Visit& visit) {
  ForEachEnum(files, [&](const google::protobuf::EnumDescriptor& type) {
    for (int index = 0; index < type.value_count(); ++index) visit(*type.value(index));
  });
}

template <typename Visit>
void ForEachService(FilesView files, const Visit& visit) {
  for (const google::protobuf::FileDescriptor* file : files) {
    for (int index = 0; index < file->service_count(); ++index) visit(*file->service(index));
  }
}

template <typename Visit>
void ForEachMethod(FilesView files, const Visit& visit) {
  ForEachService(files, [&](const google::protobuf::ServiceDescriptor& service) {
    for (int index = 0; index < service.method_count(); ++index) visit(*service.method(index));
  });
}

}  // namespace simile::wire_contract
