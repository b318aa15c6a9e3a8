#include "base/loaded_libraries.h"

#include <dlfcn.h>

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::base {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(LoadedLibrariesTest, NamesWhatTheProgramLinks) {
  const std::vector<LoadedLibrary> libraries = LoadedLibraries();
  EXPECT_THAT(libraries, Contains(Field(&LoadedLibrary::name, "libc.so.6")));
  // By the link and by the file that it leads to.
  EXPECT_THAT(libraries,
              Contains(AllOf(Field(&LoadedLibrary::name, "libstdc++.so.6"),
                             Field(&LoadedLibrary::file, StartsWith("libstdc++.so.6.")))));
}

TEST(LoadedLibrariesTest, NamesNeitherFoldersNorTheKernelsOwn) {
  const std::vector<LoadedLibrary> libraries = LoadedLibraries();
  EXPECT_THAT(libraries, Each(Field(&LoadedLibrary::name, Not(HasSubstr("/")))));
  EXPECT_THAT(libraries, Each(Field(&LoadedLibrary::file, Not(HasSubstr("/")))));
  EXPECT_THAT(libraries, Each(Field(&LoadedLibrary::name, Not(HasSubstr("vdso")))));
}

TEST(LoadedLibrariesTest, NamesALibraryOnceItIsLoaded) {
  constexpr char kLibrary[] = "libutil.so.1";  // of glibc, and nobody links it any more
  EXPECT_THAT(LoadedLibraries(), Not(Contains(Field(&LoadedLibrary::name, kLibrary))));
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_THAT(LoadedLibraries(), Contains(Field(&LoadedLibrary::name, kLibrary)));
  dlclose(library);
}

}  // namespace
}  // namespace simile::base
