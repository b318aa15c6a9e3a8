#include "filter/payload_view.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "filter/field_summary.h"
#include "filter/filters.h"
#include "filter/payload_rows.h"

namespace simile::filter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Rows 0 and 2 are one tenant's, the others another's, which alone has the fields secret and none.
class PayloadViewTest : public ::testing::Test {
 protected:
  PayloadViewTest() {
    dataset_.ids = data::IdIndex::OfRowNumbers(4);
    dataset_.payload = MakeTable({
        {{"tenant", Text("a")},
         {"tags", Texts({"new", "Red"})},
         {"year", Whole(1990)},
         {"price", Real(1.5)},
         {"sold", Flag(true)},
         {"since", Text("2020-01-01T00:00:00Z")}},
        {{"tenant", Text("b")},
         {"tags", Texts({"red", "blue"})},
         {"year", Whole(2020)},
         {"price", Real(9.5)},
         {"sold", Flag(false)},
         {"since", Text("2024-01-01T00:00:00Z")},
         {"secret", Text("x")}},
        {{"tenant", Text("a")}, {"tags", Texts({"new"})}, {"year", Whole(1990)}},
        {{"tenant", Text("b")}, {"secret", Text("y")}, {"empty", PayloadValue{}}},
    });
    filters_ = Filters::Create(dataset_, "films");
    rows_ = FindRows(R"(tenant = "a")");
    fields_ = filters_->FindFields(rows_, work_).value();
  }

  NamedRows FindRows(std::string_view text) {
    const auto filter = filters_->Prepare(text, filters_->payload(), work_).value();
    return {filter.text, filters_->Rows(filter, work_).value()};
  }
  FieldSummary SummarizeField(const char* field) {
    return SummarizeRows(*filters_, *fields_->Find(field), *rows_.rows, 5, work_).value();
  }

  base::LongWork work_ = tests::UnaskedWork();
  data::Dataset dataset_;
  std::unique_ptr<const Filters> filters_;
  NamedRows rows_;
  std::optional<PayloadView> fields_;
};

TEST_F(PayloadViewTest, HasTheFieldsOfItsRowsAlone) {
  std::vector<std::string> names;
  for (const Field& field : fields_->fields()) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("price", "since", "sold", "tags", "tenant", "year"));
  EXPECT_FALSE(fields_->has_all());
  EXPECT_EQ(fields_->Find("secret"), nullptr);
  EXPECT_NE(fields_->Find("year"), nullptr);
  const PayloadView all = filters_->FindFields({}, work_).value();
  EXPECT_TRUE(all.has_all());
  EXPECT_NE(all.Find("secret"), nullptr);
}

// Also once the rows of such a filter are cached.
TEST_F(PayloadViewTest, RefusesAFieldOfOtherRowsAsAnUnknownOne) {
  for (const char* const text : {R"(secret = "x")", "has(secret)", "NOT has(secret)",
                                 R"(year > 1 AND secret IN ["x", "y"])"}) {
    FindRows(text);
    const auto hidden = filters_->Prepare(text, *fields_, work_);
    std::string unknown_text = text;
    unknown_text.replace(unknown_text.find("secret"), 6, "nobody");
    const auto unknown = filters_->Prepare(unknown_text, *fields_, work_);
    std::string message(unknown.status().message());
    message.replace(message.find("nobody"), 6, "secret");
    EXPECT_EQ(std::string(hidden.status().message()), message);
    EXPECT_EQ(hidden.status().code(), unknown.status().code());
  }
  EXPECT_TRUE(filters_->Prepare("year > 1", *fields_, work_).ok());
  const auto grouped = filters_->FindGroups("secret", *fields_);
  EXPECT_THAT(std::string(grouped.status().message()), HasSubstr("films has no field \"secret\""));
  const auto by_price = filters_->FindGroups("price", *fields_);
  EXPECT_THAT(std::string(by_price.status().message()), HasSubstr(": tags, tenant, year"));
}

TEST_F(PayloadViewTest, SummarizesItsRowsAlone) {
  EXPECT_EQ(fields_->Find("price")->present.CountAllowed(*rows_.rows), 1U);
  EXPECT_EQ(fields_->Find("year")->present.CountAllowed(*rows_.rows), 2U);
  const FieldSummary tags = SummarizeField("tags");
  EXPECT_EQ(tags.distinct_values, 2U);
  ASSERT_EQ(tags.most_common.size(), 2U);
  EXPECT_EQ(std::get<std::string>(tags.most_common[0].value), "new");
  EXPECT_EQ(tags.most_common[0].rows, 2U);
  EXPECT_EQ(std::get<std::string>(tags.most_common[1].value), "Red");
  EXPECT_EQ(tags.most_common[1].rows, 1U);
  const FieldSummary year = SummarizeField("year");
  EXPECT_EQ(year.distinct_values, 1U);
  EXPECT_EQ(std::get<std::int64_t>(*year.greatest), 1990);
  EXPECT_EQ(std::get<double>(*SummarizeField("price").greatest), 1.5);
  EXPECT_EQ(std::get<std::string>(*SummarizeField("since").least), "2020-01-01T00:00:00Z");
  const FieldSummary sold = SummarizeField("sold");
  ASSERT_EQ(sold.most_common.size(), 1U);
  EXPECT_TRUE(std::get<bool>(sold.most_common[0].value));
}

}  // namespace
}  // namespace simile::filter
