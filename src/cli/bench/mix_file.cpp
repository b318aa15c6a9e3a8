#include "cli/bench/mix_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "base/nearest_name.h"
#include "cli/wire_names.h"
#include "simile/limits.h"

namespace simile::cli::bench {
namespace {

using MixJson = nlohmann::json;

constexpr std::size_t kMixBytesMax = 1U << 20;
constexpr std::array<std::string_view, 7> kSharedKeys = {"kind",    "weight", "batch", "k",
                                                         "payload", "filter", "bulk"};

// Reads one call of the file. Knows the call's place for messages. Keeps the first error and
// ignores values read after it.
class CallReader {
 public:
  CallReader(const MixJson& call, std::string place, absl::Status& status)
      : call_(call), place_(std::move(place)), status_(status) {}

  const MixJson* Find(const char* key) const {
    const auto found = call_.find(key);
    return found == call_.end() ? nullptr : &*found;
  }

  void Refuse(std::string_view key, std::string_view why) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(key.empty() ? fmt::format("{}: {}", place_, why)
                                                     : fmt::format("{}.{}: {}", place_, key, why));
  }

  void ReadWhole(const char* key, std::uint32_t least, std::uint32_t most, std::uint32_t& value) {
    const MixJson* given = Find(key);
    if (given == nullptr) return;
    if (!given->is_number_unsigned() || given->get<std::uint64_t>() < least ||
        given->get<std::uint64_t>() > most) {
      Refuse(key, fmt::format("{} is not a whole number from {} to {}", given->dump(),
                              base::Grouped(least), base::Grouped(most)));
      return;
    }
    value = given->get<std::uint32_t>();
  }
  void ReadWhole(const char* key, std::uint32_t least, std::uint32_t most,
                 std::optional<std::uint32_t>& value) {
    std::uint32_t read = 0;
    ReadWhole(key, least, most, read);
    if (Find(key) != nullptr) value = read;
  }

  void ReadShare(const char* key, std::optional<double>& value) {
    const MixJson* given = Find(key);
    if (given == nullptr) return;
    if (!given->is_number() || given->get<double>() < 0 || given->get<double>() > 1) {
      Refuse(key, fmt::format("{} is not a number from 0 to 1", given->dump()));
      return;
    }
    value = given->get<double>();
  }

  void ReadWeight(double& value) {
    const MixJson* given = Find("weight");
    if (given == nullptr) return;
    if (!given->is_number() || !(given->get<double>() > 0) || given->get<double>() > 1e9) {
      Refuse("weight", fmt::format("{} is not a number above 0", given->dump()));
      return;
    }
    value = given->get<double>();
  }

  void ReadBool(const char* key, bool& value) {
    const MixJson* given = Find(key);
    if (given == nullptr) return;
    if (!given->is_boolean()) {
      Refuse(key, fmt::format("{} is neither true nor false", given->dump()));
      return;
    }
    value = given->get<bool>();
  }

  void ReadText(const char* key, std::string& value) {
    const MixJson* given = Find(key);
    if (given == nullptr) return;
    if (!given->is_string() || given->get_ref<const std::string&>().empty()) {
      Refuse(key, fmt::format("{} is not a text", given->dump()));
      return;
    }
    value = given->get<std::string>();
  }

  // Reads a text or a list of texts. True if the key is present and valid.
  bool ReadTexts(const char* key, std::vector<std::string>& values) {
    const MixJson* given = Find(key);
    if (given == nullptr) return false;
    const MixJson list = given->is_string() ? MixJson::array({*given}) : *given;
    const bool texts =
        list.is_array() && !list.empty() &&
        std::ranges::all_of(list, [](const MixJson& item) { return item.is_string(); });
    if (!texts) {
      Refuse(key, fmt::format("{} is neither a text nor a list of texts", given->dump()));
      return false;
    }
    values = list.get<std::vector<std::string>>();
    return true;
  }

  void CheckKeys(const CallKind& kind) {
    std::vector<std::string> known(kSharedKeys.begin(), kSharedKeys.end());
    known.insert(known.end(), kind.keys.begin(), kind.keys.end());
    for (const auto& [key, value] : call_.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      const std::string offer = base::DidYouMean(base::NearestName(key, known));
      Refuse("", fmt::format(
                     "a call of kind \"{}\" has no {}.{}", kind.name, base::Quoted(key),
                     offer.empty() ? fmt::format(" It takes {}.", fmt::join(known, ", ")) : offer));
    }
  }

 private:
  const MixJson& call_;
  const std::string place_;
  absl::Status& status_;
};

const CallKind* ReadKind(CallReader& call) {
  std::vector<std::string> names;
  for (const CallKind& kind : CallKinds()) names.emplace_back(kind.name);
  std::string name;
  if (call.Find("kind") == nullptr) {
    call.Refuse("", fmt::format("has no \"kind\"; give one of {}", fmt::join(names, ", ")));
    return nullptr;
  }
  call.ReadText("kind", name);
  const CallKind* kind = FindCallKind(name);
  if (kind == nullptr) {
    const std::string offer = base::DidYouMean(base::NearestName(name, names));
    call.Refuse("kind",
                fmt::format("there is no kind {}.{}", base::Quoted(name),
                            offer.empty() ? fmt::format(" Give one of {}.", fmt::join(names, ", "))
                                          : offer));
  }
  return kind;
}

void ReadCall(CallReader& call, CallSpec& spec) {
  constexpr Limits kLimits;
  spec.kind = ReadKind(call);
  if (spec.kind == nullptr) return;
  call.CheckKeys(*spec.kind);
  call.ReadWeight(spec.weight);
  call.ReadWhole("batch", 1, kLimits.queries_per_call_max, spec.batch);
  call.ReadWhole("k", 1, kLimits.k_max, spec.k);
  std::vector<std::string> payload;
  if (call.ReadTexts("payload", payload)) spec.payload = MakePayloadSelector(payload);
  call.ReadTexts("filter", spec.filters);
  call.ReadBool("bulk", spec.bulk);
  call.ReadWhole("positive", 0, kLimits.examples_max, spec.positive);
  call.ReadWhole("negative", 0, kLimits.examples_max, spec.negative);
  if (spec.positive + spec.negative == 0 || spec.positive + spec.negative > kLimits.examples_max) {
    call.Refuse("positive",
                fmt::format("positive and negative together are 1 to {}", kLimits.examples_max));
  }
  call.ReadText("strategy", spec.strategy);
  if (const auto strategy = ParseStrategy(spec.strategy); !strategy.ok()) {
    call.Refuse("strategy", std::string(strategy.status().message()));
  } else if (*strategy == v1::Examples::STRATEGY_AVERAGE_VECTOR && spec.positive == 0) {
    call.Refuse("positive", "average_vector needs at least one");
  }
  call.ReadShare("user_weight", spec.user_weight);
  call.ReadText("field", spec.field);
  call.ReadWhole("group_size", 1, kLimits.k_max, spec.group_size);
  call.ReadShare("lambda", spec.lambda);
  call.ReadWhole("candidates", 1, kLimits.diversity_candidates_max, spec.candidates);
  call.ReadBool("exclude_seen", spec.exclude_seen);
  call.ReadText("cold_start", spec.cold_start);
  if (!spec.cold_start.empty() && !ColdStartOrderNamed(spec.cold_start)) {
    call.Refuse("cold_start", fmt::format("{} is no order; give newest or most_popular",
                                          base::Quoted(spec.cold_start)));
  }
}

}  // namespace

v1::PayloadSelector MakePayloadSelector(const std::vector<std::string>& words) {
  v1::PayloadSelector selector;
  if (words.size() == 1 && words[0] == "all") {
    selector.set_selection(v1::PayloadSelector::SELECTION_ALL);
  } else if (words.size() == 1 && words[0] == "none") {
    selector.set_selection(v1::PayloadSelector::SELECTION_NONE);
  } else {
    for (const std::string& word : words) selector.add_fields(word);
  }
  return selector;
}

absl::StatusOr<std::vector<CallSpec>> ParseMix(std::string_view text, const CallSpec& defaults,
                                               const std::string& source) {
  MixJson mix;
  try {
    mix = MixJson::parse(text);
  } catch (const MixJson::parse_error& error) {
    return absl::InvalidArgumentError(fmt::format("{}: not JSON: {}", source, error.what()));
  }
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", source, why));
  };
  if (!mix.is_object() || !mix.contains("calls") || !mix["calls"].is_array() ||
      mix["calls"].empty()) {
    return refuse("a mix is an object with a list of calls: {\"calls\": [{\"kind\": \"vector\"}]}");
  }
  for (const auto& [key, value] : mix.items()) {
    if (key != "calls") {
      return refuse(fmt::format("has no {}; its only key is \"calls\"", base::Quoted(key)));
    }
  }
  std::vector<CallSpec> specs;
  absl::Status status;
  for (std::size_t i = 0; i < mix["calls"].size() && status.ok(); ++i) {
    const MixJson& call = mix["calls"][i];
    CallReader reader(call, fmt::format("{}: calls[{}]", source, i), status);
    if (!call.is_object()) {
      reader.Refuse("", fmt::format("{} is not an object", call.dump()));
      break;
    }
    ReadCall(reader, specs.emplace_back(defaults));
  }
  if (!status.ok()) return status;
  return specs;
}

absl::StatusOr<std::vector<CallSpec>> ReadMixFile(const std::string& path,
                                                  const CallSpec& defaults) {
  if (!std::filesystem::exists(path)) return absl::NotFoundError(path + ": no such file");
  std::ifstream file(path, std::ios::binary);
  std::string text;
  text.resize(kMixBytesMax + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) {
    return absl::PermissionDeniedError(path + ": cannot be read");
  }
  if (static_cast<std::size_t>(file.gcount()) > kMixBytesMax) {
    return absl::InvalidArgumentError(path + ": over 1 MiB, more than a mix can need");
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return ParseMix(text, defaults, path);
}

}  // namespace simile::cli::bench
