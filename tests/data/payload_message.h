#pragma once

#include <string>
#include <variant>

#include "simile/payload.h"
#include "simile/v1/types.pb.h"

namespace simile::data {

// Fills a value's message by protobuf's own setters: what encoded values are compared with.
inline void FillMessage(const PayloadValue& value, v1::PayloadValue& message) {
  struct Filler {
    v1::PayloadValue& message;

    void operator()(std::monostate) const { message.set_null_value(true); }
    void operator()(bool flag) const { message.set_bool_value(flag); }
    void operator()(std::int64_t number) const { message.set_int_value(number); }
    void operator()(double number) const { message.set_double_value(number); }
    void operator()(const std::string& text) const { message.set_string_value(text); }
    void operator()(const PayloadList& list) const {
      v1::PayloadList& values = *message.mutable_list_value();
      for (const PayloadValue& element : list) FillMessage(element, *values.add_values());
    }
    void operator()(const PayloadObject& object) const {
      auto& fields = *message.mutable_object_value()->mutable_fields();
      for (const PayloadMember& member : object) FillMessage(member.second, fields[member.first]);
    }
  };
  std::visit(Filler{message}, value.value);
}

}  // namespace simile::data
