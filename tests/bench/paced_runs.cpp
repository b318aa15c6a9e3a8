#include "bench/paced_runs.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace simile::bench {
namespace {

using Json = nlohmann::ordered_json;

class PacedRuns {
 public:
  PacedRuns(EngineSession& session, std::vector<CaseLog>& cases)
      : session_(session), cases_(cases) {}

  Json Greeting() const {
    Json json{{"ready", true}};
    for (const Engine& engine : session_.engines()) {
      json["engines"].push_back({{"name", engine.name},
                                 {"build_s", engine.build_s},
                                 {"index_bytes", engine.index_bytes}});
    }
    return json;
  }

  absl::StatusOr<Json> Do(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "run") return Search(words);
    if (command == "answers") return SaveAnswers(words);
    return absl::InvalidArgumentError(fmt::format("there is no command '{}'", command));
  }

 private:
  absl::StatusOr<Json> Search(std::istringstream& words) {
    std::string name;
    Run run;
    if (!(words >> name >> run.batch >> run.k >> run.first_query)) {
      return absl::InvalidArgumentError("say: run ENGINE BATCH K FIRST");
    }
    const auto engines = session_.engines();
    const auto found = std::ranges::find(engines, name, &Engine::name);
    if (found == engines.end()) {
      return absl::InvalidArgumentError(fmt::format("there is no engine '{}'", name));
    }
    run.engine = static_cast<std::size_t>(found - engines.begin());
    const std::size_t query_count = session_.data().queries.row_count();
    if (run.batch == 0 || run.batch > query_count || run.first_query > query_count - run.batch) {
      return absl::OutOfRangeError(fmt::format("there are {} queries", query_count));
    }
    const absl::StatusOr<double> seconds = session_.Search(run);
    if (!seconds.ok()) return seconds.status();
    CaseLog& log = LogOf(run);
    log.Add(session_, run, *seconds);
    k_ = run.k;
    return Json{{"ms", *seconds * 1e3}, {"engine", log.answered_by()}};
  }

  absl::StatusOr<Json> SaveAnswers(std::istringstream& words) {
    std::string path;
    std::getline(words >> std::ws, path);
    const std::vector<std::int64_t> rows = RowsOf(session_.result(), k_);
    absl::Status status = WriteNpy(path, rows, session_.result().batch());
    if (!status.ok()) return status;
    return Json::object();
  }

  CaseLog& LogOf(const Run& run) {
    const auto found = std::ranges::find_if(cases_, [&](const CaseLog& log) {
      return log.run().engine == run.engine && log.run().batch == run.batch && log.run().k == run.k;
    });
    return found != cases_.end() ? *found : cases_.emplace_back(session_, run);
  }

  EngineSession& session_;
  std::vector<CaseLog>& cases_;
  std::uint32_t k_ = 0;
};

}  // namespace

absl::Status RunPaced(EngineSession& session, std::istream& in, std::ostream& out,
                      std::vector<CaseLog>& cases) {
  PacedRuns runs(session, cases);
  out << runs.Greeting().dump() << std::endl;
  for (std::string line; std::getline(in, line);) {
    const absl::StatusOr<Json> answer = runs.Do(line);
    if (answer.ok()) {
      out << answer->dump() << std::endl;
      continue;
    }
    out << Json{{"error", std::string(answer.status().message())}}.dump() << std::endl;
    if (absl::IsInternal(answer.status())) return answer.status();
  }
  return absl::OkStatus();
}

std::vector<std::int64_t> RowsOf(const SearchResult& result, std::uint32_t k) {
  std::vector<std::int64_t> rows(result.batch() * k, -1);
  for (std::size_t query = 0; query < result.batch(); ++query) {
    std::ranges::transform(result.Hits(query),
                           rows.begin() + static_cast<std::ptrdiff_t>(query * k), &Hit::row);
  }
  return rows;
}

}  // namespace simile::bench
