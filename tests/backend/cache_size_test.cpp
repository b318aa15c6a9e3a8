#include "backend/cpu/cache_size.h"

#include <string>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::backend::cpu {
namespace {

class CacheSizeTest : public ::testing::Test {
 protected:
  void AddCache(const std::string& index, const std::string& level, const std::string& type,
                const std::string& size) const {
    scratch_.Write(index + "/level", level + "\n");
    scratch_.Write(index + "/type", type + "\n");
    scratch_.Write(index + "/size", size + "\n");
  }
  std::optional<std::size_t> Read() const { return SecondLevelBytes(scratch_.path()); }

  const ScratchFolder scratch_;
};

TEST_F(CacheSizeTest, ReadsTheSecondLevelOfSeveral) {
  AddCache("index0", "1", "Data", "48K");
  AddCache("index1", "1", "Instruction", "32K");
  AddCache("index2", "2", "Unified", "2048K");
  AddCache("index3", "3", "Unified", "260M");
  EXPECT_EQ(Read(), 2'048U * 1'024U);
}

TEST_F(CacheSizeTest, IgnoresInstructionCaches) {
  AddCache("index0", "2", "Instruction", "512K");
  AddCache("index1", "2", "Data", "1M");
  EXPECT_EQ(Read(), 1U << 20);
}

TEST_F(CacheSizeTest, FindsNothingWhereTheSystemListsNoSecondLevel) {
  EXPECT_FALSE(Read().has_value());
  AddCache("index0", "1", "Data", "48K");
  EXPECT_FALSE(Read().has_value());
  EXPECT_FALSE(SecondLevelBytes(scratch_.path() / "none").has_value());
}

TEST_F(CacheSizeTest, FindsNothingInAnInvalidSize) {
  for (const char* size : {"", "K", "0K", "2048KB", "-1", "99999999999999999999", "9999999M"}) {
    AddCache("index0", "2", "Unified", size);
    EXPECT_FALSE(Read().has_value()) << size;
  }
}

}  // namespace
}  // namespace simile::backend::cpu
