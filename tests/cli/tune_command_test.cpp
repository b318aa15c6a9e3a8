#include "cli/tune_text.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/errors.h"
#include "cli/interrupt_message.h"
#include "files/scratch_folder.h"

namespace simile::cli {
namespace {

using app::ThreadsConclusion;
using backend::cpu::TuningValues;
using nlohmann::json;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

app::TuneReport Report() {
  app::TuneReport report;
  report.key = {"Ann's processor", 8, "amx+avx512vnni"};
  report.collections = {{"films", 5'000, 5'000, 384}, {"songs", 1'000'000, 9'000'000, 768}};
  report.tuning = {8,
                   4,
                   ThreadsConclusion::kChanged,
                   {{{0, 1, 20}, 0.0005, 0.0005},
                    {{0, 1, 0}, 0.001, 0.0005},
                    {{0, 64, 0}, 0.01, 0.01},
                    {{0, 1'024, 0}, 0.2, 0.16}},
                   0.05};
  report.in_force.threads = 4;
  report.in_force.threads_origin = "tuned 2026-11-23 for films, songs on Ann's processor";
  report.in_force.origins.assign(TuningValues().size(), "measured 2026-11-21 on Ann's processor");
  report.answers_compared = 2'000;
  report.written = true;
  return report;
}

// The same with the number of threads that was in force.
app::TuneReport Unchanged(ThreadsConclusion conclusion) {
  app::TuneReport report = Report();
  report.tuning.threads_after = 8;
  report.tuning.conclusion = conclusion;
  for (app::TimedWorkload& each : report.tuning.workloads) each.after_s = each.before_s;
  return report;
}

const TuneSetting kToCache{1'024, 0, "/home/ann/.cache/simile/cpu-tuning.json", "default (HOME)"};

TEST(TuneCommandTest, ShowsTheMachineTheCollectionsAndTheTuning) {
  const std::string text = TuneText(Report(), kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("Ann's processor, 8 threads, amx+avx512vnni\n"));
  EXPECT_THAT(text, HasSubstr("films: 5,000 vectors x 384\n"));
  EXPECT_THAT(text, HasSubstr("songs: 9,000,000 vectors x 768, of which the first 1,000,000 were "
                              "measured\n"));
  EXPECT_THAT(text, ContainsRegex("threads +4 +tuned 2026-11-23 for films, songs on "));
  EXPECT_THAT(text, ContainsRegex("gather_share +16 rows for one +measured 2026-11-21 on "));
}

TEST(TuneCommandTest, ShowsWhatEveryKindOfSearchGains) {
  const std::string text = TuneText(Report(), kToCache, Terminal{});
  EXPECT_THAT(text, ContainsRegex("search +queries/s +ms +queries/s before +gain\n"));
  EXPECT_THAT(text, ContainsRegex("films, 1 query +2,000 +0\\.500 +1,000 +[+]100.0 %\n"));
  EXPECT_THAT(text, ContainsRegex("films, 64 queries +6,400 +10\\.000 +6,400 +[+]0.0 %\n"));
}

TEST(TuneCommandTest, ShowsTheRatesWhereTheThreadsStay) {
  app::TuneReport report = Unchanged(ThreadsConclusion::kNoneBetter);
  report.tuning.workloads[2] = {{0, 64, 0}, 0, 0};
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text, ContainsRegex("search +queries/s +ms\n"));
  EXPECT_THAT(text, ContainsRegex("films, 1 query +1,000 +1\\.000\n"));
  EXPECT_THAT(text, ContainsRegex("films, 64 queries +- +-\n"));
}

TEST(TuneCommandTest, ShowsTheRatesOfAGpuAndThePassesItChose) {
  app::TuneReport report = Report();
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}), Not(HasSubstr("GPU")));
  report.gpu.why_not = "no NVIDIA driver on this machine";
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}),
              HasSubstr("no GPU is measured: no NVIDIA driver on this machine\n"));

  report.gpu = {"NVIDIA H200", "", {}};
  app::GpuCollectionRates films;
  films.name = "films";
  films.rates = {{1, 40e-6, "int8-scan-kept-sm90"}, {256, 160e-6, "fp16-gemm-sm90"}};
  films.measured = backend::MeasuredChoices{
      {"NVIDIA H200", 5'120, 384, true},
      {{{1, 32, "int8_scan_kept", backend::FinishForm::kSteps, true, 0, 1, 25.6e-6, 28.4e-6},
        {32, 32, "", backend::FinishForm::kSteps, false, 0, 1, 41e-6, 41e-6},
        {1'024, 32, "gemm_topk_fp16", backend::FinishForm::kOneLaunch, false, 0, 4, 205e-6,
         210e-6}},
       64,
       256}};
  app::GpuCollectionRates songs;
  songs.name = "songs";
  songs.why_not = "the collection takes 9.0 GiB";
  report.gpu.collections = {films, songs};
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("\nNVIDIA H200\n"));
  EXPECT_THAT(text, ContainsRegex(" 1 +25,000 +0.040 +int8-scan-kept-sm90\n"));
  EXPECT_THAT(text, ContainsRegex(" 256 +1,600,000 +0.160 +fp16-gemm-sm90\n"));
  EXPECT_THAT(text, HasSubstr("films: passes that are faster than the rules' pass, in 2 of 3 "
                              "classes\n"));
  EXPECT_THAT(text, ContainsRegex("1 +32 +25.6 +28.4 +int8_scan_kept, finish in steps, mapped\n"));
  EXPECT_THAT(
      text, ContainsRegex("1,024 +32 +205.0 +210.0 +gemm_topk_fp16, finish in one launch, copied, "
                          "tiles 4 times as long\n"));
  EXPECT_THAT(text, HasSubstr("a pass over films takes 256 queries from the next load on\n"));
  EXPECT_THAT(text, HasSubstr("songs is not on the GPU: the collection takes 9.0 GiB\n"));
  const json gpu = json::parse(TuneJson(report, kToCache))["gpu"];
  report.gpu.collections[0].measured->choices.passes = {
      {32, 32, "", backend::FinishForm::kSteps, false, 0, 1, 41e-6, 41e-6}};
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}),
              HasSubstr("films: the rules' pass is the fastest in each of 1 classes of batches\n"));
  EXPECT_EQ(gpu["device"], "NVIDIA H200");
  EXPECT_EQ(gpu["collections"][0]["rates"][1]["queries"], 256);
  EXPECT_EQ(gpu["collections"][0]["sufficient_batch"], 256);
  EXPECT_EQ(gpu["collections"][0]["passes"].size(), 3U);
}

TEST(TuneCommandTest, SaysWhatFollows) {
  EXPECT_THAT(TuneText(Report(), kToCache, Terminal{}),
              EndsWith("4 threads search instead of 8\n"
                       "2,000 answers compared before and after: the same bits\n"
                       "limits.batch_queries_max is 1,024: batches of 64 reach 95 % of the best "
                       "rate\n"
                       "wrote /home/ann/.cache/simile/cpu-tuning.json\n"
                       "  each `simile serve` of this user here\n"
                       "  starts with it; restart those that run\n"));
}

TEST(TuneCommandTest, SaysWhyTheThreadsStay) {
  for (const auto& [conclusion, reason] : std::vector<std::pair<ThreadsConclusion, std::string>>{
           {ThreadsConclusion::kNoneBetter, "no other is clearly better"},
           {ThreadsConclusion::kNoChoice, "backend.threads or the machine leaves no choice"},
           {ThreadsConclusion::kNoTime, "other numbers had no time; give a longer --duration"}}) {
    const std::string text = TuneText(Unchanged(conclusion), kToCache, Terminal{});
    EXPECT_THAT(text, HasSubstr("\nthe number of threads stays: " + reason + "\n"));
    EXPECT_THAT(text, Not(HasSubstr("the same bits")));
    EXPECT_THAT(text, EndsWith("\n  starts with it\n"));
  }
}

TEST(TuneCommandTest, SaysWhichServersStartWithTheFile) {
  const auto text = [](const TuneSetting& setting) {
    return TuneText(Report(), setting, Terminal{});
  };
  EXPECT_THAT(text({1'024, 2, "/t.json", "default (HOME)"}),
              HasSubstr("  each `simile serve --threads 2` of this user here\n"));
  EXPECT_THAT(text({1'024, 0, "/t.json", "file /etc/simile.json"}),
              HasSubstr("  each `simile serve` with this backend.tuning_cache (file "
                        "/etc/simile.json)\n"));
  EXPECT_THAT(text({1'024, 2, "/srv/my tuning.json", ""}),
              EndsWith("wrote /srv/my tuning.json\n"
                       "  serve starts with it where backend.tuning_cache names it:\n"
                       "  SIMILE_BACKEND_TUNING_CACHE=\"/srv/my tuning.json\" simile serve "
                       "--threads 2 ...\n"));
}

TEST(TuneCommandTest, SaysWhenNothingWasWritten) {
  EXPECT_THAT(TuneText(Report(), {1'024, 0, "", ""}, Terminal{}),
              EndsWith("nothing was written (--dry-run)\n"));
  app::TuneReport report = Report();
  report.written = false;
  EXPECT_THAT(TuneText(report, kToCache, Terminal{}),
              EndsWith("/home/ann/.cache/simile/cpu-tuning.json holds all of it already\n"));
  EXPECT_EQ(json::parse(TuneJson(report, kToCache))["file"], nullptr);
}

// Rates that were measured one after the other then say little about the batch.
TEST(TuneCommandTest, SaysWhenTheMachineWasBusy) {
  app::TuneReport report = Unchanged(ThreadsConclusion::kBusy);
  report.tuning.other_load = 0.41;
  const std::string text = TuneText(report, kToCache, Terminal{});
  EXPECT_THAT(text, HasSubstr("the number of threads stays: the machine is busy\n"
                              "  other programs took 41 % of the processors;"));
  EXPECT_THAT(text, Not(HasSubstr("limits.batch_queries_max")));
  EXPECT_EQ(json::parse(TuneJson(report, kToCache))["batch_queries_max"]["sufficient"], nullptr);
}

TEST(TuneCommandTest, FitsEightyColumnsOnATerminal) {
  const std::string text = TuneText(Report(), kToCache, {true, false, 80});
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    EXPECT_LE(end - start, 80U) << text.substr(start, end - start);
    start = end + 1;
  }
}

TEST(TuneCommandTest, PrintsTheSameAsJson) {
  const json report = json::parse(TuneJson(Report(), kToCache));
  EXPECT_EQ(report["machine"]["kernels"], "amx+avx512vnni");
  EXPECT_EQ(report["collections"][1]["measured_rows"], 1'000'000);
  EXPECT_EQ(report["threads"], json({{"before", 8}, {"after", 4}, {"conclusion", "changed"}}));
  EXPECT_EQ(report["parameters"][2]["name"], "gather_share");
  EXPECT_EQ(report["parameters"][2]["value"], 16);
  EXPECT_EQ(report["parameters"][2]["origin"], "measured 2026-11-21 on Ann's processor");
  EXPECT_EQ(report["searches"][1]["collection"], "films");
  EXPECT_DOUBLE_EQ(report["searches"][1]["gain"].get<double>(), 1);
  EXPECT_EQ(report["batch_queries_max"], json({{"now", 1'024}, {"sufficient", 64}}));
  EXPECT_EQ(report["file"], "/home/ann/.cache/simile/cpu-tuning.json");

  app::TuneReport unchanged = Unchanged(ThreadsConclusion::kNoneBetter);
  unchanged.tuning.workloads[2] = {{0, 64, 0}, 0, 0};
  const json searches = json::parse(TuneJson(unchanged, kToCache))["searches"];
  EXPECT_EQ(searches[1]["gain"], nullptr);
  EXPECT_EQ(searches[2]["before_s"], nullptr);
}

TEST(TuneCommandTest, CtrlCLeavesTheFileAsItWas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ScratchFolder scratch;
  app::Config config;
  config.collections = {{"films", SIMILE_SOURCE_DIR "/examples/films"}};
  config.tuning_cache = scratch.path() / "cpu-tuning.json";
  const std::string before = R"({"simile_cpu_tuning": 1, "machines": []})";
  scratch.Write("cpu-tuning.json", before);
  EXPECT_EXIT(
      {
        InterruptMessage interrupt;
        interrupt.Set("stopped");
        app::TuneOptions options;
        options.output = config.tuning_cache;
        const auto report =
            app::TuneCollections(config, options, RealClock(), [](double, const std::string& what) {
              if (!what.starts_with("films, 1 query")) return;
              kill(getpid(), SIGINT);
              while (true) pause();
            });
      },
      testing::ExitedWithCode(kInterrupted), "stopped\n");
  std::ifstream file(config.tuning_cache);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), before);
}

}  // namespace
}  // namespace simile::cli
