#include "data/load/id_list_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/faults.h"
#include "data/formats/json_reader.h"
#include "data/formats/text_shape.h"
#include "data/payload/id_rules.h"

namespace simile::data {
namespace {

constexpr std::string_view kWanted = "a list of ids, [\"a\", ...], or {\"user_ids\": [...]}";

class IdListReader {
 public:
  IdListReader(BufferedReader& in, const std::optional<ExpectedRows>& expected,
               const Limits& limits)
      : in_(in),
        expected_(expected),
        limits_(limits),
        json_(in.display_name(),
              {.depth_max = limits.json_depth_max, .text_bytes_max = limits.jsonl_line_bytes_max}),
        ids_(expected ? expected->count : 0) {
    json_.Begin(in);
  }

  absl::StatusOr<IdIndex> Read() && {
    const absl::StatusOr<JsonToken> first = json_.Next();
    if (!first.ok()) return first.status();
    absl::Status status;
    if (*first == JsonToken::kListBegin) {
      status = ReadList();
    } else if (*first == JsonToken::kObjectBegin) {
      status = ReadObject();
    } else {
      status = json_.ErrorAtToken(fmt::format("expected {}, found {}", kWanted, Describe(*first)));
    }
    if (status.ok()) status = json_.Next().status();
    // Where the syntax ends the reading, its error is the last fault.
    if (!status.ok() && (faults_.empty() || !faults_.Add(status))) return status;
    if (!faults_.empty()) return faults_.ToStatus();
    if (expected_ && ids_.size() != expected_->count) {
      return WrongCount(ids_.size());
    }
    return std::move(ids_).Build();
  }

 private:
  // Reads the members of an object after its '{'.
  absl::Status ReadObject() {
    constexpr std::size_t kMembersMax = 64;
    std::vector<std::string> names;
    bool found_list = false;
    while (true) {
      absl::StatusOr<JsonToken> token = json_.Next();
      if (!token.ok()) return token.status();
      if (*token == JsonToken::kObjectEnd) break;
      if (std::find(names.begin(), names.end(), json_.text()) != names.end()) {
        return json_.ErrorAtToken(
            fmt::format("{} occurs twice in one object", base::Quoted(json_.text())));
      }
      if (names.size() == kMembersMax) {
        return json_.ErrorAtToken(
            fmt::format("more than {} members; expected {}", kMembersMax, kWanted));
      }
      names.push_back(json_.text());
      token = json_.Next();
      if (!token.ok()) return token.status();
      if (*token == JsonToken::kObjectBegin || (*token == JsonToken::kListBegin && found_list)) {
        return json_.ErrorAtToken(fmt::format("{} is {}; expected {}", base::Quoted(names.back()),
                                              found_list ? "a second list or object" : "an object",
                                              kWanted));
      }
      if (*token == JsonToken::kListBegin) {
        found_list = true;
        if (absl::Status status = ReadList(); !status.ok()) return status;
      }
    }
    return found_list
               ? absl::OkStatus()
               : json_.ErrorAtToken(fmt::format("no list in the object; expected {}", kWanted));
  }

  // Reads the ids of a list after its '['.
  absl::Status ReadList() {
    while (true) {
      const absl::StatusOr<JsonToken> token = json_.Next();
      if (!token.ok()) return token.status();
      if (*token == JsonToken::kListEnd) return absl::OkStatus();
      if (expected_ && ids_.size() == expected_->count) {
        if (!faults_.empty()) return faults_.ToStatus();
        return WrongCount(ids_.size() + CountRest(*token));
      }
      if (ids_.size() == limits_.rows_max) {
        return json_.ErrorAtToken(fmt::format("more than {} ids", base::Grouped(limits_.rows_max)));
      }
      absl::Status status = AddId(*token);
      if (status.ok()) continue;
      const bool is_whole = *token != JsonToken::kListBegin && *token != JsonToken::kObjectBegin;
      if (!is_whole || !faults_.Add(status)) return status;
      // Keeps the row numbers of messages right: no id has a control character.
      ids_.Add(fmt::format("\x01{}", ids_.size())).IgnoreError();
    }
  }

  absl::Status AddId(JsonToken token) {
    absl::StatusOr<std::string> id = json_.ErrorAtToken(
        fmt::format("row {} is {}; an id is a string or an integer", ids_.size(), Describe(token)));
    if (token == JsonToken::kString) id = json_.text();
    if (token == JsonToken::kInteger) id = fmt::to_string(json_.integer());
    if (token == JsonToken::kNumber) {
      id = IdFrom(PayloadValue{json_.number()}, limits_);
      if (!id.ok()) {
        id = json_.ErrorAtToken(
            fmt::format("row {} {}", ids_.size(), std::string(id.status().message())));
      }
    }
    if (!id.ok()) return id.status();
    if (const absl::Status status = CheckId(*id, limits_); !status.ok()) {
      return json_.ErrorAtToken(
          fmt::format("the id of row {} {}", ids_.size(), std::string(status.message())));
    }
    if (const absl::Status status = ids_.Add(*id); !status.ok()) {
      return json_.ErrorAtToken(fmt::format("row {}: {}; ids must be distinct", ids_.size(),
                                            std::string(status.message())));
    }
    return absl::OkStatus();
  }

  // How many elements of the list there are from this token on, as far as the syntax is right.
  std::uint64_t CountRest(JsonToken token) {
    std::uint64_t count = 0;
    for (std::size_t depth = 0;;) {
      const bool ends = token == JsonToken::kListEnd || token == JsonToken::kObjectEnd;
      if (ends && depth == 0) return count;
      if (ends) --depth;
      if (!ends && depth == 0) ++count;
      if (token == JsonToken::kListBegin || token == JsonToken::kObjectBegin) ++depth;
      const absl::StatusOr<JsonToken> next = json_.Next();
      if (!next.ok() || *next == JsonToken::kEnd) return count;
      token = *next;
    }
  }

  absl::Status WrongCount(std::uint64_t count) const {
    return absl::InvalidArgumentError(fmt::format("{}: {}, but {}; one id a row is needed",
                                                  in_.display_name(), base::Counted(count, "id"),
                                                  expected_->WhyNot(count)));
  }

  BufferedReader& in_;
  const std::optional<ExpectedRows>& expected_;
  const Limits& limits_;
  JsonReader json_;
  IdIndex::Builder ids_;
  FaultList faults_{in_.display_name()};
};

// Refuses a file that is no JSON, and says what it looks like.
absl::Status CheckShape(BufferedReader& in) {
  const absl::StatusOr<std::string_view> begin = in.Peek();
  if (!begin.ok()) return begin.status();
  const TextShape shape = ClassifyText(*begin);
  if (shape == TextShape::kTable || shape == TextShape::kLines) {
    return Refuse(in, fmt::format("looks like {}; one JSON list of ids is needed, as "
                                  "`jq -Rn '[inputs]'` writes it of a text with one id a line",
                                  shape == TextShape::kTable ? "CSV" : "lines of text"));
  }
  return CheckHoldsData(in, shape);
}

}  // namespace

absl::StatusOr<IdIndex> ReadIdList(BufferedReader& in, const std::optional<ExpectedRows>& expected,
                                   const Limits& limits) {
  if (in.size() > limits.id_list_bytes_max) {
    return absl::InvalidArgumentError(fmt::format("{}: is {} bytes long; at most {} are read",
                                                  in.display_name(), base::Grouped(in.size()),
                                                  base::Grouped(limits.id_list_bytes_max)));
  }
  if (absl::Status shape = CheckShape(in); !shape.ok()) return shape;
  return IdListReader(in, expected, limits).Read();
}

}  // namespace simile::data
