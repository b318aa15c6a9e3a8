#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backend/cpu/int8_backend.h"
#include "backend/cpu/scan_backend.h"
#include "backend/segments.h"

namespace simile::tests {

// An int8 backend and the plain scan, whose answers are the expected ones.
class Int8Fixture : public ::testing::Test {
 protected:
  // Searches with a new backend and expects the scan's answers. result() returns the backend's own.
  void ExpectTheScansAnswers(const backend::cpu::Int8Options& options, const SegmentRows& rows,
                             const SearchBatch& batch, const std::string& what) {
    backend_ = backend::cpu::MakeInt8Backend(options);
    const auto index = backend_->MakeResident(rows);
    ASSERT_TRUE(index.ok()) << index.status().ToString();
    ExpectTheScansAnswers(**index, rows, batch, what);
  }
  void ExpectTheScansAnswers(const SegmentIndex& index, const SegmentRows& rows,
                             const SearchBatch& batch, const std::string& what) {
    const auto plain = scan_->MakeResident(rows);
    ASSERT_TRUE(plain.ok());
    ASSERT_TRUE((*plain)->Search(batch, expected_).ok());
    ASSERT_TRUE(index.Search(batch, result_).ok());
    ExpectSameAnswers(result_, expected_, what);
  }

  const SearchResult& result() const { return result_; }
  std::string Engine(std::size_t query) const { return result_.Engine(query); }

 private:
  std::unique_ptr<Backend> scan_ =
      backend::cpu::MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), 2);
  std::unique_ptr<Backend> backend_;
  SearchResult expected_;
  SearchResult result_;
};

}  // namespace simile::tests
