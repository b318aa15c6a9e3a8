#include "cli/bench/query_samples.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <sstream>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "cli/bench/random_draw.h"
#include "cli/wire_names.h"
#include "data/formats/vector_format.h"
#include "data/formats/vector_reader.h"
#include "data/load/folder.h"
#include "data/load/id_list_reader.h"
#include "data/load/load.h"
#include "simile/matrix_view.h"

namespace simile::cli::bench {
namespace {

// Whether a filter can contain the name without quotes.
bool IsPlainName(const std::string& name) {
  return !name.empty() && (std::isdigit(static_cast<unsigned char>(name[0])) == 0) &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

// Whether a filter can contain the text in quotes without escapes.
bool IsPlainText(const std::string& text) {
  return std::ranges::none_of(text, [](char c) {
    return c == '"' || c == '\\' || std::iscntrl(static_cast<unsigned char>(c)) != 0;
  });
}

// Splits "A | B" at its bars and trims the parts. Drops empty parts.
std::vector<std::string> SplitAtBars(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, '|');) {
    const std::size_t begin = part.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(" \t") + 1 - begin));
  }
  return parts;
}

// Rows sampled from a server whose rows do not fit in one answer.
constexpr std::size_t kSampledRows = 4'000;
constexpr std::size_t kDirections = 8;
// The most bytes of a hit in an answer, besides its vector.
constexpr std::uint64_t kHitBytesMax = 1'024;
// Bytes of vectors in one answer. Leaves space for the rest within limits.reply_bytes_max.
constexpr std::uint64_t kAnswerBytesMax = 48U << 20;
constexpr std::size_t kQueryVectors = 2'000;
constexpr double kOtherRowShare = 0.2;
constexpr std::uint32_t kFilterValues = 10;  // of each field

std::vector<float> ToUnitLength(std::vector<float> vector) {
  const double square = std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0);
  const double scale = square > 0 ? 1 / std::sqrt(square) : 1;
  for (float& value : vector) value = static_cast<float>(value * scale);
  return vector;
}

absl::Status InPath(std::string_view path, const absl::Status& error) {
  return base::WithMessage(error, fmt::format("{}: {}", path, std::string(error.message())));
}

// Opens a file by its path, which may be relative.
absl::StatusOr<std::unique_ptr<data::FileSource>> OpenPath(const std::string& path) {
  const std::filesystem::path file(path);
  const absl::StatusOr<data::Folder> folder =
      data::Folder::Open(file.has_parent_path() ? file.parent_path() : ".");
  if (!folder.ok()) return InPath(path, folder.status());
  return folder->OpenFile(file.filename().string());
}

std::vector<float> CopyRow(const MatrixView& matrix, std::size_t index) {
  return {matrix[index].begin(), matrix[index].end()};
}

absl::Status ReadVectorsFile(const std::string& path, const Limits& limits, QuerySamples& samples) {
  auto file = OpenPath(path);
  if (!file.ok()) return file.status();
  data::BufferedReader reader(**file);
  const auto layout = data::ReadVectorLayout(reader, "", limits);
  if (!layout.ok()) return layout.status();
  if (layout->dim != samples.dim) {
    return absl::InvalidArgumentError(
        fmt::format("{} holds {} dimensions, {} has {}. A vector from another model cannot be "
                    "compared.",
                    path, layout->dim, samples.collection, samples.dim));
  }
  data::VectorFacts facts;
  const auto matrix = data::ReadMatrix(reader, *layout, {.metric = Metric::kDot}, facts);
  if (!matrix.ok()) return matrix.status();
  if (samples.metric == Metric::kCosine && facts.shortest == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} holds a vector of zeros, which has no direction to search {} in", path,
                    samples.collection));
  }
  for (std::size_t i = 0; i < matrix->row_count(); ++i) {
    samples.query_vectors.push_back(CopyRow(matrix->view(), i));
  }
  return absl::OkStatus();
}

absl::Status ReadUsersFile(const std::string& path, const Limits& limits, QuerySamples& samples) {
  auto file = OpenPath(path);
  if (!file.ok()) return file.status();
  data::BufferedReader reader(**file);
  const auto ids = data::ReadIdList(reader, std::nullopt, limits);
  if (!ids.ok()) return ids.status();
  samples.users.clear();
  samples.seen_ids.clear();
  for (std::size_t i = 0; i < ids->size(); ++i) {
    samples.users.push_back({ids->Id(static_cast<Row>(i)), {}});
  }
  return absl::OkStatus();
}

absl::Status ReadFolder(const std::string& folder, const Limits& limits,
                        const v1::Collection& collection, QuerySamples& samples) {
  auto plan = data::PlanDataset(folder, limits);
  if (!plan.ok()) return InPath(folder, plan.status());
  if (plan->row_count != samples.row_count || plan->dim != samples.dim) {
    return absl::InvalidArgumentError(fmt::format(
        "{} holds {} x {}, the server's {} {} x {}: give the folder that the server loaded", folder,
        base::Grouped(plan->row_count), plan->dim, samples.collection,
        base::Grouped(samples.row_count), samples.dim));
  }
  plan->kept_types = ServedTypes(collection);
  const auto dataset = data::LoadDataset(*plan, limits, [](const data::ReadProgress&) {});
  if (!dataset.ok()) return dataset.status();
  if (!samples.snapshot_id.empty() && dataset->content_id != samples.snapshot_id) {
    return absl::InvalidArgumentError(fmt::format(
        "{} holds other content ({}) than the server's {} ({}): give the folder that the "
        "server loaded, unchanged",
        folder, dataset->content_id, samples.collection, samples.snapshot_id));
  }
  samples.skipped_rows = dataset->skipped_rows.size();
  for (std::size_t i = 0; i < dataset->vectors.row_count(); ++i) {
    if (std::ranges::binary_search(dataset->skipped_rows, i)) continue;
    samples.rows.push_back(
        {dataset->ids.Id(static_cast<Row>(i)), CopyRow(dataset->vectors.view(), i)});
  }
  for (std::size_t i = 0; i < dataset->profiles.ids.size(); ++i) {
    samples.users.push_back({dataset->profiles.ids.Id(static_cast<Row>(i)),
                             CopyRow(dataset->profiles.vectors.view(), i)});
    std::vector<std::string>& seen = samples.seen_ids.emplace_back();
    for (const Row row : dataset->profiles.seen.Of(static_cast<Row>(i))) {
      seen.push_back(dataset->ids.Id(row));
    }
  }
  samples.has_all_rows = true;
  return absl::OkStatus();
}

// Searches for the rows nearest to a random direction, with their vectors.
absl::StatusOr<v1::SearchResponse> SearchDirection(const Connection& connection,
                                                   const QuerySamples& samples, std::size_t k,
                                                   RandomDraw& random) {
  v1::SearchRequest request;
  request.set_collection(samples.collection);
  auto& values = *request.add_queries()->mutable_vector()->mutable_values();
  for (std::size_t i = 0; i < samples.dim; ++i) values.Add(static_cast<float>(random.Normal()));
  v1::SearchOptions& options = *request.mutable_options();
  options.set_k(static_cast<std::uint32_t>(k));
  options.set_with_vectors(true);
  options.set_with_rows(true);
  options.mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
  options.set_reply_bytes_max(Limits{}.reply_bytes_max);
  options.set_expected_snapshot_id(samples.snapshot_id);
  return connection.Search(request);
}

// Whether the ids of all these hits are their row numbers.
bool HasRowNumberIds(const v1::SearchResponse& response) {
  return std::ranges::all_of(response.results(0).hits(), [](const v1::Hit& hit) {
    return hit.has_row() && hit.id() == std::to_string(hit.row());
  });
}

absl::Status FetchRowNumbers(const Connection& connection, QuerySamples& samples,
                             RandomDraw& random) {
  std::unordered_set<std::uint64_t> numbers;
  const std::size_t wanted = std::min<std::size_t>(kSampledRows, samples.row_count);
  while (numbers.size() < wanted) numbers.insert(random.Bits() % samples.row_count);
  // Sorts, because the order of a hash set differs between machines.
  std::vector<std::uint64_t> rows(numbers.begin(), numbers.end());
  std::ranges::sort(rows);
  const std::size_t page = std::clamp<std::size_t>(
      kAnswerBytesMax / (samples.dim * sizeof(float) + kHitBytesMax), 1, Limits{}.fetch_ids_max);
  for (std::size_t first = 0; first < rows.size(); first += page) {
    v1::FetchRequest request;
    request.set_collection(samples.collection);
    for (std::size_t i = first; i < std::min(first + page, rows.size()); ++i) {
      request.add_ids(std::to_string(rows[i]));
    }
    request.set_with_vectors(true);
    request.mutable_payload()->set_selection(v1::PayloadSelector::SELECTION_NONE);
    request.set_reply_bytes_max(Limits{}.reply_bytes_max);
    request.set_expected_snapshot_id(samples.snapshot_id);
    const auto response = connection.Fetch(request);
    if (!response.ok()) return response.status();
    for (const v1::Item& item : response->items()) {
      std::vector<float> vector(item.vector().values().begin(), item.vector().values().end());
      // Searches skip zero vectors.
      if (samples.metric == Metric::kCosine && IsZeroVector(vector)) continue;
      samples.rows.push_back({item.id(), std::move(vector)});
    }
  }
  return absl::OkStatus();
}

void AddHits(const v1::SearchResponse& response, std::unordered_set<std::string>& known,
             QuerySamples& samples) {
  for (const v1::Hit& hit : response.results(0).hits()) {
    if (!known.insert(hit.id()).second) continue;
    samples.rows.push_back(
        {hit.id(), {hit.vector().values().begin(), hit.vector().values().end()}});
  }
}

absl::Status AskForRows(const Connection& connection, QuerySamples& samples, RandomDraw& random) {
  if (samples.row_count == 0) return absl::OkStatus();
  const std::uint64_t row_bytes = samples.dim * sizeof(float) + kHitBytesMax;
  const std::uint64_t k_max =
      std::clamp<std::uint64_t>(kAnswerBytesMax / row_bytes, 1, Limits{}.k_max);
  const bool all = samples.row_count <= k_max;
  const std::size_t k =
      all ? samples.row_count : std::min<std::uint64_t>(k_max, kSampledRows / kDirections);
  std::unordered_set<std::string> known;
  for (std::size_t i = 0; i < (all ? 1 : kDirections); ++i) {
    const auto response = SearchDirection(connection, samples, k, random);
    if (!response.ok()) return response.status();
    if (response->results().empty()) return absl::DataLossError("the server answered no query");
    if (!all && i == 0 && HasRowNumberIds(*response)) {
      return FetchRowNumbers(connection, samples, random);
    }
    AddHits(*response, known, samples);
  }
  samples.has_all_rows = samples.rows.size() == samples.row_count - samples.skipped_rows;
  return absl::OkStatus();
}

void MakeQueryVectors(QuerySamples& samples, RandomDraw& random) {
  if (samples.rows.empty()) return;
  for (std::size_t i = 0; i < kQueryVectors; ++i) {
    const SampledRow& row = samples.rows[random.Below(samples.rows.size())];
    const SampledRow& other = samples.rows[random.Below(samples.rows.size())];
    std::vector<float> vector(row.vector.size());
    for (std::size_t j = 0; j < vector.size(); ++j) {
      vector[j] = static_cast<float>((1 - kOtherRowShare) * row.vector[j] +
                                     kOtherRowShare * other.vector[j]);
    }
    if (IsZeroVector(vector)) vector = row.vector;
    samples.query_vectors.push_back(
        samples.metric == Metric::kCosine ? ToUnitLength(std::move(vector)) : std::move(vector));
  }
}

absl::Status AskForFields(const Connection& connection, QuerySamples& samples) {
  v1::DescribeFieldsRequest request;
  request.set_collection(samples.collection);
  request.set_values_max(kFilterValues);
  const auto response = connection.DescribeFields(request);
  if (!response.ok()) return response.status();
  std::uint64_t fewest = 0;
  for (const v1::FieldDescription& described : response->fields()) {
    std::ranges::move(SampleFilters(described), std::back_inserter(samples.filters));
    const v1::FieldType type = described.field().type();
    const bool groups = type == v1::FIELD_TYPE_KEYWORD || type == v1::FIELD_TYPE_KEYWORD_LIST;
    if (!groups || described.distinct_values() < 2) continue;
    if (samples.group_field.empty() || described.distinct_values() < fewest) {
      samples.group_field = described.field().name();
      fewest = described.distinct_values();
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described) {
  std::vector<SampledFilter> filters;
  const v1::PayloadField& field = described.field();
  if (!IsPlainName(field.name())) return filters;
  if (field.type() == v1::FIELD_TYPE_KEYWORD || field.type() == v1::FIELD_TYPE_KEYWORD_LIST) {
    for (const v1::ValueCount& value : described.values()) {
      const std::string& text = value.value().string_value();
      if (value.rows() < 2 || !IsPlainText(text)) continue;
      filters.push_back(
          {fmt::format("{} = \"{}\"", field.name(), text), field.name(), field.type(), text, 0});
    }
  }
  if (field.type() == v1::FIELD_TYPE_INTEGER) {
    const auto least = static_cast<double>(described.least().int_value());
    const auto greatest = static_cast<double>(described.greatest().int_value());
    for (const double share : {0.25, 0.5, 0.75}) {
      const std::int64_t from = std::llround(least + share * (greatest - least));
      filters.push_back(
          {fmt::format("{} >= {}", field.name(), from), field.name(), field.type(), "", from});
    }
  }
  return filters;
}

std::vector<std::string> ReadKeywords(v1::FieldType type, const v1::PayloadValue& value) {
  std::vector<std::string> keywords;
  if (value.has_list_value()) {
    for (const v1::PayloadValue& item : value.list_value().values()) {
      keywords.push_back(item.string_value());
    }
  } else if (value.has_string_value() && type == v1::FIELD_TYPE_KEYWORD_LIST) {
    keywords = SplitAtBars(value.string_value());
  } else if (value.has_string_value()) {
    keywords.push_back(value.string_value());
  }
  return keywords;
}

bool Passes(const SampledFilter& filter, const PayloadMap& payload) {
  const auto found = payload.find(filter.field);
  if (found == payload.end()) return false;
  if (filter.type != v1::FIELD_TYPE_INTEGER) {
    const v1::PayloadValue& value = found->second;
    if (value.has_string_value() && value.string_value() == filter.keyword) return true;
    const std::vector<std::string> keywords = ReadKeywords(filter.type, value);
    return std::ranges::find(keywords, filter.keyword) != keywords.end();
  }
  const v1::PayloadValue& value = found->second;
  if (value.has_double_value()) {
    const double number = value.double_value();
    return std::floor(number) == number && std::abs(number) < 0x1p63 &&
           static_cast<std::int64_t>(number) >= filter.least;
  }
  return value.has_int_value() && value.int_value() >= filter.least;
}

absl::StatusOr<QuerySamples> CollectSamples(const Connection& connection,
                                            const v1::Collection& collection,
                                            const SampleSources& sources,
                                            const SampleNeeds& needs) {
  QuerySamples samples;
  samples.collection = collection.name();
  samples.dim = collection.dim();
  samples.metric =
      collection.metric() == v1::Collection::METRIC_DOT ? Metric::kDot : Metric::kCosine;
  samples.snapshot_id = collection.snapshot_id();
  samples.row_count = collection.rows();
  samples.skipped_rows = collection.skipped_rows();
  RandomDraw random(sources.seed);
  absl::Status status = absl::OkStatus();
  if (sources.folder) {
    status = ReadFolder(*sources.folder, sources.limits, collection, samples);
  } else if (needs.rows || (needs.query_vectors && !sources.vectors)) {
    status = AskForRows(connection, samples, random);
  }
  if (status.ok() && sources.users) status = ReadUsersFile(*sources.users, sources.limits, samples);
  if (status.ok() && sources.vectors)
    status = ReadVectorsFile(*sources.vectors, sources.limits, samples);
  if (status.ok() && needs.fields) status = AskForFields(connection, samples);
  if (!status.ok()) return status;
  if (needs.query_vectors && samples.query_vectors.empty()) MakeQueryVectors(samples, random);
  return samples;
}

}  // namespace simile::cli::bench
