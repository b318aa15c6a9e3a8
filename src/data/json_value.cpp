#include "data/json_value.h"

#include <array>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

absl::StatusOr<PayloadValue> ReadValue(JsonReader& reader, JsonToken token);

// Finds names that occur twice in an object: by a linear search while there are few names, then by
// a hash set.
class NamesSeen {
 public:
  bool Add(const PayloadObject& object, const std::string& name) {
    constexpr std::size_t kLinearMax = 16;
    if (object.size() < kLinearMax) return FindMember(object, name) == nullptr;
    if (names_.empty()) {
      for (const auto& member : object) names_.insert(member.first);
    }
    return names_.insert(name).second;
  }

 private:
  std::unordered_set<std::string> names_;
};

// Reads an object after its '{'.
absl::StatusOr<PayloadObject> ReadObject(JsonReader& reader) {
  PayloadObject object;
  NamesSeen seen;
  while (true) {
    const absl::StatusOr<JsonToken> key = reader.Next();
    if (!key.ok()) return key.status();
    if (*key == JsonToken::kObjectEnd) return object;
    std::string name = reader.text();
    if (!seen.Add(object, name)) {
      return reader.ErrorAtToken(fmt::format("{} occurs twice in one object", base::Quoted(name)));
    }
    const absl::StatusOr<JsonToken> token = reader.Next();
    if (!token.ok()) return token.status();
    absl::StatusOr<PayloadValue> value = ReadValue(reader, *token);
    if (!value.ok()) return value.status();
    object.emplace_back(std::move(name), *std::move(value));
  }
}

// Reads a list after its '['.
absl::StatusOr<PayloadList> ReadList(JsonReader& reader) {
  PayloadList list;
  while (true) {
    const absl::StatusOr<JsonToken> token = reader.Next();
    if (!token.ok()) return token.status();
    if (*token == JsonToken::kListEnd) return list;
    absl::StatusOr<PayloadValue> value = ReadValue(reader, *token);
    if (!value.ok()) return value.status();
    list.push_back(*std::move(value));
  }
}

// Recursion is bounded by the reader's depth_max.
absl::StatusOr<PayloadValue> ReadValue(JsonReader& reader, JsonToken token) {
  switch (token) {
    case JsonToken::kObjectBegin: {
      absl::StatusOr<PayloadObject> object = ReadObject(reader);
      if (!object.ok()) return object.status();
      return PayloadValue{*std::move(object)};
    }
    case JsonToken::kListBegin: {
      absl::StatusOr<PayloadList> list = ReadList(reader);
      if (!list.ok()) return list.status();
      return PayloadValue{*std::move(list)};
    }
    case JsonToken::kString:
      return PayloadValue{reader.text()};
    case JsonToken::kInteger:
      return PayloadValue{reader.integer()};
    case JsonToken::kNumber:
      return PayloadValue{reader.number()};
    case JsonToken::kTrue:
      return PayloadValue{true};
    case JsonToken::kFalse:
      return PayloadValue{false};
    default:
      return PayloadValue{};
  }
}

}  // namespace

absl::StatusOr<PayloadObject> ReadJsonObject(JsonReader& reader) {
  const absl::StatusOr<JsonToken> first = reader.Next();
  if (!first.ok()) return first.status();
  if (*first != JsonToken::kObjectBegin) {
    return reader.ErrorAtToken(
        fmt::format("expected an object {{...}}, found {}", Describe(*first)));
  }
  absl::StatusOr<PayloadObject> object = ReadObject(reader);
  if (!object.ok()) return object;
  if (const absl::StatusOr<JsonToken> end = reader.Next(); !end.ok()) return end.status();
  return object;
}

const PayloadValue* FindMember(const PayloadObject& object, std::string_view name) {
  for (const auto& [key, value] : object) {
    if (key == name) return &value;
  }
  return nullptr;
}

const PayloadValue* FindField(const PayloadObject& object, std::string_view name) {
  if (const PayloadValue* const member = FindMember(object, name)) return member;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const PayloadValue* const value = FindMember(object, name.substr(0, dot));
  const auto* const inside = value == nullptr ? nullptr : std::get_if<PayloadObject>(&value->value);
  return inside == nullptr ? nullptr : FindField(*inside, name.substr(dot + 1));
}

std::string_view Describe(const PayloadValue& value) {
  constexpr std::array<std::string_view, 7> kNames = {
      "null", "true or false", "an integer", "a number", "a string", "a list", "an object"};
  return kNames[value.value.index()];
}

}  // namespace simile::data
