#include "service/changes/data_root.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "files/scratch_folder.h"

namespace simile::service {
namespace {

using base::ErrorReason;

// A data root with a collection, a file, and links that lead inside and out.
class DataRootTest : public testing::Test {
 protected:
  DataRootTest() {
    base_ = std::filesystem::canonical(scratch_.path());
    root_ = base_ / "root";
    std::filesystem::create_directories(root_ / "films" / "v2");
    std::filesystem::create_directories(base_ / "root-of-another");
    std::ofstream(root_ / "file") << "x";
    std::filesystem::create_directory_symlink(root_ / "films", root_ / "alias");
    std::filesystem::create_directory_symlink(base_, root_ / "out");
    std::filesystem::create_directory_symlink(base_ / "root-of-another", root_ / "sibling");
  }

  std::string Error(const std::string& folder) const {
    const auto path = ResolveInDataRoot(root_, folder);
    return path.ok() ? "resolved to " + path->string() : std::string(path.status().message());
  }

  ErrorReason ReasonFor(const std::string& folder) const {
    return base::ReasonOf(ResolveInDataRoot(root_, folder).status());
  }

  const ScratchFolder scratch_;
  std::filesystem::path base_;
  std::filesystem::path root_;
};

TEST_F(DataRootTest, ResolvesFoldersInside) {
  EXPECT_EQ(*ResolveInDataRoot(root_, "films"), root_ / "films");
  EXPECT_EQ(*ResolveInDataRoot(root_, "./films/v2/"), root_ / "films" / "v2");
  EXPECT_EQ(*ResolveInDataRoot(root_, "alias/v2"), root_ / "films" / "v2");
  EXPECT_EQ(*ResolveInDataRoot(root_, "."), root_);
  EXPECT_EQ(*ResolveInDataRoot(root_, "out/root/films"), root_ / "films");
}

TEST_F(DataRootTest, FollowsADataRootThatIsItselfALink) {
  std::filesystem::create_directory_symlink(root_, base_ / "link");
  EXPECT_EQ(*ResolveInDataRoot(base_ / "link", "films"), root_ / "films");
}

TEST_F(DataRootTest, RefusesPathsThatLeadOut) {
  const std::string rule = "; name a folder inside the server's data root, relative to it";
  EXPECT_EQ(Error(""), "folder: \"\" is empty" + rule);
  EXPECT_EQ(Error("/etc"), "folder: \"/etc\" is absolute" + rule);
  EXPECT_EQ(Error("../root-of-another"), "folder: \"../root-of-another\" contains `..`" + rule);
  EXPECT_EQ(Error("films/../films"), "folder: \"films/../films\" contains `..`" + rule);
  EXPECT_EQ(Error(std::string("films\0x", 7)),
            "folder: \"films\\u0000x\" contains a NUL byte" + rule);
  EXPECT_EQ(Error("out"), "folder: \"out\" leads out of the data root through a link" + rule);
  EXPECT_EQ(Error("sibling"),
            "folder: \"sibling\" leads out of the data root through a link" + rule);
  EXPECT_EQ(Error("file"), "folder: \"file\" is not a folder" + rule);
}

TEST_F(DataRootTest, TellsWrongTextsFromPathsThatLeadOutAndFromFilesThatAreWrong) {
  for (const std::string& text : {std::string(), std::string("a\0b", 3), std::string(5'000, 'a')}) {
    EXPECT_EQ(ReasonFor(text), ErrorReason::kInvalidField) << text;
  }
  for (const char* const outside : {"/etc", "../root-of-another", "out", "sibling"}) {
    EXPECT_EQ(ReasonFor(outside), ErrorReason::kOutsideDataRoot) << outside;
  }
  EXPECT_EQ(ReasonFor("file"), ErrorReason::kInvalidFiles);
  EXPECT_EQ(base::FieldOf(ResolveInDataRoot(root_, "file").status()), "folder");
}

TEST_F(DataRootTest, SaysThatAFolderDoesNotExist) {
  EXPECT_EQ(ReasonFor("book"), ErrorReason::kInvalidFiles);
  EXPECT_EQ(Error("book"), "folder: the server's data root has no \"book\"");
}

TEST_F(DataRootTest, NeedsADataRoot) {
  EXPECT_EQ(base::ReasonOf(ResolveInDataRoot("", "films").status()), ErrorReason::kOutsideDataRoot);
  const auto gone = ResolveInDataRoot(base_ / "gone", "films");
  EXPECT_EQ(base::ReasonOf(gone.status()), ErrorReason::kOutsideDataRoot);
  EXPECT_EQ(std::string(gone.status().message()).find(base_.string()), std::string::npos);
}

}  // namespace
}  // namespace simile::service
