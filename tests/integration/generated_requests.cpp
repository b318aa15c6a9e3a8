#include "integration/generated_requests.h"

#include <set>
#include <utility>

#include <google/protobuf/descriptor.h>

namespace simile::integration {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;
using Messages = std::vector<std::unique_ptr<Message>>;

constexpr int kDepthMax = 6;
constexpr int kNumbers = 6;  // of a vector
constexpr double kReal = 0.5;

std::unique_ptr<Message> CopyMessage(const Message& message) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  return copy;
}

// Numbers of a vector, as bytes.
std::string PackedNumbers() {
  const std::vector<float> numbers(kNumbers, static_cast<float>(kReal));
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

class Generator {
 public:
  explicit Generator(const RequestWords& words) : words_(words) {}

  // All requests of a type.
  Messages All(const Message& prototype, int depth) {
    Messages all;
    for (const bool sets_enums : {false, true}) {
      if (sets_enums && !HasEnum(*prototype.GetDescriptor())) break;
      const auto usual = Usual(prototype, sets_enums, depth);
      all.push_back(CopyMessage(*usual));
      const Descriptor& type = *prototype.GetDescriptor();
      for (int i = 0; i < type.field_count(); ++i) AddChanged(*usual, *type.field(i), depth, all);
    }
    return all;
  }

 private:
  static bool HasEnum(const Descriptor& type) {
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i)->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) return true;
    }
    return false;
  }

  // A request with what it needs to be answered.
  std::unique_ptr<Message> Usual(const Message& prototype, bool sets_enums, int depth) {
    std::unique_ptr<Message> message(prototype.New());
    const Descriptor& type = *prototype.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.real_containing_oneof() == nullptr) SetUsual(*message, field, sets_enums, depth);
    }
    for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
      SetUsual(*message, *type.oneof_decl(i), sets_enums, depth);
    }
    return message;
  }

  void SetUsual(Message& message, const FieldDescriptor& field, bool sets_enums, int depth) {
    const Reflection& reflection = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        if (field.type() == FieldDescriptor::TYPE_BYTES)
          return SetText(message, field, PackedNumbers());
        if (const std::string word = words_.usual(field.name()); !word.empty()) {
          SetText(message, field, word);
        }
        return;
      case FieldDescriptor::CPPTYPE_FLOAT:
        if (field.is_repeated()) SetNumbers(message, field);
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        if (sets_enums && !field.is_repeated()) reflection.SetEnumValue(&message, &field, 1);
        return;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (!field.is_repeated() || field.is_map() || depth >= kDepthMax) return;
        reflection.AddAllocatedMessage(
            &message, &field, Usual(FindPrototype(field), sets_enums, depth + 1).release());
        return;
      default:
        return;
    }
  }

  // One of the fields: a text that has a usual word, or else the first message.
  void SetUsual(Message& message, const OneofDescriptor& oneof, bool sets_enums, int depth) {
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < oneof.field_count(); ++i) {
      const FieldDescriptor& field = *oneof.field(i);
      if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
      SetUsual(message, field, sets_enums, depth);
      if (reflection.HasOneof(message, &oneof)) return;
    }
    const FieldDescriptor& first = *oneof.field(0);
    if (first.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || depth >= kDepthMax) return;
    reflection.SetAllocatedMessage(
        &message, Usual(FindPrototype(first), sets_enums, depth + 1).release(), &first);
  }

  // Copies of a request with other values of one field.
  void AddChanged(const Message& usual, const FieldDescriptor& field, int depth, Messages& all) {
    const auto change = [&](const auto& set) {
      all.push_back(CopyMessage(usual));
      set(*all.back(), *usual.GetReflection());
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        for (const std::string& word : words_.tried(field.name())) {
          change([&](Message& copy, const auto&) { SetText(copy, field, word); });
        }
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        for (int i = 0; i < field.enum_type()->value_count() && !field.is_repeated(); ++i) {
          change([&](Message& copy, const Reflection& reflection) {
            reflection.SetEnum(&copy, &field, field.enum_type()->value(i));
          });
        }
        return;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (field.is_map() || depth >= kDepthMax) return;
        for (std::unique_ptr<Message>& part : All(FindPrototype(field), depth + 1)) {
          change([&](Message& copy, const Reflection& reflection) {
            if (!field.is_repeated()) {
              return reflection.SetAllocatedMessage(&copy, part.release(), &field);
            }
            reflection.ClearField(&copy, &field);
            reflection.AddAllocatedMessage(&copy, &field, part.release());
          });
        }
        return;
      default:
        for (const int number : {0, 1, 7}) {
          change([&](Message& copy, const auto&) { SetNumber(copy, field, number); });
        }
        return;
    }
  }

  static void SetText(Message& message, const FieldDescriptor& field, const std::string& text) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) return reflection.SetString(&message, &field, text);
    reflection.ClearField(&message, &field);
    reflection.AddString(&message, &field, text);
  }

  static void SetNumbers(Message& message, const FieldDescriptor& field) {
    for (int i = 0; i < kNumbers; ++i) {
      message.GetReflection()->AddFloat(&message, &field, static_cast<float>(kReal));
    }
  }

  static void SetNumber(Message& message, const FieldDescriptor& field, int number) {
    const Reflection& reflection = *message.GetReflection();
    if (field.is_repeated()) return;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(&message, &field, number != 0);
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection.SetInt32(&message, &field, number);
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(&message, &field, number);
      case FieldDescriptor::CPPTYPE_UINT32:
        return reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(number));
      case FieldDescriptor::CPPTYPE_UINT64:
        return reflection.SetUInt64(&message, &field, static_cast<std::uint64_t>(number));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.SetFloat(&message, &field, static_cast<float>(number * kReal));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(&message, &field, number * kReal);
      default:
        return;
    }
  }

  static const Message& FindPrototype(const FieldDescriptor& field) {
    return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(
        field.message_type());
  }

  const RequestWords& words_;
};

}  // namespace

Messages GenerateRequests(const Message& prototype, const RequestWords& words) {
  Messages all = Generator(words).All(prototype, 0);
  std::set<std::string> seen;
  std::erase_if(all, [&](const std::unique_ptr<Message>& message) {
    return !seen.insert(message->SerializeAsString()).second;
  });
  return all;
}

}  // namespace simile::integration
