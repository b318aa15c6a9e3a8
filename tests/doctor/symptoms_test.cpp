#include "doctor/symptoms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "files/document.h"

namespace simile::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SymptomsTest, GivesEverySymptomOneNameTextAndFix) {
  std::set<std::string> names;
  for (const SymptomRow& row : SymptomRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
    const Finding finding =
        Diagnose("driver", row.symptom, {"a subject", "a detail", "a value", "570", "580", "590"});
    EXPECT_EQ(finding.symptom, row.name);
    EXPECT_TRUE(finding.state == State::kFailed || finding.state == State::kWarning) << row.name;
    EXPECT_NE(finding.text, "") << row.name;
    EXPECT_NE(finding.fix, "") << row.name;
    EXPECT_THAT(finding.text, Not(HasSubstr("{"))) << row.name;
    EXPECT_THAT(finding.fix, Not(HasSubstr("{"))) << row.name;
    EXPECT_THAT(finding.text, Not(HasSubstr("\n"))) << row.name;
  }
  // Every value of the enumeration has its row: they are in the same order.
  EXPECT_EQ(SymptomRows().size(), static_cast<std::size_t>(Symptom::kCpuBroken) + 1);
  for (std::size_t i = 0; i < SymptomRows().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(SymptomRows()[i].symptom), i);
  }
}

TEST(SymptomsTest, AreListedForOperators) {
  const std::string text = TextOfSource("docs/operations.md");
  for (const SymptomRow& row : SymptomRows()) {
    EXPECT_THAT(text, HasSubstr(std::string("`") + row.name + "`"));
  }
}

TEST(SymptomsTest, FillsThePlacesOfAText) {
  const Finding finding = Diagnose("management library", Symptom::kVersionMismatch,
                                   {.module = "570.86.15", .library = "570.133.20"});
  EXPECT_THAT(finding.text, HasSubstr("kernel module 570.86.15, library 570.133.20"));
  EXPECT_THAT(finding.fix, HasSubstr("compose.gpu-reservations.yaml"));
  EXPECT_THAT(finding.fix, HasSubstr("docker run --gpus all"));
}

TEST(SymptomsTest, KnowsTheErrorsOfTheDriver) {
  EXPECT_EQ(SymptomOfDriverError(34), Symptom::kStubLibrary);
  for (const int code : {98, 209}) EXPECT_EQ(SymptomOfDriverError(code), Symptom::kNoCodeForCard);
  EXPECT_EQ(SymptomOfDriverError(803), Symptom::kVersionMismatch);
  for (const int code : {805, 806, 807}) EXPECT_EQ(SymptomOfDriverError(code), Symptom::kMps);
  EXPECT_EQ(SymptomOfDriverError(999), Symptom::kAfterSleep);
  EXPECT_EQ(SymptomOfDriverError(304), Symptom::kDriverError);
}

TEST(SymptomsTest, KnowsXids) {
  for (const std::uint64_t xid : {13U, 31U, 43U}) {
    EXPECT_EQ(SymptomOfXid(xid), Symptom::kApplicationFault) << xid;
  }
  EXPECT_EQ(SymptomOfXid(48), Symptom::kMemoryErrors);
  EXPECT_EQ(SymptomOfXid(79), Symptom::kFellOffTheBus);
  EXPECT_EQ(SymptomOfXid(119), Symptom::kOtherXid);
}

}  // namespace
}  // namespace simile::doctor
