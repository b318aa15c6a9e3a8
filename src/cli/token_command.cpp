#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <nlohmann/json.hpp>

#include "app/access_file.h"
#include "base/message_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "service/access/access_policy.h"
#include "service/requests/request_fields.h"
#include "simile/limits.h"

namespace simile::cli {
namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::string_view kTokenPrefix = "simile_";  // secret scanners recognise tokens by it

struct TokenFlags {
  std::optional<std::string> name;
  std::optional<std::string> role;
  std::vector<std::string> collections;
  std::optional<std::string> expires;
  std::optional<std::string> add_to;
  bool json = false;
};

absl::StatusOr<std::string> NewToken() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return absl::UnavailableError("this machine gives no random bytes");
  }
  std::string text;
  absl::WebSafeBase64Escape(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), &text);
  return fmt::format("{}{}", kTokenPrefix, text);
}

// Adds the flag to the error of its value.
absl::Status Wrong(std::string_view flag, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(fmt::format("{}: {}", flag, std::string(status.message())));
}

absl::Status CheckTokenFlags(const TokenFlags& flags) {
  if (flags.role && !service::RoleNamed(*flags.role)) {
    return absl::InvalidArgumentError(
        fmt::format("--role {}: give read, write or admin", base::Quoted(*flags.role)));
  }
  if (flags.name) {
    const absl::Status named = app::CheckPrincipalName(*flags.name);
    if (!named.ok()) return Wrong("--name", named);
  }
  for (const std::string& collection : flags.collections) {
    absl::Status named = service::CheckCollectionName({"--collection"}, collection, Limits{});
    if (!named.ok()) return named;
    if (std::ranges::count(flags.collections, collection) > 1) {
      return absl::InvalidArgumentError(
          fmt::format("--collection: {} is given twice", base::Quoted(collection)));
    }
  }
  return flags.expires ? Wrong("--expires", app::ReadExpiry(*flags.expires).status())
                       : absl::OkStatus();
}

int PrintToken(const TokenFlags& flags) {
  const absl::StatusOr<std::string> token = NewToken();
  if (!token.ok()) return Fail(token.status(), flags.json);
  service::Principal principal;
  principal.name = *flags.name;
  principal.role = *service::RoleNamed(flags.role.value_or("read"));
  principal.token_hashes.push_back(service::HashToken(*token));
  principal.collections = flags.collections;
  if (flags.expires) principal.expires_at = *app::ReadExpiry(*flags.expires);
  if (flags.add_to) {
    const bool has_rights = flags.role || !flags.collections.empty() || flags.expires;
    auto added = app::AddToAccessFile(*flags.add_to, principal, has_rights);
    if (!added.ok()) return Fail(added.status(), flags.json);
    principal = *std::move(added);
  }
  const std::string entry = app::AccessEntryText(principal);
  if (flags.json) {
    fmt::print("{}",
               JsonLine({{"token", *token}, {"principal", nlohmann::ordered_json::parse(entry)}}));
    return kSucceeded;
  }
  fmt::print(
      "{}\n\n"
      "This is the token of {}; it is shown once and kept nowhere. Its caller sends it as\n"
      "`authorization: Bearer TOKEN`; simile's own commands take it by --token-file or "
      "SIMILE_TOKEN.\n\n",
      *token, principal.name);
  if (flags.add_to) {
    fmt::print(
        "{} holds its hash. A running server whose server.access_file this is reads it within a "
        "second.\n",
        Printable(*flags.add_to));
    if (principal.token_hashes.size() > 1) {
      fmt::print(
          "Earlier tokens of {} stay valid: take their hashes out once its callers have this one. "
          "The role and collections stay as before:\n\n{}\n",
          principal.name, entry);
    }
    return kSucceeded;
  }
  fmt::print(
      "Add this to the list \"principals\" of the file that server.access_file names. A running "
      "server\nreads it within a second:\n\n{}\n",
      entry);
  return kSucceeded;
}

}  // namespace

void AddTokenCommand(CommandLine& line) {
  const auto flags = std::make_shared<TokenFlags>();
  line.Add("token", "Make a token for a caller of a server")
      .Text("--name", flags->name, "NAME", "The caller's name, as logs and messages print it")
      .Required()
      .Text(
          "--role", flags->role, "ROLE",
          "What the caller may do: read searches, write also changes collections, admin also reads "
          "metrics and probes (default read)")
      .Choices({"read", "write", "admin"})
      .List("--collection", flags->collections, "NAME",
            "The only collections it may use (default all)")
      .Text("--expires", flags->expires, "TIME", "When the access ends (default never)")
      .File("--add", flags->add_to, "FILE",
            "Add the entry to this access file, which is made if there is none; a name that it has "
            "gets a further token")
      .Switch("--json", flags->json, "Print JSON for programs")
      .Check([flags] { return CheckTokenFlags(*flags); })
      .Run([flags] { return PrintToken(*flags); });
}

}  // namespace simile::cli
