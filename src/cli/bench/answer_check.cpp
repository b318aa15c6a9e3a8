#include "cli/bench/answer_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "certificate/canonical_score.h"

namespace simile::cli::bench {
namespace {

constexpr std::size_t kDefaultK = 10;
// Normalizing a vector in fp32 rounds each component and the scale, each by half a unit in the last
// place.
constexpr double kNormalizingError = 2 * 0x1p-24;

double Dot(std::span<const double> query, std::span<const float> row) {
  return std::inner_product(query.begin(), query.end(), row.begin(), 0.0);
}

double MeasureLength(std::span<const double> vector) {
  return std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
}

// Why the query cannot be checked; empty if it asks only for the rows nearest to a target.
std::string WhyNotPlain(const v1::Query& query, const v1::SearchOptions& options) {
  if (query.has_examples() || query.has_blend()) return "examples and blends";
  const bool has_filter = query.has_filter() ? !query.filter().empty() : !options.filter().empty();
  if (has_filter || !options.required_filter().empty()) return "filters";
  if (query.has_group_by() || query.has_diversity() || options.has_group_by() ||
      options.has_diversity()) {
    return "groups and diversity";
  }
  if (!query.exclude_ids().empty() || !options.exclude_ids().empty() || options.has_allow_ids() ||
      query.exclude_seen() || options.exclude_seen() || query.has_score_threshold() ||
      options.has_score_threshold() || query.offset() > 0 || options.offset() > 0) {
    return "exclusions, thresholds and offsets";
  }
  return "";
}

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
Request ParseRequest(const grpc::Slice& bytes) {
  Request request;
  request.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()));
  return request;
}

// Parses a request and its answer, from either transport, and calls check(request, response).
template <class Request, class Response, class Check>
absl::StatusOr<CheckedAnswer> CheckAs(const grpc::Slice& request_bytes,
                                      const grpc::ByteBuffer& answer, Transport transport,
                                      const Check& check) {
  const auto request = ParseRequest<Request>(request_bytes);
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

// Where two results differ. REQUIRES: they are not equal.
std::string DescribeDifference(const v1::SearchResult& here, const v1::SearchResult& there) {
  if (here.hits_size() != there.hits_size() || here.groups_size() != there.groups_size()) {
    return fmt::format("{} hits and {} groups, and on the other server {} and {}", here.hits_size(),
                       here.groups_size(), there.hits_size(), there.groups_size());
  }
  if (const std::optional<int> place = FirstDifferentHit(here, there)) {
    return fmt::format("rank {} is {}, and on the other server {}", here.hits(*place).rank(),
                       HitText(here, *place), HitText(there, *place));
  }
  for (int i = 0; i < here.groups_size(); ++i) {
    if (here.groups(i).keyword() == there.groups(i).keyword()) continue;
    return fmt::format("group {} is {}, and on the other server {}", i + 1,
                       here.groups(i).keyword(), there.groups(i).keyword());
  }
  return "a field of the result";
}

template <class Response>
CheckedAnswer Compare(const Response& here, const Response& there) {
  if (here.receipt().snapshot_id() != there.receipt().snapshot_id()) {
    return {CheckedAnswer::Result::kUnchecked, "the other server has other content"};
  }
  if (here.results_size() != there.results_size()) {
    return {CheckedAnswer::Result::kWrong, fmt::format("{} results, and on the other server {}",
                                                       here.results_size(), there.results_size())};
  }
  for (int i = 0; i < here.results_size(); ++i) {
    if (google::protobuf::util::MessageDifferencer::Equals(here.results(i), there.results(i))) {
      continue;
    }
    return {CheckedAnswer::Result::kWrong,
            fmt::format("query {}: {}", i, DescribeDifference(here.results(i), there.results(i)))};
  }
  return {};
}

// The other server's answers. Asks for each answer once.
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

VectorCheck::VectorCheck(const QuerySamples& samples) : samples_(samples) {
  for (std::size_t i = 0; i < samples.rows.size(); ++i) {
    rows_.emplace(samples.rows[i].id, i);
    const std::vector<double> row(samples.rows[i].vector.begin(), samples.rows[i].vector.end());
    longest_row_ = std::max(longest_row_, MeasureLength(row));
  }
  for (std::size_t i = 0; i < samples.users.size(); ++i) {
    if (!samples.users[i].vector.empty()) users_.emplace(samples.users[i].id, i);
  }
}

std::optional<VectorCheck::Target> VectorCheck::FindTarget(const v1::Query& query) const {
  Target target;
  bool normalize = samples_.metric == Metric::kCosine;
  if (query.has_packed_vector()) {
    const std::string& bytes = query.packed_vector().data();
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    target.vector.assign(values.begin(), values.end());
  } else if (query.has_vector()) {
    target.vector.assign(query.vector().values().begin(), query.vector().values().end());
  } else {
    const auto& known = query.has_id() ? rows_ : users_;
    const auto found = known.find(query.has_id() ? query.id() : query.user_id());
    if (found == known.end()) return std::nullopt;
    const SampledRow& row = (query.has_id() ? samples_.rows : samples_.users)[found->second];
    target.vector.assign(row.vector.begin(), row.vector.end());
    if (query.has_id()) target.excluded_id = query.id();
    normalize = false;  // rows and profiles are searched as they are stored
  }
  const double length = MeasureLength(target.vector);
  if (normalize && length > 0) {
    for (double& value : target.vector) value /= length;
  }
  return target;
}

double VectorCheck::Tolerance(const Target& target) const {
  const double length = MeasureLength(target.vector);
  return certificate::CanonicalScoreError(samples_.dim, length, longest_row_) +
         kNormalizingError * length * longest_row_;
}

CheckedAnswer VectorCheck::CheckHits(const Target& target, std::size_t k,
                                     const v1::SearchResult& result) const {
  const auto wrong = [](std::string why) {
    return CheckedAnswer{CheckedAnswer::Result::kWrong, std::move(why)};
  };
  const double tolerance = Tolerance(target);
  const std::size_t possible =
      samples_.row_count - samples_.skipped_rows - (target.excluded_id.empty() ? 0 : 1);
  const auto hit_count = static_cast<std::size_t>(result.hits_size());
  if (hit_count != std::min<std::size_t>(k, possible)) {
    return wrong(
        fmt::format("{} hits, where k is {} and {} rows can be returned", hit_count, k, possible));
  }
  std::unordered_set<std::string_view> returned;
  for (int i = 0; i < result.hits_size(); ++i) {
    const v1::Hit& hit = result.hits(i);
    if (!returned.insert(hit.id()).second)
      return wrong(fmt::format("{} is returned twice", hit.id()));
    if (hit.id() == target.excluded_id) return wrong(hit.id() + " is the query's own item");
    if (hit.rank() != static_cast<std::uint32_t>(i) + 1) {
      return wrong(fmt::format("hit {} has rank {}", i + 1, hit.rank()));
    }
    if (!std::isfinite(hit.score())) {
      return wrong(fmt::format("rank {}, {}: its score is {}", i + 1, hit.id(), hit.score()));
    }
    if (i > 0 && hit.score() > result.hits(i - 1).score()) {
      return wrong(fmt::format("rank {} has a better score than rank {}", i + 1, i));
    }
    const auto known = rows_.find(hit.id());
    if (known == rows_.end()) {
      if (samples_.has_all_rows)
        return wrong(fmt::format("the collection has no item {}", hit.id()));
      continue;
    }
    const double score = Dot(target.vector, samples_.rows[known->second].vector);
    if (std::abs(score - hit.score()) > tolerance) {
      return wrong(fmt::format("rank {}, {}: its score is {:.9g}, not {:.9g}", i + 1, hit.id(),
                               score, hit.score()));
    }
  }
  if (result.hits().empty()) return {};
  const v1::Hit& last = result.hits(result.hits_size() - 1);
  for (const SampledRow& row : samples_.rows) {
    if (row.id == target.excluded_id || returned.contains(row.id)) continue;
    const double score = Dot(target.vector, row.vector);
    if (score > last.score() + tolerance) {
      return wrong(fmt::format("{} is missing: its score is {:.9g}, the last hit's {:.9g}", row.id,
                               score, last.score()));
    }
  }
  return {};
}

CheckedAnswer VectorCheck::CheckQuery(const v1::Query& query, const v1::SearchOptions& options,
                                      const v1::SearchResult& result) const {
  const std::string unchecked = WhyNotPlain(query, options);
  if (!unchecked.empty()) return {CheckedAnswer::Result::kUnchecked, unchecked};
  const std::optional<Target> target = FindTarget(query);
  if (!target) {
    return {CheckedAnswer::Result::kUnchecked, query.has_id()
                                                   ? "items whose vector was not fetched"
                                                   : "users, whose vectors only --folder has"};
  }
  const std::size_t k = query.has_k() ? query.k() : options.has_k() ? options.k() : kDefaultK;
  return CheckHits(*target, k, result);
}

CheckedAnswer VectorCheck::Check(const v1::SearchRequest& request,
                                 const v1::SearchResponse& response) const {
  if (response.receipt().snapshot_id() != samples_.snapshot_id) {
    return {CheckedAnswer::Result::kUnchecked, "answers from other content, after a reload"};
  }
  if (response.results_size() != request.queries_size()) {
    return {
        CheckedAnswer::Result::kWrong,
        fmt::format("{} results for {} queries", response.results_size(), request.queries_size())};
  }
  CheckedAnswer all;
  for (int i = 0; i < request.queries_size(); ++i) {
    CheckedAnswer one = CheckQuery(request.queries(i), request.options(), response.results(i));
    if (one.result == CheckedAnswer::Result::kWrong) {
      one.why = fmt::format("queries[{}]: {}", i, one.why);
      return one;
    }
    if (one.result == CheckedAnswer::Result::kUnchecked) all = one;
  }
  return all;
}

CheckedAnswer VectorCheck::Check(const v1::RecommendRequest& request,
                                 const v1::RecommendResponse& response) const {
  // Recommend must answer as a Search for the same users does.
  v1::SearchRequest search;
  *search.mutable_options() = request.options();
  for (const std::string& user : request.user_ids()) search.add_queries()->set_user_id(user);
  v1::SearchResponse found;
  *found.mutable_results() = response.results();
  found.mutable_receipt()->set_snapshot_id(response.receipt().snapshot_id());
  return Check(search, found);
}

CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check) {
  // Dereferences the StatusOr, because this check never returns an error.
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
