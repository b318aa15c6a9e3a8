#include "service/access/access_control.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

constexpr std::chrono::milliseconds kTryAgain{50};

absl::Status Refusal(std::string_view text) {
  return base::Error(base::ErrorReason::kCallerLimit, text);
}

// Adds the amount unless the sum would exceed the maximum.
bool AddWithin(std::atomic<std::uint64_t>& sum, std::uint64_t amount, std::uint64_t max) {
  std::uint64_t before = sum.load(std::memory_order_relaxed);
  do {
    if (amount > max || before > max - amount) return false;
  } while (!sum.compare_exchange_weak(before, before + amount, std::memory_order_relaxed));
  return true;
}

//   unit  "bytes of requests"
absl::Status Hold(std::atomic<std::uint64_t>& sum, std::uint64_t amount, std::uint64_t max,
                  std::string_view name, std::string_view unit) {
  if (max == 0) {
    sum.fetch_add(amount, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  if (AddWithin(sum, amount, max)) return absl::OkStatus();
  if (amount > max) {
    return Refusal(fmt::format("{} {}; {} may have {} in flight: send less a call",
                               base::Grouped(amount), unit, name, base::Grouped(max)));
  }
  return base::WithRetryAfter(
      Refusal(fmt::format("{} may have {} {} in flight, and has {}", name, base::Grouped(max), unit,
                          base::Grouped(sum.load()))),
      kTryAgain);
}

constexpr std::string_view kBearer = "bearer ";

// The token of an entry `Bearer TOKEN`; upper and lower case of Bearer are equal.
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

// The principal with the caller's token or certificate; null when there is none.
PrincipalPtr FindPrincipal(const AccessPolicy& policy, const Caller& caller) {
  return caller.token_hash ? policy.FindToken(*caller.token_hash)
                           : policy.FindCertificate(caller.certificate_names);
}

// Sets what identifies the caller, and finds the principal.
// Errors: UNAUTHENTICATED; the message says what is missing and nothing about existing tokens.
absl::Status Find(const AccessPolicy& policy, const Credentials& credentials, Caller& caller,
                  PrincipalPtr& principal) {
  if (credentials.is_repeated) {
    return Unauthenticated("several `authorization` entries; send one");
  }
  if (!credentials.authorization.empty()) {
    const auto token = TokenIn(credentials.authorization);
    if (!token) return Unauthenticated("the `authorization` entry is not `Bearer TOKEN`");
    caller.token_hash = HashToken(*token);
    principal = FindPrincipal(policy, caller);
    return principal ? absl::OkStatus() : Unauthenticated("the server does not know the token");
  }
  if (policy.uses_certificates()) {
    caller.certificate_names = credentials.certificate_names();
    principal = FindPrincipal(policy, caller);
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

absl::Status PrincipalUse::CountCall(const Principal& principal, const Clock& clock) {
  const double rate = principal.limits.calls_per_second;
  if (rate == 0) return absl::OkStatus();
  const net::Pace pace{.burst = std::max(1.0, rate), .per_second = rate};
  const std::lock_guard lock(mutex_);
  if (calls_) {
    calls_->SetPace(pace);
  } else {
    calls_.emplace(pace, clock.Now());
  }
  if (calls_->Spend(clock)) return absl::OkStatus();
  return base::WithRetryAfter(
      Refusal(fmt::format("{} may make {:g} calls a second", principal.name, rate)),
      std::chrono::ceil<std::chrono::milliseconds>(calls_->Wait()));
}

absl::Status PrincipalUse::HoldBytes(const Principal& principal, std::uint64_t bytes) {
  return Hold(bytes_, bytes, principal.limits.bytes_in_flight, principal.name, "bytes of requests");
}

absl::Status PrincipalUse::HoldQueries(const Principal& principal, std::uint64_t queries) {
  return Hold(queries_, queries, principal.limits.queries_in_flight, principal.name, "queries");
}

void PrincipalUse::GiveBack(std::uint64_t bytes, std::uint64_t queries) {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  queries_.fetch_sub(queries, std::memory_order_relaxed);
}

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
  PrincipalPtr principal = FindPrincipal(*now, caller);
  if (principal == nullptr) {
    return Unauthenticated(
        fmt::format("the server no longer knows the token or certificate with which {} opened the "
                    "stream; open another",
                    caller.principal->name));
  }
  return CheckPrincipal(method, needed, std::move(principal), caller);
}

absl::Status AccessControl::CheckPrincipal(std::string_view method, Role needed,
                                           PrincipalPtr principal, Caller& caller) {
  caller.use = FindOrAddUse(principal->name);
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

std::shared_ptr<PrincipalUse> AccessControl::FindOrAddUse(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<PrincipalUse>& use = uses_[name];
  if (use == nullptr) use = std::make_shared<PrincipalUse>();
  return use;
}

}  // namespace simile::service
