// Folders whose files are links: how far they may lead, by who named the folder and who reloads it.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "files/film_folder.h"
#include "files/scratch_folder.h"
#include "service/collection_changes_fixture.h"

namespace simile::service {
namespace {

namespace fs = std::filesystem;
using base::ErrorReason;
using testing::HasSubstr;

class CollectionLinksTest : public CollectionChangesFixture {
 protected:
  // A folder of links to the files of another one, as caches leave them.
  static void WriteLinks(const fs::path& folder, const fs::path& files) {
    fs::create_directories(folder);
    for (const char* const name : {"content_vectors.npy", "metadata.jsonl"}) {
      fs::create_symlink(files / name, folder / name);
    }
  }
  //   within  the folder that the caller is bound to; empty for none
  static ChangeRequest MakeRequest(ChangeKind kind, const std::string& folder,
                                   const std::string& within) {
    ChangeRequest request;
    request.kind = kind;
    request.collection = "films";
    request.folder.path = folder;
    request.folder.within = within;
    return request;
  }
  Result Make(ChangeKind kind, const std::string& folder = "", const std::string& within = "") {
    return CollectionChangesFixture::Make(MakeRequest(kind, folder, within));
  }
  static std::size_t CountRows(const Result& loaded) {
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? (*loaded)->row_count() : 0;
  }
  static void ExpectLeadsOut(const Result& loaded) {
    EXPECT_EQ(base::ReasonOf(loaded.status()), ErrorReason::kInvalidFiles) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()),
                HasSubstr("leads out of the folders that may be loaded here"));
  }

  const ScratchFolder outside_;
};

TEST_F(CollectionLinksTest, LeadAnywhereFromAFolderThatTheOperatorNamed) {
  const fs::path files = outside_.path() / "1";
  WriteFilmFolder(files, 5, 1);
  WriteLinks(root_ / "films", files);
  EXPECT_EQ(CountRows(changes_.LoadAtStart("films", root_ / "films")), 5U);
  WriteFilmFolder(files, 6, 1);
  EXPECT_EQ(CountRows(changes_.ReloadServed("films")), 6U);
  WriteFilmFolder(files, 7, 1);
  EXPECT_EQ(CountRows(Make(ChangeKind::kReload)), 7U) << "the folder is still the operator's";
  // For a caller who is bound to a folder, links lead no further than that folder.
  WriteFilmFolder(files, 8, 1);
  ExpectLeadsOut(Make(ChangeKind::kReload, "", "films"));
  EXPECT_EQ(CountRows(changes_.ReloadServed("films")), 8U);
}

TEST_F(CollectionLinksTest, LeadAnywhereFromAFolderOutsideTheDataRoot) {
  WriteFilmFolder(outside_.path() / "blobs", 5, 1);
  WriteLinks(outside_.path() / "films", "../blobs");
  EXPECT_EQ(CountRows(changes_.LoadAtStart("films", outside_.path() / "films")), 5U);
  WriteFilmFolder(outside_.path() / "blobs", 6, 1);
  ExpectLeadsOut(Make(ChangeKind::kReload, "", "films"));
  EXPECT_EQ(CountRows(Make(ChangeKind::kReload)), 6U);
}

TEST_F(CollectionLinksTest, OfACallersFolderLeadNoFurtherThanTheDataRoot) {
  WriteFilmFolder(outside_.path() / "1", 5, 1);
  WriteFilmFolder(root_ / "blobs", 6, 1);
  WriteLinks(root_ / "out", outside_.path() / "1");
  WriteLinks(root_ / "cached", "../blobs");
  ExpectLeadsOut(Make(ChangeKind::kLoad, "out"));
  EXPECT_EQ(CountRows(Make(ChangeKind::kLoad, "cached")), 6U);
}

TEST_F(CollectionLinksTest, OfABoundCallersFolderStayInItsOwn) {
  WriteFilmFolder(root_ / "blobs", 5, 1);
  WriteFilmFolder(root_ / "films/blobs", 6, 1);
  WriteLinks(root_ / "films/to_others", "../../blobs");
  WriteLinks(root_ / "films/to_own", "../blobs");
  ExpectLeadsOut(Make(ChangeKind::kLoad, "films/to_others", "films"));
  EXPECT_EQ(CountRows(Make(ChangeKind::kLoad, "films/to_own", "films")), 6U);
  // The same holds when the operator reloads a folder that such a caller named.
  fs::remove_all(root_ / "films/to_own");
  WriteLinks(root_ / "films/to_own", "../../blobs");
  ExpectLeadsOut(changes_.ReloadServed("films"));
  EXPECT_EQ(CountRows(Make(ChangeKind::kReload, "films/to_others")), 5U);
}

}  // namespace
}  // namespace simile::service
