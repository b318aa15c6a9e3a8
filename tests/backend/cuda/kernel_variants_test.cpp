// Every variant of the kernel table on the emulated device:
// proven answers are the plain scan's.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/scan_backend.h"
#include "backend/cuda/batch_search.h"
#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/pass_runner.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "emulated_cuda/emulated_device.h"

namespace simile::backend::cuda {
namespace {

using tests::CardOf;
using tests::SeededRandom;

struct VariantCase {
  std::size_t row_count, dim, batch;
  std::uint32_t k;
  bool nearly_equal = false;  // every second row, and the queries
};

// A segment with a query in two masked and one in three with excluded rows.
class VariantBench {
 public:
  VariantBench(Device& device, Workspace& workspace, const VariantCase& tried)
      : random_(tried.row_count + tried.dim),
        rows_(tried.nearly_equal ? tests::NearlyEqualRows(tried.row_count, tried.dim, random_)
                                 : tests::UnitRows(tried.row_count, tried.dim, random_)),
        queries_(tests::UnitRows(tried.batch, tried.dim, random_)),
        resident_(
            device, tests::MakeSegment(rows_),
            PlanResident(ReadSize(*rows_), true, HasInt8Scan(device.traits().code_capability))),
        runner_(device, workspace, resident_),
        mask_(tests::DrawRowMask(static_cast<Row>(tried.row_count), 2, random_)),
        specs_(tests::Specs(tried.batch, tried.k)) {
    if (tried.nearly_equal) {
      for (std::size_t i = 0; i < tried.batch; ++i) {
        std::ranges::copy((*rows_)[2 * i + 1], (*queries_)[i].begin());
      }
    }
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (i % 2 == 1) specs_[i].mask = &mask_;
      if (i % 3 == 2) specs_[i].excluded_rows = kExcluded;
    }
    const auto scan = cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 1);
    const auto index = *scan->MakeResident(tests::MakeSegment(rows_));
    EXPECT_TRUE(index->Search({queries_->view(), specs_}, expected_).ok());
  }

  PassDemand Demand() const {
    const unsigned k = specs_.front().k;
    return MakeDemand(resident_, specs_.size(), k, k + 3, true);
  }
  const SegmentSize& size() const { return resident_.size(); }

  // Whether the first kOrderedMax candidates of each query of the last pass were in the order of
  // 256 ranges of rows.
  bool ScoresInRowOrder(const PassPlan& plan) const {
    constexpr std::size_t kOrderedMax = 2'048;
    std::vector<unsigned> rows(plan.capacity);
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const std::size_t kept = std::min<std::size_t>(runner_.ProofOf(i).kept, kOrderedMax);
      EXPECT_EQ(cudaMemcpy(rows.data(), runner_.workspace().kept_rows() + i * plan.capacity,
                           kept * sizeof(unsigned), cudaMemcpyDeviceToHost),
                cudaSuccess);
      const auto range_of = [&](unsigned row) {
        return row / (std::bit_ceil(size().row_count) / 256);
      };
      if (!std::ranges::is_sorted(std::span(rows).first(kept), {}, range_of)) return false;
    }
    return true;
  }

  // Runs the plan twice, expects the scan's answers of all that it proves, and returns how many it
  // does not. Gates, and so hits, do not depend on the order of blocks, which differs each time.
  std::size_t Expect(const PassPlan& plan, const std::string& what) {
    const Filter* filter = resident_.filters().Use(mask_, 0, runner_.workspace().stream(0));
    std::vector<DeviceQuery> queries(std::min<std::size_t>(plan.slots, specs_.size()));
    std::vector<unsigned> excluded;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      queries[i].index = static_cast<std::uint32_t>(i);
      queries[i].filter = specs_[i].mask != nullptr ? filter : nullptr;
      queries[i].wanted = static_cast<unsigned>(expected_.Hits(i).size());
      queries[i].first_excluded = static_cast<std::uint32_t>(excluded.size());
      for (const Row row : specs_[i].excluded_rows) {
        if (specs_[i].mask == nullptr || mask_.Allows(row)) excluded.push_back(row);
      }
      queries[i].excluded_count =
          static_cast<std::uint32_t>(excluded.size()) - queries[i].first_excluded;
    }
    runner_.UploadExcluded(excluded);
    std::size_t unproven = 0;
    std::vector<unsigned> hit_counts;
    for (const bool captured : {false, true}) {
      runner_.Run(plan, {queries_->view(), specs_}, queries);
      unproven = 0;
      for (std::size_t i = 0; i < queries.size(); ++i) {
        if (!captured) hit_counts.push_back(runner_.ProofOf(i).hits);
        EXPECT_EQ(runner_.ProofOf(i).hits, hit_counts[i]) << what << ", query " << i;
        if (runner_.ProofOf(i).flag != kernels::kProven) {
          ++unproven;
          continue;
        }
        EXPECT_TRUE(std::ranges::equal(runner_.Answer(i), expected_.Hits(i)))
            << what << (captured ? ", captured" : "") << ", query " << i;
      }
    }
    resident_.filters().Release();
    EXPECT_EQ(emulated_cuda::TakeReport(), "") << what;
    return unproven;
  }

 private:
  static constexpr std::array<Row, 3> kExcluded{1, 2, 30};

  static SegmentSize ReadSize(const tests::PaddedRows& rows) {
    return {static_cast<unsigned>(rows.row_count()),
            static_cast<unsigned>(rows.view().padded_dim())};
  }

  SeededRandom random_;
  std::shared_ptr<tests::PaddedRows> rows_, queries_;
  ResidentRows resident_;
  PassRunner runner_;
  RowMask mask_;
  std::vector<QuerySpec> specs_;
  SearchResult expected_;
};

// A part of the qualified name of the variant's kernel.
std::string_view FindKernel(const KernelVariant& variant) {
  const bool is_int8 = variant.strategy == PassStrategy::kInt8Scan;
  if (variant.form == kernels::ScanForm::kKept) {
    return is_int8 ? "KeptInt8ScanKernel" : "KeptRowScanKernel";
  }
  if (variant.strategy == PassStrategy::kGemm) return "TopkFp16Kernel";
  if (variant.code_min == 0) return "RowRegisters";
  return is_int8 ? "::Int8ScanKernel" : "::RowScanKernel";
}

bool HasRun(std::string_view kernel) {
  const std::vector<std::string> log = emulated_cuda::CallLog();
  return std::ranges::any_of(
      log, [&](const std::string& call) { return call.find(kernel) != std::string::npos; });
}

// In a large segment the first rows set a second gate.
void AddSecondGate(const VariantCase& tried, PassPlan& plan) {
  plan.second_tiles = static_cast<unsigned>(tried.row_count) / 32 / 2;
  plan.second_share = 0.5;
}

class PassFixture : public ::testing::Test {
 protected:
  void Open(const GpuOptions& options, std::uint64_t seed) {
    workspace_.reset();
    device_.reset();
    tests::ResetEmulatedGpu(CardOf(0), seed);
    const BlasLibrary blas = LoadBlas(options);
    ASSERT_TRUE(blas.loaded()) << blas.missing;
    device_ = std::make_unique<Device>(options, blas);
    workspace_ = std::make_unique<Workspace>(*device_, options.workspace, 1);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Workspace> workspace_;
};

class FinishTest : public PassFixture {};
class KernelVariantTest : public PassFixture, public ::testing::WithParamInterface<std::size_t> {};

// Rows of an odd number of chunks, too, whole tiles of them, and as many as warps can keep the
// scores of.
TEST_P(KernelVariantTest, AnswersAsTheScanDoes) {
  const KernelVariant& variant = KernelVariants()[GetParam()];
  const GpuOptions options = tests::EmulatedOptions();
  std::size_t planned = 0, queries = 0, unproven = 0;
  for (const VariantCase& tried :
       {VariantCase{700, 32, 5, 3}, VariantCase{1'024, 96, 8, 3}, VariantCase{1'530, 150, 16, 7},
        VariantCase{1'024, 96, 30, 3}, VariantCase{2'000, 64, 90, 20}}) {
    Open(options, tried.row_count + GetParam());
    VariantBench bench(*device_, *workspace_, tried);
    const PassDemand demand = bench.Demand();
    auto plan = PlanVariant(variant, device_->traits(), GpuTuning{}, workspace_->size(),
                            bench.size(), demand);
    if (!plan) continue;
    ++planned;
    const std::string what =
        std::string(variant.name) + ", " + std::to_string(tried.row_count) + " rows";
    queries += tried.batch;
    unproven += bench.Expect(*plan, what);
    EXPECT_TRUE(HasRun(FindKernel(variant))) << what;
    if (!IsScan(variant.strategy) || variant.form == kernels::ScanForm::kKept) continue;
    AddSecondGate(tried, *plan);
    unproven += bench.Expect(*plan, what + ", a second gate");
  }
  EXPECT_GE(planned, 2U);
  EXPECT_LE(unproven * 50, queries);
}

// Gates lie as far below the best cheap scores as these may err, so that no query is run again.
TEST_P(KernelVariantTest, ProvesAnswersAmongNearlyEqualRows) {
  const KernelVariant& variant = KernelVariants()[GetParam()];
  const VariantCase tried{1'024, 64, 5, 3, true};
  Open(tests::EmulatedOptions(), GetParam());
  VariantBench bench(*device_, *workspace_, tried);
  PassDemand demand = bench.Demand();
  demand.growth = 4;  // half the rows are hits
  auto plan = PlanVariant(variant, device_->traits(), GpuTuning{}, workspace_->size(), bench.size(),
                          demand);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(bench.Expect(*plan, "one gate"), 0U);
  if (!IsScan(variant.strategy) || variant.form == kernels::ScanForm::kKept) return;
  AddSecondGate(tried, *plan);
  EXPECT_EQ(bench.Expect(*plan, "two gates"), 0U);
}

// Lists of candidates that a warp, a block and several runs sort.
TEST_F(FinishTest, EachFinishAnswersAsTheScanDoes) {
  const auto gemm =
      std::ranges::find(KernelVariants(), PassStrategy::kGemm, &KernelVariant::strategy);
  for (const VariantCase& tried :
       {VariantCase{700, 32, 5, 3}, VariantCase{2'000, 64, 90, 20}, VariantCase{2'000, 32, 7, 230},
        VariantCase{9'000, 32, 3, 700}, VariantCase{9'000, 32, 2, 2'100}}) {
    Open(tests::EmulatedOptions(), tried.k);
    VariantBench bench(*device_, *workspace_, tried);
    auto plan = PlanVariant(*gemm, device_->traits(), GpuTuning{}, workspace_->size(), bench.size(),
                            bench.Demand());
    ASSERT_TRUE(plan.has_value()) << "k " << tried.k;
    for (const FinishForm form : kFinishForms) {
      plan->finish = form;
      const std::string what =
          "k " + std::to_string(tried.k) + ", finish in " + std::string(FinishText(form));
      EXPECT_EQ(bench.Expect(*plan, what), 0U) << what;
      EXPECT_EQ(bench.ScoresInRowOrder(*plan), form == FinishForm::kStepsInRowOrder) << what;
    }
  }
}

// Code for sm_75 that a later card made its own of: no kernel of it copies in the background.
TEST(KernelVariantsTest, AreThoseOfTheCodeNotOfTheCard) {
  emulated_cuda::Options emulated;
  emulated.code_capability = 75;
  emulated.quiet = true;
  emulated_cuda::ResetDevice(emulated);
  const auto gpu = tests::OpenEmulatedGpu(tests::EmulatedOptions(tests::ForcedStrategy::kInt8Scan));
  ASSERT_TRUE(gpu.ok()) << gpu.status().ToString();
  SeededRandom random(3);
  const auto rows = tests::UnitRows(900, 32, random);
  const auto index = *(*gpu)->MakeResident(tests::MakeSegment(rows));
  const std::vector<QuerySpec> specs = tests::Specs(1, 5);
  SearchResult result;
  ASSERT_TRUE(index->Search({rows->view().Slice(0, 1), specs}, result).ok());
  EXPECT_STREQ(result.Engine(0), "fp16-scan-registers-sm90");
  EXPECT_TRUE(HasRun("RowRegisters"));
  EXPECT_FALSE(HasRun("RowRing"));
}

INSTANTIATE_TEST_SUITE_P(Table, KernelVariantTest,
                         ::testing::Range(std::size_t{0}, KernelVariants().size()),
                         [](const auto& test) {
                           return std::string(KernelVariants()[test.param].name);
                         });

}  // namespace
}  // namespace simile::backend::cuda
