#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/support/cpu.h>
#include <gtest/gtest.h>

#include <string>

#include "base/cpu_count.h"

namespace simile::net {
namespace {

// The file of the function that gRPC's library gets when it asks the dynamic linker.
std::string FileOf(const char* function) {
  Dl_info found{};
  if (dladdr(dlsym(RTLD_DEFAULT, function), &found) == 0) return "";
  return found.dli_fname;
}

std::string FileOfThisProgram() {
  Dl_info found{};
  EXPECT_NE(dladdr(reinterpret_cast<const void*>(&FileOfThisProgram), &found), 0);
  return found.dli_fname;
}

TEST(LibraryThreadsTest, GrpcCountsTheProcessorsThatTheProcessMayUse) {
  ASSERT_STRNE(grpc_version_string(), "") << "a use of gRPC, so that its library is linked";
  EXPECT_EQ(FileOf("gpr_cpu_num_cores"), FileOfThisProgram());
  EXPECT_EQ(FileOf("gpr_cpu_current_cpu"), FileOfThisProgram());
  EXPECT_EQ(gpr_cpu_num_cores(), base::UsableCpuCount());
  EXPECT_LT(gpr_cpu_current_cpu(), gpr_cpu_num_cores());
}

}  // namespace
}  // namespace simile::net
