#include "service/access/access_control.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error_detail.h"

namespace simile::service {
namespace {

constexpr std::string_view kBearer = "bearer ";

// The token of an entry `Bearer TOKEN`, whose first word is written in any case.
std::optional<std::string_view> TokenIn(std::string_view authorization) {
  if (authorization.size() <= kBearer.size()) return std::nullopt;
  const bool is_bearer = std::ranges::equal(
      authorization.substr(0, kBearer.size()), kBearer,
      [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  const std::size_t begin = authorization.find_first_not_of(' ', kBearer.size());
  if (!is_bearer || begin == std::string_view::npos) return std::nullopt;
  return authorization.substr(begin);
}

absl::Status Unauthenticated(std::string_view text) {
  return base::Error(base::ErrorReason::kUnauthenticated, text);
}

// The principal of what identifies the caller; null when there is none.
PrincipalPtr PrincipalOf(const AccessPolicy& policy, const Caller& caller) {
  return caller.token_hash ? policy.FindToken(*caller.token_hash)
                           : policy.FindCertificate(caller.certificate_names);
}

// Sets what identifies the caller, and finds the principal.
// Errors: UNAUTHENTICATED, which says what is missing and nothing of the tokens there are.
absl::Status Find(const AccessPolicy& policy, const Credentials& credentials, Caller& caller,
                  PrincipalPtr& principal) {
  if (credentials.is_repeated) {
    return Unauthenticated("several `authorization` entries; send one");
  }
  if (!credentials.authorization.empty()) {
    const auto token = TokenIn(credentials.authorization);
    if (!token) return Unauthenticated("the `authorization` entry is not `Bearer TOKEN`");
    caller.token_hash = HashToken(*token);
    principal = PrincipalOf(policy, caller);
    return principal ? absl::OkStatus() : Unauthenticated("the server does not know the token");
  }
  if (policy.uses_certificates()) {
    caller.certificate_names = credentials.certificate_names();
    principal = PrincipalOf(policy, caller);
    if (principal) return absl::OkStatus();
    if (!caller.certificate_names.empty()) {
      return Unauthenticated(
          fmt::format("the server knows no caller by the name in the client's certificate ({})",
                      caller.certificate_names.front()));
    }
  }
  if (!policy.uses_tokens()) return Unauthenticated("no client certificate");
  return Unauthenticated("no token; send the metadata entry `authorization: Bearer TOKEN`");
}

}  // namespace

void AccessControl::SetPolicy(std::shared_ptr<const AccessPolicy> policy) {
  const std::lock_guard lock(mutex_);
  policy_ = std::move(policy);
  std::erase_if(uses_, [&](const auto& use) {
    const bool is_known =
        policy_ != nullptr && std::ranges::any_of(policy_->principals(), [&](const auto& each) {
          return each->name == use.first;
        });
    return !is_known;
  });
}

std::shared_ptr<const AccessPolicy> AccessControl::policy() const {
  const std::lock_guard lock(mutex_);
  return policy_;
}

absl::Status AccessControl::Admit(std::string_view method, Role needed,
                                  const Credentials& credentials, Caller& caller) {
  if (needed == Role::kNone) return absl::OkStatus();
  const std::shared_ptr<const AccessPolicy> now = policy();
  if (now == nullptr) return absl::OkStatus();
  PrincipalPtr principal;
  absl::Status found = Find(*now, credentials, caller, principal);
  if (!found.ok()) {
    if (caller.token_hash) RecordLineEnd(*now, *TokenIn(credentials.authorization));
    return found;
  }
  return CheckPrincipal(method, needed, std::move(principal), caller);
}

absl::Status AccessControl::AdmitAgain(std::string_view method, Role needed, Caller& caller) {
  if (caller.principal == nullptr) return absl::OkStatus();
  const std::shared_ptr<const AccessPolicy> now = policy();
  if (now == nullptr) return absl::OkStatus();
  PrincipalPtr principal = PrincipalOf(*now, caller);
  if (principal == nullptr) {
    return Unauthenticated(
        fmt::format("the server no longer knows what {} opened the stream with; open another",
                    caller.principal->name));
  }
  return CheckPrincipal(method, needed, std::move(principal), caller);
}

absl::Status AccessControl::CheckPrincipal(std::string_view method, Role needed,
                                           PrincipalPtr principal, Caller& caller) {
  caller.use = UseOf(principal->name);
  caller.principal = std::move(principal);
  const Principal& found = *caller.principal;
  if (found.expires_at && clock_.WallNow() >= *found.expires_at) {
    return Unauthenticated(fmt::format("the access of {} ended at {:%Y-%m-%d %H:%M:%S} UTC",
                                       found.name, fmt::gmtime(*found.expires_at)));
  }
  if (found.role < needed) {
    return base::Error(base::ErrorReason::kPermissionDenied,
                       fmt::format("{} has the role {}; {} needs {}", found.name,
                                   NameOf(found.role), method, NameOf(needed)));
  }
  return caller.use->CountCall(found, clock_);
}

std::vector<std::string> AccessControl::RemoveNamesWithLineEnd() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names(names_with_line_end_.begin(), names_with_line_end_.end());
  names_with_line_end_.clear();
  return names;
}

void AccessControl::RecordLineEnd(const AccessPolicy& policy, std::string_view token) {
  for (const std::string_view line_end : {"\n", "\r\n"}) {
    const PrincipalPtr principal =
        policy.FindToken(HashToken(fmt::format("{}{}", token, line_end)));
    if (principal == nullptr) continue;
    const std::lock_guard lock(mutex_);
    names_with_line_end_.insert(principal->name);
  }
}

std::shared_ptr<PrincipalUse> AccessControl::UseOf(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<PrincipalUse>& use = uses_[name];
  if (use == nullptr) use = std::make_shared<PrincipalUse>();
  return use;
}

}  // namespace simile::service
