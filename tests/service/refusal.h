#pragma once

#include <ostream>
#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <absl/status/status.h>

#include "base/error_detail.h"

namespace simile::service {

// Requests as protobuf's text.
inline const std::string kFilms = "collection: 'films' ";
inline const std::string kQuery = kFilms + "queries { id: 'a' } ";

template <class Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// A request and the message it must be refused with, which begins with the field that is wrong.
struct Refusal {
  const char* name;
  std::string request;
  std::string message;
  base::ErrorReason reason = base::ErrorReason::kInvalidField;
};
inline void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

inline std::string Name(const testing::TestParamInfo<Refusal>& info) { return info.param.name; }

inline void ExpectRefused(const absl::Status& status, const std::string& message,
                          base::ErrorReason reason = base::ErrorReason::kInvalidField) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(std::string(status.message()), message);
  EXPECT_EQ(base::InfoOf(base::ReasonOf(status)).name, base::InfoOf(reason).name);
  EXPECT_EQ(base::FieldOf(status), message.substr(0, message.find(": ")));
}

}  // namespace simile::service
