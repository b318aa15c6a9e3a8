#pragma once

#include <ostream>
#include <string>

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <absl/status/status.h>

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

// A request and the message it must be refused with.
struct Refusal {
  const char* name;
  std::string request;
  std::string message;
};
inline void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

inline std::string Name(const testing::TestParamInfo<Refusal>& info) { return info.param.name; }

inline void ExpectRefused(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), message);
}

}  // namespace simile::service
