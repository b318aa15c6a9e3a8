// The exact engines over one set of vectors: every backend, batch size and k of the command line,
// alternating round by round. Every answer that a time is printed for has been compared with the
// plain scan's: the same rows, the same bits of the scores.
//
//   engine_bench --vectors F.npy --queries Q.npy --batch 1,32 --k 10 --threads 2 --backend auto
//   engine_bench --synthetic clustered --rows 1000000 --dim 384 --ceilings
//   engine_bench --synthetic clustered --backend scan-single,auto,gpu      GPU against CPU
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "backend/cpu/thread_pool.h"
#include "bench/bench_data.h"
#include "bench/code_read.h"
#include "bench/engine_options.h"
#include "bench/engine_report.h"
#include "bench/engine_session.h"
#include "bench/paced_runs.h"
#include "bench/plugin_of_bench.h"
#include "bench/timing.h"

namespace simile::bench {
namespace {

absl::Status Save(const EngineOptions& options, const BenchData& data) {
  if (!options.save_vectors_path.empty()) {
    absl::Status status = WriteNpy(options.save_vectors_path, data.rows.view());
    if (!status.ok()) return status;
  }
  if (options.save_queries_path.empty()) return absl::OkStatus();
  return WriteNpy(options.save_queries_path, data.queries.view());
}

std::vector<CaseLog> CasesOf(const EngineOptions& options, const EngineSession& session) {
  std::vector<CaseLog> cases;
  for (std::size_t engine = 0; engine < session.engines().size(); ++engine) {
    for (const std::uint32_t k : options.ks) {
      for (const std::size_t batch : options.batches) {
        for (std::size_t filter = 0; filter < session.filters().size(); ++filter) {
          cases.emplace_back(session, Run{engine, filter, batch, k, 0});
        }
      }
    }
  }
  return cases;
}

// One round measures every case once, so that a disturbance affects all alike. The first round,
// which fills caches and buffers, is not counted. Each round uses other queries, where there are
// more.
// After each round the figures so far are written, so that a run that is ended keeps them.
absl::Status Measure(const EngineOptions& options, EngineSession& session,
                     std::vector<CaseLog>& cases, std::optional<ReadFigures>& read) {
  const std::size_t query_count = session.data().queries.row_count();
  std::optional<CodeRead> code_read;
  if (options.ceilings) {
    code_read.emplace(session.data().rows.row_count(), session.data().rows.dim(),
                      session.threads());
  }
  std::vector<double> reads;
  for (std::size_t round = 0; round <= options.rounds; ++round) {
    const bool counted = round > 0;
    if (code_read && counted) reads.push_back(code_read->Seconds());
    for (CaseLog& log : cases) {
      Run run = log.run();
      run.first_query = (counted ? round - 1 : 0) * run.batch % (query_count - run.batch + 1);
      const absl::StatusOr<double> seconds = session.Search(run);
      if (!seconds.ok()) return seconds.status();
      if (counted) log.Add(session, run, *seconds);
    }
    if (!counted || options.json_path.empty()) continue;
    const EngineReport so_far{options, session, cases, std::nullopt};
    if (absl::Status status = WriteJson(so_far, options.json_path); !status.ok()) return status;
  }
  if (code_read) {
    read = ReadFigures{code_read->bytes(), code_read->pattern(), Median(reads),
                       std::ranges::min(reads)};
  }
  return absl::OkStatus();
}

// Writes the rows that the last case returns for every query, in batches of its size.
absl::Status SaveAnswers(const std::string& path, EngineSession& session, const CaseLog& last) {
  const std::size_t query_count = session.data().queries.row_count();
  std::vector<std::int64_t> rows;
  Run run = last.run();
  if (session.engines()[run.engine].one_at_a_time) run.batch = 1;
  for (; run.first_query < query_count; run.first_query += run.batch) {
    run.batch = std::min(run.batch, query_count - run.first_query);
    const absl::StatusOr<double> seconds = session.Search(run);
    if (!seconds.ok()) return seconds.status();
    std::ranges::copy(RowsOf(session.result(), run.k), std::back_inserter(rows));
  }
  return WriteNpy(path, rows, query_count);
}

absl::Status Bench(EngineOptions& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  backend::cpu::ThreadPool pool(options.threads);
  absl::StatusOr<BenchData> data = GetData(options, pool);
  if (!data.ok()) return data.status();
  if (options.saves()) return Save(options, *data);
  auto session = EngineSession::Create(options, *std::move(data));
  if (!session.ok()) return session.status();

  std::vector<CaseLog> cases;
  std::optional<ReadFigures> read;
  absl::Status status;
  if (options.paced) {
    status = RunPaced(**session, std::cin, std::cout, cases);
  } else {
    cases = CasesOf(options, **session);
    status = Measure(options, **session, cases, read);
  }
  if (!status.ok()) return status;
  if (!options.answers_path.empty() && !cases.empty()) {
    status = SaveAnswers(options.answers_path, **session, cases.back());
    if (!status.ok()) return status;
  }
  const EngineReport report{options, **session, cases, read};
  if (!options.paced) PrintTable(report);
  if (options.json_path.empty()) return absl::OkStatus();
  return WriteJson(report, options.json_path);
}

}  // namespace
}  // namespace simile::bench

int main(int argc, char** argv) {
  simile::bench::EngineOptions options;
  CLI::App app{"The exact engines, measured and verified in one run"};
  simile::bench::AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = simile::bench::Bench(options);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", std::string(status.message()));
  constexpr int kNoCard = 2;
  return simile::bench::IsNoCard(status) ? kNoCard : 1;
}
