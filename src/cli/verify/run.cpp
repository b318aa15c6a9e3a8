#include "cli/verify/run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/verify/sample.h"

namespace simile::cli {
namespace {

constexpr std::size_t kFindingsMax = 20;  // described; all are counted

// Stored rows take about as long as the samples.
constexpr double kRowsShare = 0.3;

struct SampleAnswer {
  v1::SearchResult result;
  v1::Receipt receipt;
};

// Asks for all pages of a sample; their hits together are the result.
absl::StatusOr<SampleAnswer> AskOne(const Connection& connection, const Sample& sample) {
  SampleAnswer answer;
  v1::SearchRequest request = sample.request;
  for (std::uint32_t page = 0; page < sample.pages; ++page) {
    const absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
    if (!response.ok()) return response.status();
    if (response->results_size() != 1) return absl::InternalError("it did not answer one query");
    answer.receipt = response->receipt();
    google::protobuf::RepeatedPtrField<v1::Hit> hits = std::move(*answer.result.mutable_hits());
    hits.MergeFrom(response->results(0).hits());
    answer.result = response->results(0);
    *answer.result.mutable_hits() = std::move(hits);
    if (response->next_page_token().empty()) break;
    request.mutable_options()->set_page_token(response->next_page_token());
  }
  return answer;
}

absl::StatusOr<SampleAnswer> Recommend(const Connection& connection, const Sample& sample) {
  v1::RecommendRequest request;
  request.set_collection(sample.request.collection());
  *request.mutable_options() = sample.request.options();
  request.mutable_options()->set_k(sample.request.queries(0).k());
  request.add_user_ids(sample.request.queries(0).user_id());
  const absl::StatusOr<v1::RecommendResponse> response = connection.Recommend(request);
  if (!response.ok()) return response.status();
  if (response->results_size() != 1) return absl::InternalError("it did not answer one user");
  if (response->results(0).user_id() != request.user_ids(0)) {
    return absl::InternalError("it answered for another user");
  }
  return SampleAnswer{response->results(0), response->receipt()};
}

// What is wrong with an answer, in one sentence.
std::optional<std::string> CheckSample(const Sample& sample, const SampleAnswer& answer,
                                       const std::string& served_snapshot_id) {
  const v1::SearchResult& result = answer.result;
  if (!answer.receipt.exact()) return "the receipt does not say that the answer is exact";
  if (answer.receipt.snapshot_id() != served_snapshot_id) {
    return fmt::format("the content changed meanwhile, to {}", answer.receipt.snapshot_id());
  }
  if (result.score_kind() != sample.score_kind) {
    return fmt::format("its scores are {}, not {}", v1::ScoreKind_Name(result.score_kind()),
                       v1::ScoreKind_Name(sample.score_kind));
  }
  if (!sample.rows_passing && result.has_rows_passing()) {
    return fmt::format("it says that {} pass a filter, and has none",
                       base::Counted(result.rows_passing(), "row"));
  }
  if (sample.rows_passing && result.rows_passing() != *sample.rows_passing) {
    return fmt::format("{} pass its filter; in the files {} do",
                       base::Counted(result.rows_passing(), "row"),
                       base::Grouped(*sample.rows_passing));
  }
  return sample.check(result);
}

class Verifier {
 public:
  Verifier(const Connection& connection, const v1::Collection& served, const data::Dataset& dataset,
           const VerifyOptions& options)
      : connection_(connection), served_(served), dataset_(dataset), options_(options) {
    result_.served_snapshot_id = served.snapshot_id();
    result_.snapshot_id = dataset.content_id;
  }

  absl::StatusOr<Verification> Run(const std::function<void(double)>& progress) {
    CompareShape();
    // The files of another collection: vectors of other sizes cannot be compared.
    if (served_.dim() != dataset_.vectors.dim()) return std::move(result_);
    auto rows =
        CompareStoredRows(connection_, served_.name(), dataset_, options_.rows_max, kFindingsMax);
    if (!rows.ok()) return rows.status();
    result_.rows = *std::move(rows);
    result_.different += result_.rows.different;
    const Oracle oracle(dataset_);
    SampleDraw draw(oracle, served_, options_.seed);
    const std::vector<SampleKind> kinds = SampleKinds();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      progress(kRowsShare +
               (1 - kRowsShare) * static_cast<double>(i) / static_cast<double>(kinds.size()));
      if (absl::Status status = AskKind(kinds[i], draw); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  void Add(std::string finding) {
    ++result_.different;
    if (result_.findings.size() < kFindingsMax) {
      result_.findings.push_back(std::move(finding));
    }
  }

  template <class Number>
  void Compare(std::string_view what, const Number& served, const Number& in_files) {
    if (served == in_files) return;
    Add(fmt::format("{}: {} served, {} in the files", what, served, in_files));
  }

  void CompareShape() {
    Compare("content (snapshot id)", result_.served_snapshot_id, result_.snapshot_id);
    Compare<std::uint64_t>("rows", served_.rows(), dataset_.vectors.row_count());
    Compare<std::uint64_t>("rows that no search returns", served_.skipped_rows(),
                           dataset_.skipped_rows.size());
    Compare<std::uint64_t>("dimensions", served_.dim(), dataset_.vectors.dim());
    Compare<std::uint64_t>("users", served_.users(), dataset_.profiles.ids.size());
    Compare<std::uint64_t>("interactions", served_.interactions(),
                           dataset_.profiles.seen.pair_count());
    const auto metric = dataset_.metric == Metric::kCosine ? v1::Collection::METRIC_COSINE
                                                           : v1::Collection::METRIC_DOT;
    Compare("metric", v1::Collection::Metric_Name(served_.metric()),
            v1::Collection::Metric_Name(metric));
  }

  // Errors: the server cannot be reached.
  absl::Status AskKind(const SampleKind& kind, SampleDraw& draw) {
    Verification::Kind tally{.name = kind.name};
    for (std::uint32_t i = 0; i < options_.samples; ++i) {
      const std::optional<Sample> sample = kind.draw(draw);
      if (!sample) break;
      ++tally.asked;
      const absl::StatusOr<SampleAnswer> answer =
          sample->recommend ? Recommend(connection_, *sample) : AskOne(connection_, *sample);
      if (absl::IsUnavailable(answer.status())) return answer.status();
      const std::optional<std::string> wrong =
          answer.ok() ? CheckSample(*sample, *answer, result_.served_snapshot_id)
                      : std::string(answer.status().message());
      if (!wrong) continue;
      ++tally.wrong;
      Add(fmt::format("{}: {}", sample->label, *wrong));
    }
    result_.kinds.push_back(std::move(tally));
    return absl::OkStatus();
  }

  const Connection& connection_;
  const v1::Collection& served_;
  const data::Dataset& dataset_;
  const VerifyOptions& options_;
  Verification result_;
};

}  // namespace

absl::StatusOr<Verification> Verify(const Connection& connection, const v1::Collection& served,
                                    const data::Dataset& dataset, const VerifyOptions& options,
                                    const std::function<void(double)>& progress) {
  return Verifier(connection, served, dataset, options).Run(progress);
}

}  // namespace simile::cli
