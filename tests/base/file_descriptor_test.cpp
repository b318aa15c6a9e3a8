#include "base/file_descriptor.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include <gtest/gtest.h>

namespace simile::base {
namespace {

int OpenNothing() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(FileDescriptorTest, OwnsNothingWhenNew) {
  FileDescriptor none;
  EXPECT_FALSE(none.valid());
  EXPECT_FALSE(FileDescriptor(-1).valid());
  none.Close();
  EXPECT_EQ(none.Release(), -1);
}

TEST(FileDescriptorTest, ClosesItsDescriptorAndKeepsErrno) {
  const int fd = OpenNothing();
  {
    const FileDescriptor owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(IsOpen(fd));
    errno = ENOENT;
  }
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptorTest, DoesNotCloseAReleasedDescriptor) {
  const int fd = OpenNothing();
  FileDescriptor owner(fd);
  EXPECT_EQ(owner.Release(), fd);
  EXPECT_FALSE(owner.valid());
  owner.Close();
  EXPECT_TRUE(IsOpen(fd));
  FileDescriptor again(fd);
  again.Close();
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptorTest, ClosesTheTargetsDescriptorWhenMoved) {
  const int first = OpenNothing();
  const int second = OpenNothing();
  FileDescriptor from(first);
  FileDescriptor to(second);
  to = std::move(from);
  EXPECT_EQ(to.get(), first);
  EXPECT_TRUE(IsOpen(first));
  EXPECT_FALSE(IsOpen(second));
  const FileDescriptor last(std::move(to));
  EXPECT_EQ(last.get(), first);
}

TEST(FileDescriptorTest, KeepsItsDescriptorWhenAssignedToItself) {
  FileDescriptor owner(OpenNothing());
  FileDescriptor& same = owner;
  owner = std::move(same);
  EXPECT_TRUE(IsOpen(owner.get()));
}

}  // namespace
}  // namespace simile::base
