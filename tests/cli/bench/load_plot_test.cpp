#include "cli/bench/load_plot.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::cli::bench {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;
using testing::StartsWith;

std::size_t CountParts(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(LoadPlotTest, TicksOfALinearAxisCoverItFromZero) {
  EXPECT_THAT(LinearTicks(10), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(LinearTicks(41'200), ElementsAre(0, 5'000, 10'000, 15'000, 20'000, 25'000, 30'000,
                                               35'000, 40'000, 45'000));
  EXPECT_THAT(LinearTicks(0.003).back(), testing::Ge(0.003));
}

TEST(LoadPlotTest, TicksOfALogarithmicAxisEncloseTheRange) {
  EXPECT_THAT(LogarithmicTicks(0.3, 4), Pointwise(DoubleNear(1e-12), {0.2, 0.5, 1.0, 2.0, 5.0}));
  EXPECT_THAT(LogarithmicTicks(1, 1).size(), testing::Ge(2U));
  EXPECT_THAT(LogarithmicTicks(0.02, 900),
              Pointwise(DoubleNear(1e-9), {0.01, 0.1, 1.0, 10.0, 100.0, 1'000.0}));
}

TEST(LoadPlotTest, DrawsEverySeriesAndEscapesTexts) {
  const std::vector<PlotSeries> series = {{"p50", {{1'000, 0.5}, {5'000, 0.8}, {9'000, 3}}},
                                          {"p99", {{1'000, 1.5}, {5'000, 4}, {9'000, 90}}}};
  const std::string svg =
      LoadPlot({"films <& more>", "5,000 x 384", "queries a second", "latency, ms"}, series);
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("films &lt;&amp; more&gt;"));
  EXPECT_EQ(CountParts(svg, "<circle"), 6U);
  EXPECT_EQ(CountParts(svg, "stroke-width=\"2\""), 2U);
  EXPECT_THAT(svg, HasSubstr(">p99</text>"));
  EXPECT_THAT(svg, HasSubstr("p99: 90 ms at 9,000"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_EQ(CountParts(svg, "<svg"), CountParts(svg, "</svg>"));
}

TEST(LoadPlotTest, DrawsASinglePoint) {
  const std::string svg = LoadPlot({"t", "s", "x", "y"}, {{"p50", {{0, 1}}}});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(CountParts(svg, "<circle"), 1U);
}

}  // namespace
}  // namespace simile::cli::bench
