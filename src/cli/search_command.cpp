#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/input_file.h"
#include "cli/query_flags.h"
#include "simile/matrix_view.h"

namespace simile::cli {
namespace {

struct SearchFlags {
  QueryFlags query;
  ExampleFlags examples;
  std::optional<std::string> vector;
};

absl::Status CheckDim(const QueryVectors& vectors, const v1::Collection& collection) {
  if (vectors.dim() == collection.dim()) return absl::OkStatus();
  if (vectors.dim() == 1 && vectors.rows.size() == collection.dim()) {
    return absl::InvalidArgumentError(
        fmt::format("{} has the shape ({}, 1); one vector has ({},) or (1, {})", vectors.source,
                    collection.dim(), collection.dim(), collection.dim()));
  }
  return absl::InvalidArgumentError(fmt::format(
      "{} holds {} dimensions, {} has {}. A vector from another model cannot be compared.",
      vectors.source, base::Grouped(vectors.dim()), collection.name(),
      base::Grouped(collection.dim())));
}

// The server's error would not say which row of the file it is about.
absl::Status CheckDirections(const QueryVectors& vectors, const v1::Collection& collection) {
  if (collection.metric() != v1::Collection::METRIC_COSINE) return absl::OkStatus();
  const auto zero = std::ranges::find_if(
      vectors.rows, [](const std::vector<float>& row) { return IsZeroVector(row); });
  if (zero == vectors.rows.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: row {} is all zeros; a vector needs a direction to be compared",
                  vectors.source, zero - vectors.rows.begin()));
}

int RunSearch(const SearchFlags& flags) {
  const bool json = flags.query.client.json;
  if (flags.vector == "-" && flags.query.allowed_file == "-") {
    return Fail(absl::InvalidArgumentError("--vector and --allow cannot both read standard input"),
                json);
  }
  absl::StatusOr<v1::SearchOptions> options = OptionsOf(flags.query);
  if (!options.ok()) return Fail(options.status(), json);
  absl::StatusOr<QueryVectors> vectors = ReadQueryVectors(*flags.vector, Limits{});
  if (!vectors.ok()) return Fail(vectors.status(), json);
  const Connection connection = Connect(flags.query.client, kQueryTimeoutSeconds);
  const absl::StatusOr<v1::Collection> collection =
      ChooseCollection(connection, flags.query.collection);
  if (!collection.ok()) return Fail(collection.status(), json);
  if (absl::Status dim = CheckDim(*vectors, *collection); !dim.ok()) return Fail(dim, json);
  if (absl::Status directions = CheckDirections(*vectors, *collection); !directions.ok()) {
    return Fail(directions, json);
  }
  if (absl::Status set = SetCollectionOptions(flags.query, *collection, *options); !set.ok()) {
    return Fail(set, json);
  }

  v1::SearchRequest request;
  request.set_collection(collection->name());
  *request.mutable_options() = *options;
  for (const std::vector<float>& row : vectors->rows) {
    v1::Query& query = *request.add_queries();
    query.mutable_vector()->mutable_values()->Assign(row.begin(), row.end());
    if (!flags.examples.given()) continue;
    if (absl::Status status = TurnIntoExamples(flags.examples, flags.query.items_of, query);
        !status.ok())
      return Fail(status, json);
  }
  absl::StatusOr<v1::SearchResponse> response = connection.Search(request);
  if (!response.ok()) return Fail(response.status(), json);

  Answer answer = AnswerOf(*collection, *response);
  const bool several = vectors->rows.size() > 1;
  for (int i = 0; i < response->results_size(); ++i) {
    AnsweredQuery& result = answer.results.emplace_back();
    result.heading = fmt::format("in {}, nearest to {}{}", collection->name(), vectors->source,
                                 several ? fmt::format(", row {}", i) : "");
    result.vector_source = vectors->source;
    result.vector_row = static_cast<std::uint64_t>(i);
    result.items_of = flags.query.items_of;
    result.like = flags.examples.like;
    result.unlike = flags.examples.unlike;
    MoveResult(*response->mutable_results(i), result);
  }
  return ShowAnswer(std::move(answer), flags.query);
}

}  // namespace

void AddSearchCommand(CommandLine& line) {
  auto flags = std::make_shared<SearchFlags>();
  Command command = line.Add("search", "Find the items nearest to vectors");
  command
      .File("--vector", flags->vector, "FILE|NUMBERS|-",
            "One vector or several: .npy, or JSON lists of numbers; numbers themselves, 0.1,0.2; - "
            "reads JSON from standard input")
      .Required()
      .Check([flags] {
        return !flags->query.items_of || flags->examples.given()
                   ? absl::OkStatus()
                   : absl::InvalidArgumentError("--items-of needs --like or --unlike");
      });
  AddExampleFlags(command, flags->examples);
  AddQueryFlags(command, flags->query);
  command
      .Footer(
          "simile search --vector query.npy -k 5\n"
          "simile search --vector 0.1,-0.2,0.3")
      .Run([flags] { return RunSearch(*flags); });
}

}  // namespace simile::cli
