#include "app/config/json_file.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <fmt/format.h>

#include "base/atomic_file.h"

namespace simile::app {
namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

// The version of the file's format. Each entry also has the version of its measurement.
constexpr const char* kFormat = "simile_cpu_tuning";
constexpr int kVersion = 1;
constexpr std::size_t kBytesMax = 1U << 20;

Json NewFile() { return {{kFormat, kVersion}, {"machines", Json::array()}}; }

absl::Status NotATuningFile(const std::filesystem::path& file) {
  return absl::InvalidArgumentError(
      fmt::format("{}: not a tuning cache of this release; it is left as it is", file.string()));
}

// Of lists and objects inside one another: far more than any file has.
constexpr std::size_t kDepthMax = 32;

// Destroys what it holds, the innermost first: a list or an object without members is destroyed
// without an allocation. Recursion is bounded by kDepthMax.
void Clear(json& value) {
  if (!value.is_structured()) return;
  for (json& each : value) Clear(each);
  value.clear();
}

// Takes the library's events and builds the tree in place, so that the owner of the root destroys
// the finished part when memory runs out.
class TreeBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit TreeBuilder(json& root) : root_(root) {}

  const std::string& problem() const { return problem_; }  // empty for none

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& value) override { return Add(std::move(value)); }  // never in a text
  bool start_object(std::size_t /*size*/) override { return Open(json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*size*/) override { return Open(json::array()); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return !open_.back()->contains(name_) || Fail(fmt::format("\"{}\" is given twice", name_));
  }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                   const json::exception& error) override {
    // Drops the library's error number in brackets; the rest says where the error is.
    const std::string_view what = error.what();
    const std::size_t end = what.find("] ");
    return Fail(
        fmt::format("not JSON: {}", end == std::string_view::npos ? what : what.substr(end + 2)));
  }

 private:
  bool Add(json value) {
    last_ = &root_;
    if (!open_.empty()) {
      json& parent = *open_.back();
      last_ = parent.is_array() ? &parent.emplace_back(nullptr) : &parent[name_];
    }
    last_->swap(value);
    return true;
  }
  bool Open(json value) {
    if (open_.size() == kDepthMax) {
      return Fail(fmt::format("more than {} lists and objects inside one another", kDepthMax));
    }
    Add(std::move(value));
    open_.push_back(last_);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;  // ends the parse
  }

  json& root_;
  std::vector<json*> open_;  // lists and objects, the outermost first
  json* last_ = nullptr;     // what was added last
  std::string name_;         // of the member that comes next
  std::string problem_;
};

}  // namespace

JsonObject::~JsonObject() { Clear(object_); }

absl::StatusOr<JsonObject> JsonObject::Parse(std::string_view text, std::string_view file_name,
                                             std::string_view example) {
  JsonObject object;
  TreeBuilder builder(object.object_);
  if (!json::sax_parse(text, &builder)) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", file_name, builder.problem()));
  }
  if (!object.object_.is_object()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: a JSON object belongs here, as in {}", file_name, example));
  }
  return object;
}

absl::StatusOr<Json> ReadTuningFile(const std::filesystem::path& file) {
  const absl::StatusOr<std::string> text = base::ReadWholeFile(file, kBytesMax);
  if (absl::IsInvalidArgument(text.status())) return NotATuningFile(file);
  if (!text.ok()) return text.status();
  if (text->empty()) return NewFile();
  Json content = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const bool is_ours = content.is_object() && content.contains(kFormat) &&
                       content.at(kFormat) == kVersion && content.contains("machines") &&
                       content.at("machines").is_array();
  if (!is_ours) return NotATuningFile(file);
  return content;
}

absl::Status WriteTuningFile(const std::filesystem::path& file, const Json& content) {
  constexpr int kIndent = 1;
  return base::ReplaceFile(file,
                           content.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n",
                           {.create_folders = true, .mode = 0644});
}

bool IsEntryFor(const Json& entry, const Json& key) {
  return std::ranges::all_of(key.items(), [&](const auto& member) {
    return entry.contains(member.key()) && entry.at(member.key()) == member.value();
  });
}

}  // namespace simile::app
