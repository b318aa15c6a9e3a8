#include "bench/engine_options.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/threads.h"
#include "simile/limits.h"

namespace simile::bench {
namespace {

constexpr std::size_t kQuickRounds = 3;
constexpr std::size_t kQuickVerify = 64;

std::optional<std::size_t> ParseCount(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::Status CheckSource(const EngineOptions& options) {
  const bool files = !options.vectors_path.empty() || !options.queries_path.empty();
  if (files && !options.synthetic.empty()) {
    return absl::InvalidArgumentError(
        "give either --vectors and --queries, or --synthetic, not both");
  }
  if (!files && options.synthetic.empty()) {
    return absl::InvalidArgumentError(
        "nothing to search: give --vectors F.npy --queries Q.npy, or --synthetic clustered");
  }
  if (files && (options.vectors_path.empty() || options.queries_path.empty())) {
    return absl::InvalidArgumentError(
        fmt::format("--{} is missing: vectors and queries come in a file each",
                    options.vectors_path.empty() ? "vectors" : "queries"));
  }
  if (files && options.saves()) {
    return absl::InvalidArgumentError(
        "--save-vectors and --save-queries write what --synthetic makes; these vectors are in a "
        "file already");
  }
  if (options.norm_spread != 1 && options.metric_value() != Metric::kDot) {
    return absl::InvalidArgumentError(
        "--norm-spread needs --metric dot: cosine brings every row to unit length");
  }
  if (options.norm_spread != 1 && files) {
    return absl::InvalidArgumentError("--norm-spread is for --synthetic rows");
  }
  return absl::OkStatus();
}

}  // namespace

std::size_t EngineOptions::batch_max() const { return *std::ranges::max_element(batches); }

std::uint32_t EngineOptions::k_max() const { return *std::ranges::max_element(ks); }

std::optional<std::size_t> EngineOptions::verify_max() const {
  return verify == "all" ? std::nullopt : ParseCount(verify);
}

void AddDataOptions(CLI::App& app, EngineOptions& options) {
  const Limits limits;
  app.option_defaults()->always_capture_default();
  app.add_option("--vectors", options.vectors_path, ".npy or .safetensors file of rows");
  app.add_option("--queries", options.queries_path, "the same of queries");
  app.add_option("--synthetic", options.synthetic, "make the rows instead")
      ->check(CLI::IsMember({"clustered", "isotropic"}));
  app.add_option("--rows", options.row_count, "synthetic rows")
      ->check(CLI::Range(1U, 100'000'000U));
  app.add_option("--dim", options.dim, "their dimension")->check(CLI::Range(1U, limits.dim_max));
  app.add_option("--query-count", options.query_count, "synthetic queries")
      ->check(CLI::Range(1U, 1'000'000U));
  app.add_option("--seed", options.seed, "of random rows, queries and filters");
}

void AddCaseOptions(CLI::App& app, EngineOptions& options) {
  const Limits limits;
  app.add_option("--batch", options.batches, "batch sizes")
      ->delimiter(',')
      ->check(CLI::Range(1U, 1'000'000U));
  app.add_option("--k", options.ks, "hits a query")
      ->delimiter(',')
      ->check(CLI::Range(1U, limits.k_max));
  app.add_option("--threads", options.threads, "0: the processors this process may use")
      ->check(CLI::Range(0U, 1'024U));
  app.add_option("--isa", options.isas, "instruction sets to force, each in turn")->delimiter(',');
  app.add_option("--rounds", options.rounds, "times each case is measured")
      ->check(CLI::Range(1U, 100'000U));
  app.add_option("--json", options.json_path, "file to write the figures to");
}

void AddOptions(CLI::App& app, EngineOptions& options) {
  AddDataOptions(app, options);
  app.add_option("--norm-spread", options.norm_spread,
                 "with --metric dot: row lengths log-uniform over this factor")
      ->check(CLI::Range(1.0, 1e6));
  app.add_option("--save-vectors", options.save_vectors_path,
                 "write the synthetic rows to this .npy and stop");
  app.add_option("--save-queries", options.save_queries_path,
                 "write the synthetic queries to this .npy and stop");
  app.add_option("--metric", options.metric, "cosine or dot")
      ->check(CLI::IsMember({"cosine", "dot"}));
  AddCaseOptions(app, options);
  app.add_option("--filter-pass", options.filter_passes,
                 "shares of rows that pass a random filter; 1 is no filter")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0));
  app.add_option(
         "--backend", options.backends,
         "scan; scan-single, which scans for one query at a time; int8; auto, which is int8 "
         "calibrated to this machine; gpu")
      ->delimiter(',')
      ->check(CLI::IsMember({"scan", "scan-single", "int8", "auto", "gpu"}));
  app.add_option("--blas", options.blas,
                 "of the GPU: cuBLAS, as for dlopen; default the toolkit's own name");
  app.add_option("--batch-timeout", options.batch_timeout_s,
                 "of the GPU: seconds until it counts as hanging");
  app.add_flag("!--no-int4", options.int4,
               "leave out half a byte a dimension of large collections");
  app.add_option("--verify", options.verify,
                 "how many queries' answers to compare with the plain scan, or all");
  app.add_flag("--quick", options.quick,
               fmt::format("{} rounds, {} queries verified", kQuickRounds, kQuickVerify));
  app.add_flag("--ceilings", options.ceilings,
               "in the same rounds, the time to read a byte a dimension once");
  app.add_flag("--paced", options.paced,
               "read commands from standard input, one a line (see paced_runs.h)");
  app.add_option("--answers", options.answers_path,
                 "int64 .npy file [queries, k] for the rows that the last case answers with");
}

absl::Status Check(EngineOptions& options) {
  if (absl::Status status = CheckSource(options); !status.ok()) return status;
  if (options.quick) {
    options.rounds = kQuickRounds;
    if (options.verify == "all") options.verify = std::to_string(kQuickVerify);
  }
  const auto verify_max = options.verify_max();
  if (options.verify != "all" && !verify_max) {
    return absl::InvalidArgumentError(
        fmt::format("--verify {}: give a number of queries, or all", options.verify));
  }
  if (verify_max == std::size_t{0}) {
    return absl::InvalidArgumentError(
        "times of unchecked answers are not printed: give --verify 1 or more, or all");
  }
  if (std::ranges::find(options.filter_passes, 0.0) != options.filter_passes.end()) {
    return absl::InvalidArgumentError("--filter-pass 0 lets nothing pass; give a share above 0");
  }
  if (options.paced &&
      std::ranges::find(options.backends, "scan-single") != options.backends.end()) {
    return absl::InvalidArgumentError(
        "--paced keeps the answers of a whole batch; give --backend scan, which has the same ones");
  }
  if (options.threads == 0) options.threads = base::UsableCpuCount();
  return absl::OkStatus();
}

}  // namespace simile::bench
