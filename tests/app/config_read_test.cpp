#include "app/config/config_read.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/config/foreign_variables.h"
#include "app/config/settings.h"
#include "files/scratch_folder.h"

namespace simile::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

class ConfigReadTest : public testing::Test {
 protected:
  std::filesystem::path WriteFile(const std::string& text) {
    scratch_.Write("simile.json", text);
    return scratch_.path() / "simile.json";
  }

  // The error for a file with this text.
  std::string FileError(const std::string& text) {
    return ReadError({.file = WriteFile(text), .environment = {}, .flags = {}});
  }

  static std::string ReadError(const ConfigSources& sources) {
    const absl::StatusOr<ConfigReading> reading = ReadConfig(sources);
    return reading.ok() ? "" : std::string(reading.status().message());
  }

  static ConfigReading Read(const ConfigSources& sources) {
    absl::StatusOr<ConfigReading> reading = ReadConfig(sources);
    EXPECT_TRUE(reading.ok()) << reading.status();
    return reading.ok() ? *std::move(reading) : ConfigReading();
  }

  static std::string FindOrigin(const ConfigReading& reading, const std::string& key) {
    for (std::size_t i = 0; i < Settings().size(); ++i) {
      if (Settings()[i].key == key) return reading.origins[i];
    }
    return "no such setting";
  }

  const ScratchFolder scratch_;
};

TEST_F(ConfigReadTest, UsesDefaultsWithoutSources) {
  const ConfigReading reading = Read({});
  EXPECT_EQ(reading.config.port, 50'051);
  EXPECT_EQ(FindOrigin(reading, "server.port"), "default");
  EXPECT_EQ(reading.origins.size(), Settings().size());
}

TEST_F(ConfigReadTest, LaterSourcesWin) {
  const std::filesystem::path file = WriteFile(
      R"({"server": {"port": 1, "listen": "::1", "reflection": true}, "log.level": "error"})");
  const ConfigReading reading =
      Read({.file = file,
            .environment = {{"SIMILE_SERVER_PORT", "2"}, {"SIMILE_SERVER_LISTEN", "0.0.0.0"}},
            .flags = {{"server.port", {"3"}}}});
  EXPECT_EQ(reading.config.port, 3);
  EXPECT_EQ(reading.config.listen, "0.0.0.0");
  EXPECT_TRUE(reading.config.reflection);
  EXPECT_EQ(reading.config.log_level, LogLevel::kError);
  EXPECT_EQ(FindOrigin(reading, "server.port"), "flag --port");
  EXPECT_EQ(FindOrigin(reading, "server.listen"), "environment SIMILE_SERVER_LISTEN");
  EXPECT_EQ(FindOrigin(reading, "server.reflection"), "file " + file.string());
}

TEST_F(ConfigReadTest, ReadsTheFileThatTheEnvironmentNames) {
  const std::filesystem::path file = WriteFile(R"({"server": {"port": 7}})");
  EXPECT_EQ(Read({.file = {}, .environment = {{"SIMILE_CONFIG", file.string()}}, .flags = {}})
                .config.port,
            7);
}

TEST_F(ConfigReadTest, FindsTheFormatOfTheLogBesideMistakes) {
  const FlagValue wrong_port = {"server.port", {"99999"}};
  EXPECT_EQ(ReadLogFormat({{}, {}, {wrong_port}}), LogFormat::kText);
  EXPECT_EQ(ReadLogFormat({{}, {}, {wrong_port, {"log.format", {"json"}}}}), LogFormat::kJson);
  EXPECT_EQ(ReadLogFormat(
                {{}, {{"SIMILE_SERVER_PROT", "1"}, {"SIMILE_LOG_FORMAT", "json"}}, {wrong_port}}),
            LogFormat::kJson);
  const std::string file = WriteFile(R"({"log": {"format": "json"}})").string();
  EXPECT_EQ(ReadLogFormat({file, {}, {wrong_port}}), LogFormat::kJson);
  EXPECT_EQ(ReadLogFormat({{}, {{"SIMILE_CONFIG", file}}, {wrong_port}}), LogFormat::kJson);
  EXPECT_EQ(ReadLogFormat({file, {}, {{"log.format", {"text"}}}}), LogFormat::kText);
}

TEST_F(ConfigReadTest, FindsTheFormatOfTheLogBesideAFileThatIsWrong) {
  const std::string file = WriteFile(R"({"log": {"format": "json"}, "prot": 1})").string();
  EXPECT_EQ(ReadLogFormat({file, {}, {}}), LogFormat::kText);
  EXPECT_EQ(ReadLogFormat({file, {{"SIMILE_CONFIG", file}}, {{"log.format", {"json"}}}}),
            LogFormat::kJson);
  EXPECT_EQ(ReadLogFormat({file, {{"SIMILE_LOG_FORMAT", "json"}}, {}}), LogFormat::kJson);
  EXPECT_EQ(ReadLogFormat({{}, {}, {{"log.format", {"xml"}}}}), LogFormat::kText);
}

TEST_F(ConfigReadTest, ResolvesRelativePathsFromTheFile) {
  const std::filesystem::path file =
      WriteFile(R"({"collections": {"serve": {"a": "films", "b": "/data/b"}, "data_root": "."}})");
  const Config config = Read({.file = file, .environment = {}, .flags = {}}).config;
  ASSERT_EQ(config.collections.size(), 2U);
  EXPECT_EQ(config.collections[0].folder, file.parent_path() / "films");
  EXPECT_EQ(config.collections[1].folder, "/data/b");
  EXPECT_EQ(config.data_root.lexically_relative(file.parent_path()), ".");
}

TEST_F(ConfigReadTest, ReadsCollectionsFromEnvironmentAndFlags) {
  ConfigSources sources;
  sources.environment = {{"SIMILE_COLLECTIONS_SERVE", "films=examples/films,books=b"}};
  EXPECT_EQ(Read(sources).config.collections,
            (std::vector<CollectionConfig>{{"films", "examples/films"}, {"books", "b"}}));
  sources.flags = {{"collections.serve", {"songs=s"}}};  // replaces the list, does not add to it
  EXPECT_EQ(Read(sources).config.collections, (std::vector<CollectionConfig>{{"songs", "s"}}));
  sources.environment = {{"SIMILE_COLLECTIONS_SERVE", ""}};
  sources.flags = {};
  EXPECT_TRUE(Read(sources).config.collections.empty());
}

TEST_F(ConfigReadTest, PutsTheTuningCacheIntoTheUsersCacheFolder) {
  const std::string key = "backend.tuning_cache";
  ConfigSources sources;
  EXPECT_TRUE(Read(sources).config.tuning_cache.empty());
  EXPECT_EQ(FindOrigin(Read(sources), key), "default");
  sources.environment = {{"HOME", "/home/ann"}};
  EXPECT_EQ(Read(sources).config.tuning_cache, "/home/ann/.cache/simile/cpu-tuning.json");
  EXPECT_EQ(FindOrigin(Read(sources), key), "default (HOME)");
  sources.environment = {{"HOME", "/home/ann"}, {"XDG_CACHE_HOME", "/var/cache/ann"}};
  EXPECT_EQ(Read(sources).config.tuning_cache, "/var/cache/ann/simile/cpu-tuning.json");
  EXPECT_EQ(FindOrigin(Read(sources), key), "default (XDG_CACHE_HOME)");
  sources.environment = {{"HOME", ""}, {"XDG_CACHE_HOME", "relative"}};
  EXPECT_TRUE(Read(sources).config.tuning_cache.empty());
  sources.environment = {{"HOME", "/home/ann"}, {"SIMILE_BACKEND_TUNING_CACHE", ""}};
  EXPECT_TRUE(Read(sources).config.tuning_cache.empty());
}

TEST_F(ConfigReadTest, PutsTheFaultJournalIntoTheUsersStateFolder) {
  const std::string key = "gpu.fault_journal";
  ConfigSources sources;
  EXPECT_TRUE(Read(sources).config.gpu_fault_journal.empty());
  sources.environment = {{"HOME", "/home/ann"}};
  EXPECT_EQ(Read(sources).config.gpu_fault_journal,
            "/home/ann/.local/state/simile/gpu-faults.json");
  EXPECT_EQ(FindOrigin(Read(sources), key), "default (HOME)");
  sources.environment = {{"HOME", "/home/ann"}, {"XDG_STATE_HOME", "/var/lib/ann"}};
  EXPECT_EQ(Read(sources).config.gpu_fault_journal, "/var/lib/ann/simile/gpu-faults.json");
  EXPECT_EQ(FindOrigin(Read(sources), key), "default (XDG_STATE_HOME)");
  sources.environment = {{"HOME", "/home/ann"}, {"SIMILE_GPU_FAULT_JOURNAL", ""}};
  EXPECT_TRUE(Read(sources).config.gpu_fault_journal.empty());
}

TEST_F(ConfigReadTest, ReadsTheSettingsOfTheGpu) {
  const ConfigReading reading =
      Read({.file = WriteFile(R"({"gpu": {"memory_fraction": 0.5, "reserve_mib": 512,
                                     "when_full": "refuse", "batch_timeout": 700}})"),
            .environment = {{"SIMILE_GPU_DEVICE", "3"}},
            .flags = {{"gpu.on_fault", {"restart"}}}});
  EXPECT_EQ(reading.config.backend.gpu.memory_fraction, 0.5);
  EXPECT_EQ(reading.config.backend.gpu.reserve_bytes, 512U << 20);
  EXPECT_EQ(reading.config.backend.gpu.batch_timeout, std::chrono::milliseconds(700));
  EXPECT_EQ(reading.config.backend.gpu.device, 3);
  EXPECT_EQ(reading.config.backend.gpu_when_full, backend::WhenFull::kRefuse);
  EXPECT_EQ(reading.config.on_gpu_fault, OnGpuFault::kRestart);
  EXPECT_THAT(FileError(R"({"gpu": {"memory_fraction": 1.5}})"),
              HasSubstr("gpu.memory_fraction: \"1.5\" is not a number from 0.05 to 1 (from file "));
  EXPECT_THAT(FileError(R"({"gpu": {"memory_fraction": "0.5"}})"),
              HasSubstr("gpu.memory_fraction: \"0.5\" is not a number from 0.05 to 1"));
}

TEST_F(ConfigReadTest, MapsFamiliarNamesOfTheGpu) {
  const ConfigReading reading =
      Read({.file = WriteFile(R"({"GPU_MEMORY_FRACTION": 0.25})"),
            .environment = {{"GPU_DEVICE_ID", "1"}, {"RESERVE_MEMORY", "2048"}},
            .flags = {}});
  EXPECT_EQ(reading.config.backend.gpu.memory_fraction, 0.25);
  EXPECT_EQ(reading.config.backend.gpu.device, 1);
  EXPECT_EQ(reading.config.backend.gpu.reserve_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(FindOrigin(reading, "gpu.reserve_mib"), "environment RESERVE_MEMORY");
}

TEST_F(ConfigReadTest, MapsFamiliarNames) {
  const ConfigReading reading =
      Read({.file = {},
            .environment = {{"USE_GPU", "false"}, {"INFERENCE_BATCH_SIZE", "2048"}},
            .flags = {}});
  EXPECT_EQ(reading.config.backend.preference, backend::Preference::kCpu);
  EXPECT_EQ(reading.config.limits.batch_queries_max, 2'048U);
  EXPECT_EQ(FindOrigin(reading, "limits.batch_queries_max"), "environment INFERENCE_BATCH_SIZE");
  EXPECT_EQ(FindOrigin(reading, "backend.preference"), "environment USE_GPU");
  EXPECT_EQ(Read({.file = WriteFile(R"({"USE_GPU": true})"), .environment = {}, .flags = {}})
                .config.backend.preference,
            backend::Preference::kAuto);
}

TEST_F(ConfigReadTest, TheBatchOfAModelLowersNoBatch) {
  const ConfigReading reading =
      Read({.file = {}, .environment = {{"INFERENCE_BATCH_SIZE", "64"}}, .flags = {}});
  EXPECT_EQ(reading.config.limits.batch_queries_max, Limits().batch_queries_max);
  EXPECT_EQ(FindOrigin(reading, "limits.batch_queries_max"), "default");
  const std::filesystem::path file = WriteFile(R"({"limits.batch_queries_max": 256})");
  const auto from_file = [&](const char* size) {
    return Read({.file = file, .environment = {{"INFERENCE_BATCH_SIZE", size}}, .flags = {}})
        .config.limits.batch_queries_max;
  };
  EXPECT_EQ(from_file("256"), 256U);
  EXPECT_EQ(from_file("257"), 257U);
  EXPECT_EQ(ReadError({.file = {}, .environment = {{"INFERENCE_BATCH_SIZE", "0"}}, .flags = {}}),
            "INFERENCE_BATCH_SIZE: \"0\" is not a whole number of queries from 1 to 65536");
}

TEST_F(ConfigReadTest, KeepsVariablesOfOtherProgramsInTheOrderOfTheirRows) {
  const ConfigReading reading = Read({.file = {},
                                      .environment = {{"ZED_BATCH_SIZE", "2"},
                                                      {"A_BATCH_SIZE", "1"},
                                                      {"CUDA_MODULE_LOADING", "LAZY"},
                                                      {"INFERENCE_BATCH_SIZE", "64"},
                                                      {"SIMILE_PORT_50051_TCP_PORT", "50051"},
                                                      {"WORKER_BROKER", "tcp://10.0.0.7:1"},
                                                      {"WORKER_PORT", "tcp://10.0.0.7:1"},
                                                      {"HOME", "/root"}},
                                      .flags = {}});
  std::vector<std::string> found;
  for (const ForeignValue& each : reading.foreign_values) {
    found.push_back(each.name + "=" + each.value);
  }
  EXPECT_THAT(found, ElementsAre("CUDA_MODULE_LOADING=LAZY", "A_BATCH_SIZE=1", "ZED_BATCH_SIZE=2",
                                 "WORKER_BROKER=tcp://10.0.0.7:1"));
  EXPECT_THAT(reading.familiar_values, ElementsAre(Pair("INFERENCE_BATCH_SIZE", "64")));
}

TEST_F(ConfigReadTest, PrefersItsOwnNameToAFamiliarOne) {
  const ConfigReading reading =
      Read({.file = {},
            .environment = {{"SIMILE_BACKEND_PREFERENCE", "gpu"}, {"USE_GPU", "0"}},
            .flags = {}});
  EXPECT_EQ(reading.config.backend.preference, backend::Preference::kGpu);
  EXPECT_EQ(FindOrigin(reading, "backend.preference"), "environment SIMILE_BACKEND_PREFERENCE");
}

TEST_F(ConfigReadTest, NamesFlagVariableOrFileOfAWrongValueAndItsRange) {
  EXPECT_EQ(ReadError({.file = {}, .environment = {{"SIMILE_SERVER_PORT", "http"}}, .flags = {}}),
            "SIMILE_SERVER_PORT: \"http\" is not a whole number from 0 to 65535");
  EXPECT_EQ(ReadError({.file = {}, .environment = {}, .flags = {{"backend.preference", {"tpu"}}}}),
            "--backend: \"tpu\" is not one of auto, cpu or gpu");
  EXPECT_EQ(ReadError({.file = {}, .environment = {}, .flags = {{"server.port", {"99999"}}}}),
            "--port: \"99999\" is not a whole number from 0 to 65535");
  EXPECT_EQ(ReadError({.file = {}, .environment = {{"USE_GPU", "maybe"}}, .flags = {}}),
            "USE_GPU: \"maybe\" is neither true nor false");
  const std::string out_of_range = FileError(R"({"limits": {"k_max": 0}})");
  EXPECT_THAT(out_of_range,
              HasSubstr("limits.k_max: \"0\" is not a whole number of hits from 1 to 10000 "
                        "(from file "));
}

TEST_F(ConfigReadTest, RefusesUnknownNamesWithTheNearest) {
  EXPECT_EQ(ReadError({.file = {}, .environment = {{"SIMILE_SERVER_PROT", "1"}}, .flags = {}}),
            "no setting \"SIMILE_SERVER_PROT\" (from environment). Did you mean "
            "\"SIMILE_SERVER_PORT\"?");
  EXPECT_THAT(
      FileError(R"({"server": {"prot": 1}})"),
      AllOf(HasSubstr("no setting \"server.prot\""), HasSubstr("Did you mean \"server.port\"?")));
  const auto offered = [this](const char* variable) {
    const std::string error =
        ReadError({.file = {}, .environment = {{variable, "1"}}, .flags = {}});
    return error.substr(std::min(error.size(), error.find("(from environment)") + 18));
  };
  // The shortest name with these words at its end; none that has only the prefix in common.
  EXPECT_EQ(offered("SIMILE_PORT"), ". Did you mean \"SIMILE_SERVER_PORT\"?");
  EXPECT_EQ(offered("SIMILE_PREFERENCE"), ". Did you mean \"SIMILE_BACKEND_PREFERENCE\"?");
  EXPECT_EQ(offered("SIMILE_TOKN"), ". Did you mean \"SIMILE_TOKEN\"?");
  EXPECT_EQ(offered("SIMILE_XYZ"), "; `simile config --print` shows all");
  EXPECT_THAT(FileError(R"({"port": 1})"), HasSubstr("Did you mean \"server.port\"?"));
  EXPECT_THAT(FileError(R"({"qqqqqqqqqqqqqqqqqqqq": 1})"), HasSubstr("`simile config --print`"));
}

TEST_F(ConfigReadTest, RefusesARenamedSettingWithItsNewName) {
  EXPECT_THAT(FileError(R"({"backend": {"nibbles": "off"}})"),
              StartsWith("backend.nibbles is called backend.int4 since 0.1 (from file "));
  EXPECT_EQ(
      ReadError({.file = {}, .environment = {{"SIMILE_BACKEND_NIBBLES", "off"}}, .flags = {}}),
      "SIMILE_BACKEND_NIBBLES is called SIMILE_BACKEND_INT4 since 0.1 (from environment)");
  EXPECT_EQ(ReadError({.file = {}, .environment = {}, .flags = {{"backend.nibbles", {"off"}}}}),
            "backend.nibbles is called backend.int4 since 0.1 (from flag)");
}

TEST_F(ConfigReadTest, RefusesValuesOfAnotherJsonType) {
  EXPECT_THAT(FileError(R"({"server": {"port": "50051"}})"),
              HasSubstr("server.port: \"50051\" is not a whole number from 0 to 65535"));
  EXPECT_THAT(FileError(R"({"server": {"port": 1.5}})"), HasSubstr("server.port: 1.5"));
  EXPECT_THAT(FileError(R"({"server": {"port": -1}})"), HasSubstr("server.port: \"-1\""));
  EXPECT_THAT(FileError(R"({"server": {"reflection": 1}})"),
              HasSubstr("server.reflection: 1 is not true or false"));
  EXPECT_THAT(FileError(R"({"server": 5})"), HasSubstr("no setting \"server\""));
  EXPECT_THAT(FileError(R"({"collections": {"serve": ["films"]}})"),
              HasSubstr("is not an object from name to folder"));
}

TEST_F(ConfigReadTest, RefusesDuplicates) {
  EXPECT_THAT(FileError(R"({"server": {"port": 1}, "server.port": 2})"),
              HasSubstr("server.port: given twice"));
  EXPECT_THAT(FileError(R"({"server": {"port": 1, "port": 2}})"),
              HasSubstr("\"port\" is given twice"));
  EXPECT_EQ(
      ReadError({.file = {}, .environment = {}, .flags = {{"collections.serve", {"a=x", "a=y"}}}}),
      "--collection: \"a\" is named twice");
}

TEST_F(ConfigReadTest, ExplainsWhatIsWrongWithAFile) {
  EXPECT_THAT(FileError("{\"server\": "), HasSubstr("not JSON: "));
  EXPECT_THAT(FileError("[]"), HasSubstr("a JSON object belongs here"));
  EXPECT_EQ(ReadError({.file = "/nowhere/simile.json", .environment = {}, .flags = {}}),
            "/nowhere/simile.json: no such configuration file");
}

TEST_F(ConfigReadTest, RefusesMalformedCollectionNames) {
  for (const char* text :
       {"films", "=films", "films=", "my films=f", ".films=f", "a/b=f", "f\xC3\xA9=f"}) {
    EXPECT_NE(ReadError({.file = {}, .environment = {}, .flags = {{"collections.serve", {text}}}}),
              "")
        << text;
  }
}

TEST_F(ConfigReadTest, IgnoresServiceLinksOfContainerManagers) {
  const ConfigReading reading = Read({.file = {},
                                      .environment = {{"SIMILE_SERVICE_HOST", "10.0.0.7"},
                                                      {"SIMILE_SERVICE_PORT_GRPC", "50051"},
                                                      {"SIMILE_PORT", "tcp://10.0.0.7:50051"},
                                                      {"SIMILE_PORT_50051_TCP_ADDR", "10.0.0.7"},
                                                      {"SIMILE_SERVER_PORT", "tcp://10.0.0.8:1"}},
                                      .flags = {}});
  EXPECT_EQ(reading.config.port, 50'051);
  EXPECT_NE(ReadError({.file = {}, .environment = {{"SIMILE_PORT", "50051"}}, .flags = {}}), "");
}

TEST_F(ConfigReadTest, RefusesADefaultDeadlineOverTheMaximum) {
  EXPECT_THAT(
      ReadError({.file = {},
                 .environment = {{"SIMILE_LIMITS_SEARCH_DEADLINE_DEFAULT", "20000"}},
                 .flags = {}}),
      HasSubstr("limits.search_deadline_default: 20000 ms is over limits.search_deadline_max"));
}

TEST_F(ConfigReadTest, RefusesAMaximumThatAnotherCannotBeReachedWith) {
  const auto error_of = [&](const char* variable, const char* value) {
    return ReadError({.file = {}, .environment = {{variable, value}}, .flags = {}});
  };
  EXPECT_EQ(error_of("SIMILE_LIMITS_RECEIVE_BYTES_MAX", "44739242"), "");
  EXPECT_THAT(error_of("SIMILE_LIMITS_RECEIVE_BYTES_MAX", "44739243"),
              HasSubstr("limits.resolve_bytes_max: 134217728 is too little for "
                        "limits.receive_bytes_max, 44739243: parsing a request of that size "
                        "may take more; give 134217729 or more"));
  EXPECT_THAT(error_of("SIMILE_LIMITS_RECEIVE_BYTES_MAX", "134217729"),
              HasSubstr("limits.unfinished_bytes_per_peer_max: 134217728 is too little for "
                        "limits.receive_bytes_max, 134217729: a request of that size could not "
                        "be received; give 268435458 or more"));
  EXPECT_THAT(
      error_of("SIMILE_LIMITS_QUEUE_BYTES_MAX", "1048576"),
      HasSubstr("limits.queue_bytes_max: 1048576 is too little for limits.receive_bytes_max, "
                "20971520: a request of that size would exceed the space of all waiting requests; "
                "give 20971520 or more"));
}

TEST_F(ConfigReadTest, RefusesToCloseConnectionsAsSoonAsTheyAreMade) {
  const auto error_of = [&](const char* age) {
    return ReadError(
        {.file = {}, .environment = {{"SIMILE_LIMITS_CONNECTION_AGE_MAX", age}}, .flags = {}});
  };
  EXPECT_EQ(error_of("0"), "");
  EXPECT_EQ(error_of("1000"), "");
  EXPECT_THAT(error_of("999"), HasSubstr("give 1000 or more, or 0 for never"));
}

TEST_F(ConfigReadTest, RefusesToCutCallsOfOldConnectionsBeforeTheirDeadlines) {
  const auto error_of = [&](const char* age, const char* grace) {
    return ReadError({.file = {},
                      .environment = {{"SIMILE_LIMITS_CONNECTION_AGE_MAX", age},
                                      {"SIMILE_LIMITS_CONNECTION_AGE_GRACE", grace}},
                      .flags = {}});
  };
  EXPECT_EQ(error_of("0", "9999"), "");
  EXPECT_EQ(error_of("1000", "10000"), "");
  EXPECT_THAT(error_of("1000", "9999"),
              HasSubstr("limits.connection_age_grace: 9999 ms is under limits.search_deadline_max, "
                        "10000 ms"));
}

}  // namespace
}  // namespace simile::app
