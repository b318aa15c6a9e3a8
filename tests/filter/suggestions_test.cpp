#include "filter/suggestions.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unasked_work.h"
#include "filter/parser.h"
#include "filter/payload_rows.h"

namespace simile::filter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NearValuesTest : public testing::Test {
 protected:
  std::vector<std::string> Near(std::string_view filter) {
    const absl::StatusOr<Expression> parsed = Parse(filter);
    EXPECT_TRUE(parsed.ok()) << filter << parsed.status();
    base::LongWork work = tests::UnaskedWork();
    return NearValues(*parsed, index_, work).value();
  }

  const data::PayloadTable table_ = MakeTable(
      {{{"genres", Texts({"Western", "Drama"})}, {"country", Text("Germany")}},
       {{"genres", Texts({"Science Fiction"})}, {"country", Text("France")}, {"year", Whole(1)}},
       {{"genres", Texts({"Drama"})}, {"country", Text("Peru")}, {"year", Whole(2)}}});
  const PayloadIndex index_ = PayloadIndex::Build(table_);
};

TEST_F(NearValuesTest, OffersTheNearestKeywordOfAField) {
  EXPECT_THAT(Near("genres:\"Westen\""),
              ElementsAre("no row has genres \"Westen\"; did you mean \"Western\"?"));
  EXPECT_THAT(Near("country = \"germany\""),
              ElementsAre("no row has country \"germany\"; did you mean \"Germany\"?"));
  EXPECT_THAT(Near("year > 3 AND (country IN [\"Frence\", \"Peru\"] OR genres:\"Dramma\")"),
              ElementsAre("no row has country \"Frence\"; did you mean \"France\"?",
                          "no row has genres \"Dramma\"; did you mean \"Drama\"?"));
}

TEST_F(NearValuesTest, LeavesOutWhatARowHasAndWhatIsNotNear) {
  for (const char* const filter :
       {"genres:\"western\"", "country = \"Germany\" AND year > 3", "genres:\"Qqqqqq\"",
        "NOT genres:\"Westen\"", "country != \"Frence\"", "has(country)", "year = 7"}) {
    EXPECT_THAT(Near(filter), IsEmpty()) << filter;
  }
}

}  // namespace
}  // namespace simile::filter
