#include "service/self_examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "files/scratch_folder.h"

namespace simile::service {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using Findings = SelfExamination::Findings;

// A machine whose card node blocks every thread that opens it, as a hung driver does, until it is
// released.
class SelfExaminationTest : public ::testing::Test {
 protected:
  SelfExaminationTest() { scratch_.Write("dev/nvidia0", ""); }
  // The hung thread has its own copy of all that it uses, and ends after this object.
  ~SelfExaminationTest() override { node_->release.set_value(); }

  doctor::Options Options() {
    ++examinations_;
    doctor::Options options;
    options.machine = doctor::ThisMachine(scratch_.path());
    options.machine.open_node = [node = node_](const std::filesystem::path&) {
      if (!node->was_opened.exchange(true)) node->opened.set_value();
      node->released.wait();
      return 0;
    };
    options.nvml_library = "libnvidia-ml-that-is-not-here.so.1";
    options.backend.gpu_searches = {{"libcuda-that-is-not-here.so.1", {}}};
    return options;
  }
  static SelfExamination::Done Into(std::promise<Findings>& promise) {
    return [&promise](const Findings& findings) { promise.set_value(findings); };
  }

  struct Node {
    std::promise<void> opened;
    std::atomic<bool> was_opened{false};
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
  };
  const ScratchFolder scratch_;
  const std::shared_ptr<Node> node_ = std::make_shared<Node>();
  std::atomic<int> examinations_{0};
};

TEST_F(SelfExaminationTest, ReportsAHangAndBeginsNoOtherExaminationMeanwhile) {
  SelfExamination examination([this] { return Options(); }, std::chrono::seconds(0));
  for (int times = 0; times < 2; ++times) {
    std::promise<Findings> found;
    examination.Run(Into(found));
    const Findings findings = found.get_future().get();
    ASSERT_TRUE(findings.ok());
    ASSERT_THAT(*findings, Not(IsEmpty()));
    EXPECT_EQ(findings->front().symptom, "hang");
    EXPECT_EQ(examinations_, 1);
  }
}

TEST_F(SelfExaminationTest, BlamesNoDriverWhenMemoryRunsOutInAProbe) {
  SelfExamination examination(
      [this] {
        doctor::Options options = Options();
        options.machine.open_node = [](const std::filesystem::path&) -> int {
          throw std::bad_alloc();
        };
        return options;
      },
      std::chrono::seconds(3'600));
  std::promise<Findings> found;
  examination.Run(Into(found));
  EXPECT_TRUE(absl::IsResourceExhausted(found.get_future().get().status()));
}

TEST_F(SelfExaminationTest, AnswersThoseWhoWaitWhenItStops) {
  SelfExamination examination([this] { return Options(); }, std::chrono::seconds(3'600));
  std::promise<Findings> first;
  examination.Run(Into(first));
  node_->opened.get_future().wait();
  std::promise<Findings> second;
  examination.Run(Into(second));
  examination.Stop();
  EXPECT_THAT(first.get_future().get().value(), Not(IsEmpty()));
  EXPECT_THAT(second.get_future().get().value(), Not(IsEmpty()));
  EXPECT_EQ(examinations_, 1);
  std::promise<Findings> late;
  examination.Run(Into(late));
  EXPECT_THAT(late.get_future().get().value(), IsEmpty());
}

TEST_F(SelfExaminationTest, AnswersWithAnErrorWhenItCannotBegin) {
  bool fails = true;
  SelfExamination examination(
      [&] {
        if (fails) throw std::bad_alloc();
        return Options();
      },
      std::chrono::seconds(0));
  std::promise<Findings> none;
  examination.Run(Into(none));
  EXPECT_TRUE(absl::IsResourceExhausted(none.get_future().get().status()));
  fails = false;
  std::promise<Findings> found;
  examination.Run(Into(found));
  EXPECT_TRUE(found.get_future().get().ok());
}

}  // namespace
}  // namespace simile::service
