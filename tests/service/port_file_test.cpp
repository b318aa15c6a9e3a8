#include "service/port_file.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::service {
namespace {

class PortFileTest : public testing::Test {
 protected:
  const ScratchFolder scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
};

TEST_F(PortFileTest, HoldsThePortAndNothingElseLiesBesideIt) {
  const std::filesystem::path file = folder_ / "port";
  std::ofstream(file) << "an older and longer content";
  ASSERT_TRUE(WritePortFile(file, 50051).ok());
  std::ifstream in(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "50051\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(PortFileTest, SaysWhyItCannotBeWritten) {
  const std::filesystem::path file = folder_ / "no" / "port";
  const absl::Status status = WritePortFile(file, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(status.message()),
            "cannot write the port file " + file.string() + ": No such file or directory");
}

}  // namespace
}  // namespace simile::service
