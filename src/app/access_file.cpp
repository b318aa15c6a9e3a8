#include "app/access_file.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config/json_file.h"
#include "base/atomic_file.h"
#include "base/message_text.h"
#include "base/nearest_name.h"
#include "base/utf8.h"
#include "data/load/user_scope.h"
#include "data/payload/field_type.h"
#include "data/payload/id_rules.h"
#include "filter/parser.h"
#include "filter/required_filter.h"
#include "service/access/access_policy.h"
#include "service/requests/request_fields.h"
#include "simile/limits.h"

namespace simile::app {
namespace {

using service::TokenHash;
using WallTime = std::chrono::system_clock::time_point;

constexpr std::size_t kNameBytesMax = 128;

// The fewest different bytes among the 32 bytes of a hash. A random hash has about 30, and fewer
// than this with a probability below 1e-30.
constexpr std::size_t kDifferentBytesMin = 9;

constexpr std::string_view kMakeHash = "`printf %s TOKEN | sha256sum`, or `simile token`";

absl::Status Refuse(std::string_view text) { return absl::InvalidArgumentError(std::string(text)); }

// A text that people hash by mistake in place of a token.
struct NoToken {
  std::string_view text;
  std::string_view name;
};
constexpr NoToken kNoTokens[] = {
    {"", "an empty text"},         {"\n", "a line end alone"},
    {"\r\n", "a line end alone"},  {" ", "a space"},
    {"TOKEN", "the word TOKEN"},   {"TOKEN\n", "the word TOKEN"},
    {"$TOKEN", "the word $TOKEN"}, {"$TOKEN\n", "the word $TOKEN"},
};

bool LooksRandom(const TokenHash& hash) {
  std::bitset<256> seen;
  for (const std::uint8_t byte : hash) seen.set(byte);
  constexpr std::size_t kHalf = std::tuple_size_v<TokenHash> / 2;
  const bool repeats = std::equal(hash.begin(), hash.begin() + kHalf, hash.begin() + kHalf);
  return seen.count() >= kDifferentBytesMin && !repeats;
}

using nlohmann::json;
using service::Principal;
using service::Role;

constexpr std::size_t kFileBytesMax = 1U << 20;

constexpr const char* kPrincipals = "principals";

// Larger numbers are taken for mistakes.
constexpr double kRateMax = 1e9;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 50;

// Each prefix is compared with the user of each query.
constexpr std::size_t kUserPrefixesMax = 64;
constexpr std::size_t kUserIdsMax = 50'000;

constexpr std::string_view kUserRules =
    R"(Give "all", "none", {"prefix": "acme-"} or {"ids": ["ann", "bob"]})";

absl::Status CheckKeys(const json& object, std::string_view where,
                       std::span<const std::string> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    return Refuse(fmt::format("{}: unknown name {}.{} Known: {}", where, base::Quoted(key),
                              base::DidYouMean(base::NearestName(key, known)),
                              fmt::join(known, ", ")));
  }
  return absl::OkStatus();
}

// The values of a list. Any other value counts as a list of one.
std::span<const json> AsList(const json& value) {
  return value.is_array() ? std::span(value.get_ref<const json::array_t&>()) : std::span(&value, 1);
}

// Reads the members of one principal.
class PrincipalReader {
 public:
  //   where  "principal 3", until its name is known
  PrincipalReader(const json& object, const std::string& file_name, const std::string& where)
      : object_(object), file_name_(file_name), where_(fmt::format("{}: {}", file_name, where)) {}

  absl::StatusOr<Principal> Read() {
    static const std::vector<std::string> kKnown = {
        "name",  "role",    "token_sha256", "certificates", "collections", "required_filter",
        "users", "expires", "limits"};
    if (!object_.is_object()) return Refuse(fmt::format("{}: not an object", where_));
    Principal principal;
    absl::Status status = ReadName(principal);
    status.Update(CheckKeys(object_, where_, kKnown));
    if (status.ok()) status = ReadRole(principal);
    if (status.ok()) status = ReadHashes(principal);
    if (status.ok()) status = ReadCertificates(principal);
    if (status.ok()) status = ReadCollections(principal);
    if (status.ok()) status = ReadFilter(principal);
    if (status.ok()) status = ReadUsers(principal);
    if (status.ok()) status = ReadExpiry(principal);
    if (status.ok()) status = ReadLimits(principal);
    if (!status.ok()) return status;
    if (principal.token_hashes.empty() && principal.certificate_names.empty()) {
      return Refuse(fmt::format(
          "{}: neither token_sha256 nor certificates; `simile token` makes a token", where_));
    }
    return principal;
  }

 private:
  template <class... Parts>
  absl::Status Wrong(std::string_view key, fmt::format_string<Parts...> format,
                     Parts&&... parts) const {
    return Refuse(
        fmt::format("{}: {}: {}", where_, key, fmt::format(format, std::forward<Parts>(parts)...)));
  }
  // The error of a value, with its place.
  absl::Status At(std::string_view key, const absl::Status& status) const {
    return status.ok() ? status : Wrong(key, "{}", std::string(status.message()));
  }

  absl::Status ReadName(Principal& principal) {
    const auto name = object_.find("name");
    if (name == object_.end() || !name->is_string()) {
      return Wrong("name", "give a string; logs and messages name the caller by it");
    }
    absl::Status status = At("name", CheckPrincipalName(name->get_ref<const std::string&>()));
    if (!status.ok()) return status;
    principal.name = name->get<std::string>();
    where_ = fmt::format("{}: principal {}", file_name_, base::Quoted(principal.name));
    return absl::OkStatus();
  }

  absl::Status ReadRole(Principal& principal) const {
    const auto text = object_.find("role");
    const auto role = text != object_.end() && text->is_string()
                          ? service::RoleNamed(text->get<std::string>())
                          : std::nullopt;
    if (!role) return Wrong("role", "give \"read\", \"write\" or \"admin\"");
    principal.role = *role;
    return absl::OkStatus();
  }

  // A string, or a list of different strings, none of them empty.
  absl::Status ReadTexts(std::string_view key, std::vector<std::string>& texts) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return absl::OkStatus();
    const std::span<const json> list = AsList(*found);
    std::set<std::string_view> known;
    for (const json& each : list) {
      if (!each.is_string() || each.get<std::string>().empty()) {
        return Wrong(key, "{} is not a string, or is empty", each.dump());
      }
      if (!known.insert(each.get_ref<const std::string&>()).second) {
        return Wrong(key, "{} is given twice", each.dump());
      }
      texts.push_back(each.get<std::string>());
    }
    if (texts.empty()) return Wrong(key, "an empty list; leave it out, or name at least one");
    return absl::OkStatus();
  }

  absl::Status ReadHashes(Principal& principal) const {
    std::vector<std::string> texts;
    absl::Status status = ReadTexts("token_sha256", texts);
    if (!status.ok()) return status;
    for (const std::string& text : texts) {
      const absl::StatusOr<service::TokenHash> hash = ReadTokenHash(text);
      if (!hash.ok()) return At("token_sha256", hash.status());
      principal.token_hashes.push_back(*hash);
    }
    return absl::OkStatus();
  }

  absl::Status ReadCertificates(Principal& principal) const {
    absl::Status status = ReadTexts("certificates", principal.certificate_names);
    for (const std::string& name : principal.certificate_names) {
      if (status.ok()) status = At("certificates", CheckVisible(name));
    }
    return status;
  }

  absl::Status ReadCollections(Principal& principal) const {
    absl::Status status = ReadTexts("collections", principal.collections);
    for (const std::string& name : principal.collections) {
      if (!status.ok()) return status;
      const absl::Status named = service::CheckCollectionName({"collections"}, name, Limits{});
      if (!named.ok()) status = Refuse(fmt::format("{}: {}", where_, std::string(named.message())));
    }
    return status;
  }

  absl::Status ReadFilter(Principal& principal) const {
    const auto text = object_.find("required_filter");
    if (text == object_.end()) return absl::OkStatus();
    if (!text->is_string() || text->get<std::string>().empty()) {
      return Wrong("required_filter", "give a filter, as in \"year >= 1990\", or leave it out");
    }
    principal.required_filter = text->get<std::string>();
    const auto parsed = filter::Parse(principal.required_filter);
    return At("required_filter",
              parsed.ok() ? filter::CheckRequiredFilter(*parsed) : parsed.status());
  }

  // Without a rule, a caller that has all rows has all users, and a caller with a required filter
  // has none.
  absl::Status ReadUsers(Principal& principal) const {
    const auto rule = object_.find("users");
    if (rule == object_.end()) {
      if (!principal.required_filter.empty()) principal.users = data::UserScope::None();
      return absl::OkStatus();
    }
    if (rule->is_object()) return ReadUserRule(*rule, principal);
    static const std::vector<std::string> kWords = {"all", "none"};
    const std::string word = rule->is_string() ? rule->get<std::string>() : "";
    if (word == "none") principal.users = data::UserScope::None();
    if (std::ranges::find(kWords, word) != kWords.end()) return absl::OkStatus();
    return Wrong("users", "{} is no rule.{} {}", rule->dump(),
                 base::DidYouMean(base::NearestName(word, kWords)), kUserRules);
  }

  absl::Status ReadUserRule(const json& rule, Principal& principal) const {
    static const std::vector<std::string> kKnown = {"prefix", "ids"};
    const std::string where = where_ + ": users";
    absl::Status status = CheckKeys(rule, where, kKnown);
    if (!status.ok()) return status;
    if (rule.empty()) return Wrong("users", "{{}} is no rule. {}", kUserRules);
    std::vector<std::string> prefixes;
    std::vector<std::string> ids;
    status = ReadUserTexts(rule, kKnown[0], kUserPrefixesMax, prefixes);
    if (status.ok()) status = ReadUserTexts(rule, kKnown[1], kUserIdsMax, ids);
    if (status.ok()) principal.users = data::UserScope::Of(std::move(prefixes), std::move(ids));
    return status;
  }

  // Ids of users, or beginnings of ids: one, or a list. An id may be an integer, as in a list of
  // user ids.
  absl::Status ReadUserTexts(const json& rule, const std::string& key, std::size_t count_max,
                             std::vector<std::string>& texts) const {
    const auto found = rule.find(key);
    if (found == rule.end()) return absl::OkStatus();
    const std::string place = "users: " + key;
    const std::span<const json> list = AsList(*found);
    if (list.empty()) return Wrong(place, "an empty list; write \"users\": \"none\" for no users");
    if (list.size() > count_max) {
      return Wrong(place, "{} entries; at most {} are allowed", base::Grouped(list.size()),
                   base::Grouped(count_max));
    }
    for (const json& each : list) {
      if (!each.is_string() && !each.is_number_integer()) {
        return Wrong(place, "{} is not a string", each.dump());
      }
      texts.push_back(each.is_string() ? each.get<std::string>() : each.dump());
      const absl::Status valid = data::CheckId(texts.back(), Limits{});
      if (!valid.ok()) return Wrong(place, "{} {}", each.dump(), std::string(valid.message()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadExpiry(Principal& principal) const {
    const auto text = object_.find("expires");
    if (text == object_.end()) return absl::OkStatus();
    if (!text->is_string()) return Wrong("expires", "{} is not a string", text->dump());
    const auto time = app::ReadExpiry(text->get_ref<const std::string&>());
    if (time.ok()) principal.expires_at = *time;
    return At("expires", time.status());
  }

  absl::Status ReadLimits(Principal& principal) const {
    static const std::vector<std::string> kKnown = {"calls_per_second", "queries_in_flight",
                                                    "bytes_in_flight"};
    const auto limits = object_.find("limits");
    if (limits == object_.end()) return absl::OkStatus();
    if (!limits->is_object()) return Wrong("limits", "not an object");
    absl::Status status = CheckKeys(*limits, where_ + ": limits", kKnown);
    if (!status.ok()) return status;
    if (const auto rate = limits->find(kKnown[0]); rate != limits->end()) {
      if (!rate->is_number() || !(rate->get<double>() > 0 && rate->get<double>() <= kRateMax)) {
        return Wrong("limits", "calls_per_second: {} is not a number above 0", rate->dump());
      }
      principal.limits.calls_per_second = rate->get<double>();
    }
    for (auto [key, to] : {std::pair(&kKnown[1], &principal.limits.queries_in_flight),
                           std::pair(&kKnown[2], &principal.limits.bytes_in_flight)}) {
      const auto number = limits->find(*key);
      if (number == limits->end()) continue;
      const bool is_count = number->is_number_unsigned() && number->get<std::uint64_t>() > 0 &&
                            number->get<std::uint64_t>() <= kCountMax;
      if (!is_count)
        return Wrong("limits", "{}: {} is not a whole number from 1", *key, number->dump());
      *to = number->get<std::uint64_t>();
    }
    return absl::OkStatus();
  }

  const json& object_;
  const std::string& file_name_;
  std::string where_;
};

// Refuses two principals that share a name, a certificate name or a token.
absl::Status CheckDistinct(const std::vector<Principal>& principals, const std::string& file_name) {
  std::set<std::string> names;
  std::set<std::string> certificates;
  std::map<service::TokenHash, const Principal*> hashes;
  for (const Principal& principal : principals) {
    const std::string name = base::Quoted(principal.name);
    if (!names.insert(principal.name).second) {
      return Refuse(fmt::format("{}: two principals are named {}", file_name, name));
    }
    for (const std::string& certificate : principal.certificate_names) {
      if (certificates.insert(certificate).second) continue;
      return Refuse(fmt::format("{}: principal {}: another one has the certificate name {} too",
                                file_name, name, base::Quoted(certificate)));
    }
    for (const service::TokenHash& hash : principal.token_hashes) {
      const auto [other, is_new] = hashes.try_emplace(hash, &principal);
      if (is_new) continue;
      return Refuse(fmt::format(
          "{}: principal {}: {}", file_name, name,
          other->second == &principal
              ? "token_sha256: the same hash is given twice, in different letter case"
              : fmt::format("{} has the same token", base::Quoted(other->second->name))));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Principal>> ReadPrincipals(const std::string& text,
                                                      const std::string& file_name) {
  static const std::vector<std::string> kKnown = {"principals"};
  const absl::StatusOr<JsonObject> parsed =
      JsonObject::Parse(text, file_name, R"({"principals": [{"name": "ranker", "role": "read"}]})");
  if (!parsed.ok()) return parsed.status();
  const json& root = parsed->get();
  const bool has_list = root.contains("principals") && root.at("principals").is_array();
  if (!has_list) return Refuse(fmt::format("{}: no list \"principals\"", file_name));
  absl::Status status = CheckKeys(root, file_name, kKnown);
  if (!status.ok()) return status;
  std::vector<Principal> principals;
  for (const json& each : root.at("principals")) {
    auto principal =
        PrincipalReader(each, file_name, fmt::format("principal {}", principals.size() + 1)).Read();
    if (!principal.ok()) return principal.status();
    principals.push_back(*std::move(principal));
  }
  if (principals.empty())
    return Refuse(fmt::format("{}: no principal: nobody could call", file_name));
  status = CheckDistinct(principals, file_name);
  if (!status.ok()) return status;
  return principals;
}

}  // namespace

absl::Status CheckPrincipalName(std::string_view name) {
  if (name.empty() || name.size() > kNameBytesMax) {
    return Refuse(fmt::format("has {}; give 1 to {}: logs and messages name the caller by it",
                              base::Counted(name.size(), "byte"), kNameBytesMax));
  }
  return CheckVisible(name);
}

absl::Status CheckVisible(std::string_view text) {
  if (text.starts_with(' ') || text.ends_with(' ')) {
    return Refuse(fmt::format("{} begins or ends with a space; leave it out", base::Quoted(text)));
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view sequence = text.substr(at, base::Utf8SequenceLength(text.substr(at)));
    if (sequence.empty()) return Refuse(fmt::format("{} is not UTF-8", base::Quoted(text)));
    const std::uint32_t code = base::DecodeUtf8(sequence);
    if (base::IsControl(sequence) || base::IsInvisible(code)) {
      return Refuse(fmt::format(
          "{} holds U+{:04X}, a control character, unusual space or invisible character; write "
          "plain text",
          base::Quoted(text), code));
    }
    at += sequence.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenHash> ReadTokenHash(std::string_view text) {
  TokenHash hash;
  const bool is_hex = text.size() == 2 * hash.size() &&
                      text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (!is_hex) {
    return Refuse(
        fmt::format("not 64 hexadecimal digits; the token itself must not be here: {}", kMakeHash));
  }
  std::ranges::copy(absl::HexStringToBytes(absl::string_view(text.data(), text.size())),
                    hash.begin());
  if (!LooksRandom(hash)) {
    return Refuse(fmt::format("{} has a pattern, which no token's hash has: {}", base::Quoted(text),
                              kMakeHash));
  }
  for (const NoToken& none : kNoTokens) {
    if (hash != service::HashToken(none.text)) continue;
    return Refuse(
        fmt::format("the hash of {}: there was no token when it was made; {} with the token itself",
                    none.name, kMakeHash));
  }
  return hash;
}

absl::StatusOr<WallTime> ReadExpiry(std::string_view text) {
  const std::optional<std::int64_t> time = data::ParseTime(text);
  if (!time || data::LacksZone(text)) {
    return Refuse(
        fmt::format("{} is not a time as \"2027-05-31T12:00:00Z\", nor a day as \"2027-05-31\"",
                    base::Quoted(text)));
  }
  // system_clock counts nanoseconds in 64 bits, which end in 2262.
  constexpr std::int64_t kTimeMax =
      std::chrono::duration_cast<std::chrono::microseconds>(WallTime::duration::max()).count();
  if (*time < 0 || *time > kTimeMax) {
    return Refuse(
        fmt::format("{} is not between 1970 and 2262; leave it out for an access that does not end",
                    base::Quoted(text)));
  }
  return WallTime(std::chrono::microseconds(*time));
}

absl::StatusOr<std::shared_ptr<const service::AccessPolicy>> ReadAccessFile(
    const std::filesystem::path& file) {
  const std::string file_name = file.string();
  const auto text = base::ReadWholeFile(file, kFileBytesMax);
  if (!text.ok())
    return Refuse(fmt::format("{}: {}", file_name, std::string(text.status().message())));
  if (text->empty()) return Refuse(fmt::format("{}: no such file, or an empty one", file_name));
  auto principals = ReadPrincipals(*text, file_name);
  if (!principals.ok()) return principals.status();
  return std::make_shared<const service::AccessPolicy>(*std::move(principals));
}

std::string AccessEntryText(const Principal& principal) {
  nlohmann::ordered_json entry = {{"name", principal.name},
                                  {"role", std::string(service::NameOf(principal.role))}};
  for (const service::TokenHash& hash : principal.token_hashes) {
    entry["token_sha256"].push_back(absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size())));
  }
  if (!principal.collections.empty()) entry["collections"] = principal.collections;
  if (!principal.required_filter.empty()) entry["required_filter"] = principal.required_filter;
  if (!principal.users.is_all()) {
    if (!principal.users.prefixes().empty()) entry["users"]["prefix"] = principal.users.prefixes();
    if (!principal.users.ids().empty()) entry["users"]["ids"] = principal.users.ids();
    if (!entry.contains("users")) entry["users"] = "none";
  } else if (!principal.required_filter.empty()) {
    entry["users"] = "all";
  }
  if (principal.expires_at) {
    entry["expires"] = data::TimeText(std::chrono::duration_cast<std::chrono::microseconds>(
                                          principal.expires_at->time_since_epoch())
                                          .count());
  }
  return entry.dump(2);
}

absl::StatusOr<Principal> AddToAccessFile(const std::filesystem::path& file,
                                          const Principal& principal, bool has_rights) {
  const std::string file_name = file.string();
  const auto text = base::ReadWholeFile(file, kFileBytesMax);
  if (!text.ok())
    return Refuse(fmt::format("{}: {}", file_name, std::string(text.status().message())));
  auto root = text->empty() ? nlohmann::ordered_json{{kPrincipals, json::array()}}
                            : nlohmann::ordered_json::parse(*text, nullptr, false);
  const bool has_empty_list = root.is_object() && root.size() == 1 && root.contains(kPrincipals) &&
                              root[kPrincipals].is_array() && root[kPrincipals].empty();
  if (!has_empty_list) {
    if (auto principals = ReadPrincipals(*text, file_name); !principals.ok()) {
      return principals.status();
    }
  }
  auto& principals = root[kPrincipals];
  const auto entry = nlohmann::ordered_json::parse(AccessEntryText(principal));
  const auto known = std::ranges::find_if(
      principals, [&](const auto& each) { return each["name"] == principal.name; });
  const bool is_known = known != principals.end();
  if (is_known && has_rights) {
    return Refuse(
        fmt::format("{}: {} is there already, with its own role, collections and end; "
                    "leave out --role, --collection and --expires to add a token to it",
                    file_name, principal.name));
  }
  if (is_known) {
    auto& hashes = (*known)["token_sha256"];
    if (hashes.is_string()) hashes = nlohmann::ordered_json::array({std::string(hashes)});
    hashes.push_back(entry["token_sha256"][0]);
  } else {
    principals.push_back(entry);
  }
  const std::string added = root.dump(2) + '\n';
  if (added.size() > kFileBytesMax) {
    return Refuse(
        fmt::format("{}: it would hold over {}", file_name, base::BytesText(kFileBytesMax)));
  }
  auto read = ReadPrincipals(added, file_name);
  if (!read.ok()) return read.status();
  Principal stored = *std::ranges::find(*read, principal.name, &Principal::name);
  if (stored.expires_at && *stored.expires_at <= std::chrono::system_clock::now()) {
    return Refuse(fmt::format("{}: the access of {} has ended; give it another end (expires)",
                              file_name, principal.name));
  }
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(file, error);
  const absl::Status replaced = base::ReplaceFile(error ? file : target, added, {.like_old = true});
  if (!replaced.ok()) return replaced;
  return stored;
}

}  // namespace simile::app
