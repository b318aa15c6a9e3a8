#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "base/file_descriptor.h"

namespace simile::net {

// Takes every file descriptor that this process may still open, below a low limit; the destructor
// gives them back and restores the limit.
class ScarceDescriptors {
 public:
  ScarceDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit low = before_;
    low.rlim_cur = 128;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    do {
      taken_.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    } while (taken_.back().valid());
    taken_.pop_back();
  }
  ~ScarceDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  ScarceDescriptors(const ScarceDescriptors&) = delete;
  ScarceDescriptors& operator=(const ScarceDescriptors&) = delete;

  void GiveBack(std::size_t count) { taken_.resize(taken_.size() - count); }

 private:
  rlimit before_{};
  std::vector<base::FileDescriptor> taken_;
};

}  // namespace simile::net
