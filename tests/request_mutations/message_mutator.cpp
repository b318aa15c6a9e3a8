#include "request_mutations/message_mutator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

namespace simile::request_mutations {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::size_t kLearnedMax = 64;
constexpr std::size_t kRepeatedMax = 6'000;  // values of one field

constexpr std::array<std::uint64_t, 24> kNumbers = {
    0,      1,      2,         3,         7,         10,           11,         59,
    60,     100,    127,       1'000,     1'024,     1'025,        9'999,      10'000,
    10'001, 65'536, 1U << 20U, 1U << 26U, 1U << 31U, 0xffff'ffffU, 1ULL << 63, ~0ULL};

constexpr std::array<std::size_t, 10> kCounts = {1, 1, 2, 3, 23, 24, 25, 100, 1'024, 1'025};

// Well-formed UTF-8 that is hard to print, compare or fold.
constexpr std::array<const char*, 8> kOddTexts = {"",
                                                  " ",
                                                  "\x01\x02\x7f",
                                                  "\xe2\x80\xae\x67\x6e\x70",
                                                  "\xf0\x9f\x8e\xac",
                                                  "e\xcc\x81\xcc\x81",
                                                  "\xc4\xb0\xc4\xb1\xc5\xbf\xef\xac\x81",
                                                  "\"'\\`$(){}%n%s"};

}  // namespace

MessageMutator::MessageMutator(std::uint64_t seed, std::vector<std::string> words)
    : random_(seed),
      words_(std::move(words)),
      next_learned_(words_.size()),
      own_words_(words_.size()) {}

void MessageMutator::Learn(const std::string& word) {
  if (next_learned_ == words_.size()) {
    words_.push_back(word);
  } else {
    words_[next_learned_] = word;
  }
  if (++next_learned_ == own_words_ + kLearnedMax) next_learned_ = own_words_;
}

void MessageMutator::Mutate(Message& message, const Message& donor) {
  const std::size_t changes = random_.Between(1, 4);
  for (std::size_t i = 0; i < changes; ++i) Change(message, donor);
}

void MessageMutator::Change(Message& message, const Message& donor) {
  const int fields = message.GetDescriptor()->field_count();
  if (fields == 0 || random_.OneIn(50)) return AddUnknownField(message);
  const Reflection& reflection = *message.GetReflection();
  const FieldDescriptor& field = *message.GetDescriptor()->field(
      static_cast<int>(random_.Below(static_cast<std::size_t>(fields))));
  if (random_.OneIn(12)) {  // the donor's field, whole
    const std::unique_ptr<Message> copy(donor.New());
    copy->CopyFrom(donor);
    reflection.SwapFields(&message, copy.get(), {&field});
    return;
  }
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (field.is_repeated()) {
    const int size = reflection.FieldSize(message, &field);
    if (!is_message || size == 0 || random_.OneIn(4)) return ChangeRepeated(message, field);
    const auto chosen = static_cast<int>(random_.Below(static_cast<std::size_t>(size)));
    Message& part = *reflection.MutableRepeatedMessage(&message, &field, chosen);
    return Change(part, part);
  }
  if (!is_message || random_.OneIn(6)) return ChangeSingular(message, field);
  Message& part = *reflection.MutableMessage(&message, &field);
  const Message& same = reflection.GetMessage(donor, &field);
  Change(part, same);
}

void MessageMutator::ChangeSingular(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (random_.OneIn(4)) return reflection.ClearField(&message, &field);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, &field, static_cast<std::int32_t>(Number()));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, static_cast<std::int64_t>(Number()));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(Number()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, Number());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, Real());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(&message, &field, static_cast<float>(Real()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, random_.OneIn(2));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(&message, &field, static_cast<int>(random_.Below(8)) - 1);
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field,
                                  field.type() == FieldDescriptor::TYPE_BYTES ? Bytes() : Text());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection.MutableMessage(&message, &field)->Clear();
      return;
  }
}

void MessageMutator::ChangeRepeated(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  switch (random_.Below(6)) {
    case 0:
      return reflection.ClearField(&message, &field);
    case 1:
      if (size > 0) reflection.RemoveLast(&message, &field);
      return;
    case 2:
      if (size > 1) {
        reflection.SwapElements(&message, &field, 0,
                                static_cast<int>(random_.Below(static_cast<std::size_t>(size))));
      }
      return;
    default: {
      const std::size_t count = kCounts[random_.Below(kCounts.size())];
      for (std::size_t i = 0; i < count; ++i) {
        if (reflection.FieldSize(message, &field) >= static_cast<int>(kRepeatedMax)) return;
        Add(message, field);
      }
    }
  }
}

void MessageMutator::Add(Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const bool odd = random_.OneIn(200);
      return reflection.AddFloat(&message, &field,
                                 odd ? static_cast<float>(Real()) : random_.Signed());
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.AddString(&message, &field,
                                  field.type() == FieldDescriptor::TYPE_BYTES ? Bytes() : Text());
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const int size = reflection.FieldSize(message, &field);
      Message& added = *reflection.AddMessage(&message, &field);
      if (size == 0 || random_.OneIn(3)) return Change(added, added);
      added.CopyFrom(reflection.GetRepeatedMessage(
          message, &field, static_cast<int>(random_.Below(static_cast<std::size_t>(size)))));
      return;
    }
    default:
      return;  // no request has repeated fields of other types
  }
}

void MessageMutator::AddUnknownField(Message& message) {
  auto& unknown = *message.GetReflection()->MutableUnknownFields(&message);
  const int number = static_cast<int>(random_.Between(1, 3'000));
  switch (random_.Below(4)) {
    case 0:
      return unknown.AddVarint(number, Number());
    case 1:
      return unknown.AddFixed32(number, static_cast<std::uint32_t>(Number()));
    case 2:
      *unknown.AddLengthDelimited(number) = Bytes();
      return;
    default:
      unknown.AddGroup(number)->AddVarint(1, Number());
  }
}

std::uint64_t MessageMutator::Number() {
  if (random_.OneIn(8)) return random_.Bits() >> random_.Below(64);
  const std::uint64_t number = kNumbers[random_.Below(kNumbers.size())];
  return random_.OneIn(8) ? std::uint64_t{0} - number : number;
}

double MessageMutator::Real() {
  constexpr std::array<double, 14> kReals = {0,
                                             -0.0,
                                             1,
                                             -1,
                                             0.5,
                                             1.0000001,
                                             2,
                                             1e-45,
                                             1e38,
                                             1e300,
                                             std::numeric_limits<double>::infinity(),
                                             -std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN(),
                                             -0.25};
  return random_.OneIn(3) ? random_.Signed() : kReals[random_.Below(kReals.size())];
}

std::string MessageMutator::Text() {
  const auto word = [this] { return words_[random_.Below(words_.size())]; };
  switch (random_.Below(12)) {
    case 0:
      return kOddTexts[random_.Below(kOddTexts.size())];
    case 1:
      return std::string(kCounts[random_.Below(kCounts.size())] * 8, random_.OneIn(2) ? 'a' : '(');
    case 2:
      return word() + (random_.OneIn(2) ? " AND " : " OR ") + word();
    case 3: {
      std::string text = word();
      if (!text.empty()) text.resize(random_.Below(text.size() + 1));
      return text;
    }
    case 4:
      return "NOT (" + word() + ")";
    default:
      return word();
  }
}

std::string MessageMutator::Bytes() {
  constexpr std::array<std::size_t, 8> kSizes = {0, 1, 47, 48, 96, 97, 192, 4'096};
  std::string bytes(kSizes[random_.Below(kSizes.size())], '\0');
  const bool zeros = random_.OneIn(8);
  for (char& byte : bytes) byte = zeros ? '\0' : static_cast<char>(random_.Bits());
  return bytes;
}

std::string MessageMutator::Nested(std::size_t depth) {
  // Groups of an unknown field, which need no lengths; or field 2, which requests have.
  if (random_.OneIn(2)) return std::string(depth, '\x0b');
  std::string bytes;
  for (std::size_t i = 0; i < depth && bytes.size() < 0x3fff; ++i) {
    std::string outer = "\x12";
    if (bytes.size() < 0x80) {
      outer += static_cast<char>(bytes.size());
    } else {
      outer += static_cast<char>((bytes.size() & 0x7f) | 0x80);
      outer += static_cast<char>(bytes.size() >> 7);
    }
    bytes = outer + bytes;
  }
  return bytes;
}

void MessageMutator::MutateBytes(std::string& bytes) {
  const std::size_t place = random_.Below(bytes.size() + 1);
  switch (random_.Below(6)) {
    case 0:
      bytes.resize(place);
      return;
    case 1:
      bytes.insert(place, Bytes());
      return;
    case 2:
      bytes.insert(place, Nested(kCounts[random_.Below(kCounts.size())]));
      return;
    case 3:
      bytes += bytes.substr(place);
      return;
    default:
      for (std::size_t i = random_.Between(1, 4); i > 0 && !bytes.empty(); --i) {
        bytes[random_.Below(bytes.size())] = static_cast<char>(random_.Bits());
      }
  }
}

}  // namespace simile::request_mutations
