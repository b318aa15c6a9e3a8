#include "cli/verify/verification.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/payload_text.h"
#include "cli/verify/sample.h"
#include "data/payload/payload_encoding.h"

namespace simile::cli {
namespace {

// Rows per Fetch. Few enough for every server's limit of ids, and of bytes with 4,096 dimensions.
constexpr std::size_t kRowsPerFetch = 128;

bool Equals(const PayloadValue& stored, const v1::PayloadValue& served);

struct ValueComparison {
  const v1::PayloadValue& served;

  bool operator()(std::monostate) const { return served.null_value(); }
  bool operator()(bool flag) const {
    return served.kind_case() == v1::PayloadValue::kBoolValue && served.bool_value() == flag;
  }
  bool operator()(std::int64_t number) const {
    return served.kind_case() == v1::PayloadValue::kIntValue && served.int_value() == number;
  }
  bool operator()(double number) const {
    return served.kind_case() == v1::PayloadValue::kDoubleValue && served.double_value() == number;
  }
  bool operator()(const std::string& text) const {
    return served.kind_case() == v1::PayloadValue::kStringValue && served.string_value() == text;
  }
  bool operator()(const PayloadList& list) const {
    return served.kind_case() == v1::PayloadValue::kListValue &&
           std::equal(list.begin(), list.end(), served.list_value().values().begin(),
                      served.list_value().values().end(), Equals);
  }
  bool operator()(const PayloadObject& object) const {
    const auto& fields = served.object_value().fields();
    return served.kind_case() == v1::PayloadValue::kObjectValue && fields.size() == object.size() &&
           std::all_of(object.begin(), object.end(), [&](const PayloadMember& member) {
             const auto field = fields.find(member.first);
             return field != fields.end() && Equals(member.second, field->second);
           });
  }
};

bool Equals(const PayloadValue& stored, const v1::PayloadValue& served) {
  return std::visit(ValueComparison{served}, stored.value);
}

std::string CompareVector(std::span<const float> stored, const v1::FloatVector& served) {
  if (static_cast<std::size_t>(served.values_size()) != stored.size()) {
    return fmt::format("{} served, {} in the files",
                       base::Counted(static_cast<std::uint64_t>(served.values_size()), "dimension"),
                       stored.size());
  }
  std::size_t different = 0;
  std::string first;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const float value = served.values(static_cast<int>(i));
    if (std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(stored[i])) continue;
    if (different++ == 0) {
      first =
          fmt::format("at column {} {:.9g} is served and {:.9g} in the files", i, value, stored[i]);
    }
  }
  if (different == 0) return {};
  return fmt::format("its vector differs in {} of {} numbers; {}", different, stored.size(), first);
}

std::string StoredText(const PayloadValue& stored) {
  std::vector<std::uint8_t> encoded;
  data::AppendValue(encoded, stored);
  v1::PayloadValue value;
  value.ParseFromArray(encoded.data(), static_cast<int>(encoded.size()));
  return ValueText(value);
}

std::string ComparePayload(const PayloadObject& stored, const PayloadMap& served) {
  for (const PayloadMember& member : stored) {
    const auto field = served.find(member.first);
    if (field == served.end()) {
      return fmt::format("payload field {} is not served", base::Quoted(member.first));
    }
    if (Equals(member.second, field->second)) continue;
    return fmt::format("payload field {} is {}, but {} in the files", base::Quoted(member.first),
                       base::Quoted(ValueText(field->second)),
                       base::Quoted(StoredText(member.second)));
  }
  for (const auto& [name, value] : served) {
    const bool stored_too =
        std::any_of(stored.begin(), stored.end(),
                    [&name = name](const auto& member) { return member.first == name; });
    if (!stored_too) return fmt::format("payload field {} is not in the files", base::Quoted(name));
  }
  return {};
}

// Fetches and compares some rows. Repeats the Fetch without each id that the server does not know.
absl::Status CompareSome(const Connection& connection, const std::string& collection,
                         const data::Dataset& dataset, std::vector<Row> rows,
                         std::size_t findings_max, StoredRows& result) {
  const auto add = [&](std::string finding) {
    ++result.different;
    if (result.findings.size() < findings_max) result.findings.push_back(std::move(finding));
  };
  while (!rows.empty()) {
    v1::FetchRequest request;
    request.set_collection(collection);
    request.set_with_vectors(true);
    request.set_reply_bytes_max(kReplyBytesMax);
    for (const Row row : rows) request.add_ids(dataset.ids.Id(row));
    const absl::StatusOr<v1::FetchResponse> fetched = connection.Fetch(request);
    if (fetched.ok() && static_cast<std::size_t>(fetched->items_size()) != rows.size()) {
      result.compared += rows.size();
      add(fmt::format("{} from {} on: {} served", base::Counted(rows.size(), "row"), rows.front(),
                      base::Counted(static_cast<std::uint64_t>(fetched->items_size()), "item")));
      return absl::OkStatus();
    }
    if (fetched.ok()) {
      for (int i = 0; i < fetched->items_size(); ++i) {
        ++result.compared;
        std::string finding =
            CompareRow(dataset, rows[static_cast<std::size_t>(i)], fetched->items(i));
        if (!finding.empty()) add(std::move(finding));
      }
      return absl::OkStatus();
    }
    // An id is unknown: finds it by fetching the rows one by one.
    if (!absl::IsNotFound(fetched.status())) return fetched.status();
    if (rows.size() == 1) {
      ++result.compared;
      add(fmt::format("row {} ({}): the server does not have it", rows.front(),
                      dataset.ids.Id(rows.front())));
      return absl::OkStatus();
    }
    const auto half = static_cast<std::ptrdiff_t>(rows.size() / 2);
    absl::Status first = CompareSome(connection, collection, dataset,
                                     {rows.begin(), rows.begin() + half}, findings_max, result);
    if (!first.ok()) return first;
    rows.erase(rows.begin(), rows.begin() + half);
  }
  return absl::OkStatus();
}

constexpr std::size_t kFindingsMax = 20;  // findings that are described; all are counted

// The share of the progress for stored rows.
constexpr double kRowsShare = 0.3;

struct SampleAnswer {
  v1::SearchResult result;
  v1::Receipt receipt;
};

// Asks for all pages of a sample and joins their hits.
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

// What is wrong with an answer, in one sentence; nothing if it is right.
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
    // Another dimension means that the files are another collection's; rows cannot be compared.
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

  // Errors: the connection's, if the server cannot be reached.
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

std::string CompareRow(const data::Dataset& dataset, Row row, const v1::Item& served) {
  const std::string id = dataset.ids.Id(row);
  std::string difference;
  if (served.id() != id) {
    difference = fmt::format("served with id {}", base::Quoted(served.id()));
  } else {
    difference = CompareVector(dataset.vectors.view()[row], served.vector());
  }
  if (difference.empty()) {
    const bool has_payload = dataset.payload.row_count() > 0;
    difference =
        ComparePayload(has_payload ? dataset.payload.Read(row) : PayloadObject(), served.payload());
  }
  return difference.empty() ? difference : fmt::format("row {} ({}): {}", row, id, difference);
}

absl::StatusOr<StoredRows> CompareStoredRows(const Connection& connection,
                                             const std::string& collection,
                                             const data::Dataset& dataset, std::uint64_t rows_max,
                                             std::size_t findings_max) {
  const std::uint64_t row_count = dataset.vectors.row_count();
  const std::uint64_t count = std::min(row_count, rows_max);
  StoredRows result;
  std::vector<Row> rows;
  for (std::uint64_t i = 0; i < count; ++i) {
    rows.push_back(static_cast<Row>(i * row_count / count));
    if (rows.size() < kRowsPerFetch && i + 1 < count) continue;
    absl::Status compared =
        CompareSome(connection, collection, dataset, std::exchange(rows, {}), findings_max, result);
    if (!compared.ok()) return compared;
  }
  return result;
}

absl::StatusOr<Verification> Verify(const Connection& connection, const v1::Collection& served,
                                    const data::Dataset& dataset, const VerifyOptions& options,
                                    const std::function<void(double)>& progress) {
  return Verifier(connection, served, dataset, options).Run(progress);
}

}  // namespace simile::cli
