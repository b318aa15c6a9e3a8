#pragma once

#include <string>
#include <vector>

namespace simile::cli::bench {

// A point of a latency-against-load curve.
struct PlotPoint {
  double load = 0;        // queries a second
  double latency_ms = 0;  // above 0
};
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // in the order to connect
};

struct PlotTexts {
  std::string title;
  std::string subtitle;
  std::string load_axis;
  std::string latency_axis;
};

// The plot as the text of an SVG file. The load axis is linear from 0, the latency axis
// logarithmic. The first six series have distinct colours. REQUIRES: at least one point in total.
std::string LoadPlot(const PlotTexts& texts, const std::vector<PlotSeries>& series);

// The numbers on a linear axis from 0 to at least `greatest`. Five to ten numbers, spaced by 1, 2
// or 5 times a power of ten. REQUIRES: greatest > 0.
std::vector<double> LinearTicks(double greatest);
// The numbers on a logarithmic axis that encloses the range: 1, 2 and 5 times powers of ten. Only
// powers of ten if the range spans more than three. REQUIRES: 0 < least <= greatest.
std::vector<double> LogarithmicTicks(double least, double greatest);

}  // namespace simile::cli::bench
