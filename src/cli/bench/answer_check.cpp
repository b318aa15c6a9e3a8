#include "cli/bench/answer_check.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>

namespace simile::cli::bench {
namespace {

constexpr std::size_t kFindingsMax = 10;

bool ParseAnswer(grpc::ByteBuffer answer, google::protobuf::MessageLite& message) {
  grpc::ProtoBufferReader reader(&answer);
  return message.ParseFromZeroCopyStream(&reader);
}

CheckedAnswer Unparsed() { return {CheckedAnswer::Result::kWrong, "the answer cannot be parsed"}; }

v1::SearchResponse MoveOut(v1::SearchStreamResponse& streamed, const v1::SearchRequest&) {
  return std::move(*streamed.mutable_search());
}
v1::RecommendResponse MoveOut(v1::SearchStreamResponse& streamed, const v1::RecommendRequest&) {
  return std::move(*streamed.mutable_recommend());
}

template <class Request>
Request RequestOf(const grpc::Slice& bytes) {
  Request request;
  request.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()));
  return request;
}

// Parses an answer, of a stream or not, and its request, and calls check(request, response).
template <class Request, class Response, class Check>
absl::StatusOr<CheckedAnswer> CheckAs(const grpc::Slice& request_bytes,
                                      const grpc::ByteBuffer& answer, Transport transport,
                                      const Check& check) {
  const auto request = RequestOf<Request>(request_bytes);
  Response response;
  if (transport == Transport::kStream) {
    v1::SearchStreamResponse streamed;
    if (!ParseAnswer(answer, streamed)) return Unparsed();
    response = MoveOut(streamed, request);
  } else if (!ParseAnswer(answer, response)) {
    return Unparsed();
  }
  return check(request, response);
}

// Calls check(choice, request, response) for each kept answer.
template <class Check>
absl::StatusOr<CheckSummary> CheckEach(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                                       Transport transport, const Check& check) {
  CheckSummary summary;
  for (const KeptAnswer& each : kept) {
    const PreparedKind& kind = pool.kinds()[each.choice.kind];
    const auto check_one = [&](const auto& request, const auto& response) {
      return check(each.choice, request, response);
    };
    const absl::StatusOr<CheckedAnswer> checked =
        kind.method == CallMethod::kSearch
            ? CheckAs<v1::SearchRequest, v1::SearchResponse>(pool.Request(each.choice), each.answer,
                                                             transport, check_one)
            : CheckAs<v1::RecommendRequest, v1::RecommendResponse>(
                  pool.Request(each.choice), each.answer, transport, check_one);
    if (!checked.ok()) return checked.status();
    if (checked->result == CheckedAnswer::Result::kUnchecked) {
      ++summary.unchecked[checked->why];
      continue;
    }
    CheckSummary::Kind& of_kind = summary.kinds[kind.name];
    ++summary.compared;
    ++of_kind.compared;
    if (checked->result == CheckedAnswer::Result::kRight) continue;
    ++summary.wrong;
    ++of_kind.wrong;
    if (summary.findings.size() < kFindingsMax) {
      summary.findings.push_back(fmt::format("{}: {}", kind.name, checked->why));
    }
  }
  return summary;
}

// Where two results differ that are not equal.
std::string DifferenceOf(const v1::SearchResult& here, const v1::SearchResult& there) {
  if (here.hits_size() != there.hits_size() || here.groups_size() != there.groups_size()) {
    return fmt::format("{} hits and {} groups, and there {} and {}", here.hits_size(),
                       here.groups_size(), there.hits_size(), there.groups_size());
  }
  if (const std::optional<int> place = FirstDifferentHit(here, there)) {
    return fmt::format("rank {} is {}, and there {}", here.hits(*place).rank(),
                       HitText(here, *place), HitText(there, *place));
  }
  for (int i = 0; i < here.groups_size(); ++i) {
    if (here.groups(i).keyword() == there.groups(i).keyword()) continue;
    return fmt::format("group {} is {}, and there {}", i + 1, here.groups(i).keyword(),
                       there.groups(i).keyword());
  }
  return "a field of the result";
}

template <class Response>
CheckedAnswer Compare(const Response& here, const Response& there) {
  if (here.receipt().snapshot_id() != there.receipt().snapshot_id()) {
    return {CheckedAnswer::Result::kUnchecked, "the other server has other content"};
  }
  if (here.results_size() != there.results_size()) {
    return {CheckedAnswer::Result::kWrong,
            fmt::format("{} results, and there {}", here.results_size(), there.results_size())};
  }
  for (int i = 0; i < here.results_size(); ++i) {
    if (google::protobuf::util::MessageDifferencer::Equals(here.results(i), there.results(i))) {
      continue;
    }
    return {CheckedAnswer::Result::kWrong,
            fmt::format("query {}: {}", i, DifferenceOf(here.results(i), there.results(i)))};
  }
  return {};
}

// The other server's answers, each asked for once.
class OtherAnswers {
 public:
  explicit OtherAnswers(const Connection& server) : server_(server) {}

  absl::StatusOr<CheckedAnswer> Check(const RequestPool::Choice& choice,
                                      const v1::SearchRequest& request,
                                      const v1::SearchResponse& response) {
    return CheckBy(searches_, choice, response, [&] { return server_.Search(request); });
  }
  absl::StatusOr<CheckedAnswer> Check(const RequestPool::Choice& choice,
                                      const v1::RecommendRequest& request,
                                      const v1::RecommendResponse& response) {
    return CheckBy(recommendations_, choice, response, [&] { return server_.Recommend(request); });
  }

 private:
  template <class Response>
  using ByChoice = std::map<std::pair<std::uint32_t, std::uint32_t>, Response>;

  template <class Response, class Send>
  static absl::StatusOr<CheckedAnswer> CheckBy(ByChoice<Response>& known,
                                               const RequestPool::Choice& choice,
                                               const Response& response, const Send& send) {
    const std::pair key(choice.kind, choice.request);
    auto found = known.find(key);
    if (found == known.end()) {
      absl::StatusOr<Response> answer = send();
      if (!answer.ok()) return answer.status();
      found = known.emplace(key, *std::move(answer)).first;
    }
    return Compare(response, found->second);
  }

  const Connection& server_;
  ByChoice<v1::SearchResponse> searches_;
  ByChoice<v1::RecommendResponse> recommendations_;
};

}  // namespace

CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check) {
  // The check gives no errors of its own.
  return *CheckEach(kept, pool, transport,
                    [&](const RequestPool::Choice&, const auto& request, const auto& response) {
                      return absl::StatusOr<CheckedAnswer>(check.Check(request, response));
                    });
}

absl::StatusOr<CheckSummary> CompareKept(const std::vector<KeptAnswer>& kept,
                                         const RequestPool& pool, Transport transport,
                                         const Connection& other) {
  OtherAnswers answers(other);
  auto summary =
      CheckEach(kept, pool, transport,
                [&](const RequestPool::Choice& choice, const auto& request, const auto& response) {
                  return answers.Check(choice, request, response);
                });
  if (summary.ok()) summary->against = "the answers of " + other.address();
  return summary;
}

std::optional<int> FirstDifferentHit(const v1::SearchResult& here, const v1::SearchResult& there) {
  const auto is_same = [](const v1::Hit& a, const v1::Hit& b) {
    return a.id() == b.id() &&
           std::bit_cast<std::uint32_t>(a.score()) == std::bit_cast<std::uint32_t>(b.score());
  };
  const auto [differs, ignored] = std::ranges::mismatch(here.hits(), there.hits(), is_same);
  const auto place = static_cast<int>(differs - here.hits().begin());
  if (place == here.hits_size() && place == there.hits_size()) return std::nullopt;
  return place;
}

std::string HitText(const v1::SearchResult& result, int place) {
  if (place >= result.hits_size()) return "nothing";
  return fmt::format("{} with {}", result.hits(place).id(), result.hits(place).score());
}

}  // namespace simile::cli::bench
