#include "service/grpc/method.h"

#include <chrono>
#include <cstddef>
#include <new>

#include <gtest/gtest.h>

#include "net/running_io_thread.h"
#include "observe/build_info.h"

namespace simile::service {
namespace {

using namespace std::chrono_literals;

// Counts the calls that it asks for, without gRPC.
class CountingMethod final : public Method {
 public:
  CountingMethod(RpcEnvironment& environment, const MethodRow& row)
      : Method(environment, row, Type::NORMAL_RPC) {}

  std::size_t asked = 0;
  std::size_t asked_max = 0;  // for more there is no memory

 private:
  void AskForCall() override {
    if (asked == asked_max) throw std::bad_alloc();
    ++asked;
  }
};

TEST(MethodTest, AsksAgainForCallsThatFoundNoMemory) {
  net::RunningIoThread io;
  const observe::Logger log({observe::LogFormat::kText, observe::LogLevel::kError, nullptr});
  observe::Metrics metrics{observe::GetBuildInfo()};
  const Limits limits;
  observe::FailureLines failure_lines{log, io.clock()};
  observe::AuditLog audit{log, io.clock()};
  AccessControl access(io.clock());
  RpcEnvironment environment{
      io.clock(), log,    failure_lines, audit,         metrics,
      limits,     access, false,         RequestIds(1), ResolveWorkers({}, io.clock())};
  MethodService service({});
  CountingMethod method(environment, {.path = "/simile.v1.SearchService/Search", .posted = 3});
  method.TakeCalls({service, 0, io.thread()});
  EXPECT_EQ(method.asked, 0U);
  io.Start();
  io.Run([&] { method.asked_max = 2; });
  io.Advance(1s);
  EXPECT_EQ(method.asked, 2U);
  io.Run([&] { method.asked_max = 100; });
  io.Advance(1s);
  EXPECT_EQ(method.asked, 3U);
  io.Run([&] { method.CallArrived(); });
  EXPECT_EQ(method.asked, 4U);
}

}  // namespace
}  // namespace simile::service
