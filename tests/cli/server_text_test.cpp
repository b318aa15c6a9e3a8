#include "cli/server_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace simile::cli {
namespace {

using testing::HasSubstr;

TEST(BackendTextTest, NamesTheBackendAndWhyItWasChosen) {
  v1::BackendStatus backend;
  backend.set_kind(v1::BACKEND_KIND_GPU);
  EXPECT_EQ(BackendText(backend), "gpu");
  backend.set_kind(v1::BACKEND_KIND_CPU);
  backend.set_reason("no NVIDIA driver");
  EXPECT_EQ(BackendText(backend), "cpu: no NVIDIA driver");
}

TEST(BackendTextTest, ShowsGpuMemoryByPurpose) {
  v1::BackendStatus backend;
  EXPECT_EQ(DeviceMemoryTable(backend, Terminal{}), "");
  v1::DeviceMemory& memory = *backend.add_device_memory();
  memory.set_kind("rows-fp16");
  memory.set_bytes(2 << 20);
  memory.set_peak_bytes(4 << 20);
  EXPECT_EQ(DeviceMemoryTable(backend, Terminal{}),
            "GPU memory      now     peak\n"
            "rows-fp16   2.0 MiB  4.0 MiB\n");
}

v1::GetServerInfoResponse Info() {
  v1::GetServerInfoResponse info;
  info.set_version("0.1.0");
  info.set_commit("0123456789ab");
  info.set_compiler("GNU 12.2.0");
  info.set_build_type("Release");
  info.mutable_started_at()->set_seconds(1'700'000'000);
  info.add_capabilities("search");
  info.add_capabilities("search_stream");
  (*info.mutable_limits())["reply_bytes_max"] = 64 << 20;
  (*info.mutable_limits())["search_deadline_max_ms"] = 10'000;
  (*info.mutable_limits())["drain_timeout_ms"] = 1'500;
  (*info.mutable_limits())["k_max"] = 10'000;
  v1::BackendStatus& backend = *info.mutable_backend();
  backend.set_kind(v1::BACKEND_KIND_CPU);
  backend.set_device("AMD EPYC, 2 threads");
  backend.set_engine("int8-avx2");
  backend.set_reason("no NVIDIA driver");
  return info;
}

TEST(InfoCommandTest, ShowsOneFactPerLine) {
  EXPECT_EQ(InfoText(Info(), "127.0.0.1:50051", false, Terminal{}),
            "simile 0.1.0 at 127.0.0.1:50051\n"
            "  build    0123456789ab, GNU 12.2.0, Release\n"
            "  started  2023-11-14 22:13:20 UTC\n"
            "  backend  cpu: no NVIDIA driver\n"
            "  engine   int8-avx2 on AMD EPYC, 2 threads\n"
            "  changes  refused; `simile serve --allow-changes` allows load, reload, rollback and "
            "unload\n"
            "  admin    refused; `simile serve --allow-admin` allows top and doctor --server\n"
            "  can      search, search_stream\n"
            "  limits   4; `simile info --limits` lists them\n");
}

TEST(InfoCommandTest, TellsACallerWhatItsRoleRefuses) {
  const std::string text = InfoText(Info(), "127.0.0.1:50051", true, Terminal{});
  EXPECT_THAT(text,
              HasSubstr("  changes  refused to this caller: load, reload, rollback and unload "
                        "need the role write\n"));
  EXPECT_THAT(text, HasSubstr("  admin    refused to this caller: top and doctor --server need the "
                              "role admin\n"));
}

TEST(InfoCommandTest, LeavesOutACommitThatIsNotKnown) {
  v1::GetServerInfoResponse info = Info();
  info.clear_commit();
  info.set_changes_allowed(true);
  info.set_admin_allowed(true);
  const std::string text = InfoText(info, "a:1", false, Terminal{});
  EXPECT_THAT(text, HasSubstr("  build    GNU 12.2.0, Release\n"));
  EXPECT_THAT(text, HasSubstr("  changes  allowed\n"));
  EXPECT_THAT(text, HasSubstr("  admin    allowed\n"));
}

TEST(InfoCommandTest, WrapsAbilitiesAndShortensTheCommit) {
  v1::GetServerInfoResponse info = Info();
  info.set_commit("0123456789abcdef0123456789abcdef01234567");
  for (const char* name : {"expected_snapshot_id", "page_tokens_across_servers", "as_stored"}) {
    info.add_capabilities(name);
  }
  const std::string text = InfoText(info, "a:1", false, Terminal{});
  EXPECT_THAT(text, HasSubstr("  build    0123456789ab, GNU 12.2.0, Release\n"));
  EXPECT_THAT(text, HasSubstr("  can      search, search_stream, expected_snapshot_id,\n"
                              "           page_tokens_across_servers, as_stored\n"));
}

TEST(InfoCommandTest, ShowsLimitsWithTheirUnits) {
  EXPECT_EQ(LimitsTable(Info(), Terminal{}),
            "limit                      value\n"
            "drain_timeout_ms        1,500 ms\n"
            "k_max                     10,000\n"
            "reply_bytes_max         64.0 MiB\n"
            "search_deadline_max_ms      10 s\n");
}

TEST(InfoCommandTest, PrintsEverythingAsJson) {
  const auto info = nlohmann::json::parse(InfoJson(Info()));
  EXPECT_EQ(info["started_at"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(info["backend"]["kind"], "cpu");
  EXPECT_EQ(info["changes_allowed"], false);
  EXPECT_EQ(info["admin_allowed"], false);
  EXPECT_EQ(info["capabilities"], nlohmann::json({"search", "search_stream"}));
  EXPECT_EQ(info["limits"]["reply_bytes_max"], 64 << 20);
}

}  // namespace
}  // namespace simile::cli
