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

// A plot as an SVG file's text: load from 0 on a linear axis, latency on a logarithmic one. The
// first six series have colours of their own.
// REQUIRES: at least one point in all.
std::string LoadPlot(const PlotTexts& texts, const std::vector<PlotSeries>& series);

// Numbers for a linear axis from 0 that covers `greatest`: 1, 2 or 5 times a power of ten apart,
// five to ten of them. REQUIRES: greatest > 0.
std::vector<double> LinearTicks(double greatest);
// 1, 2 and 5 times powers of ten that enclose the range; only powers of ten when it spans more than
// three of them. REQUIRES: 0 < least <= greatest.
std::vector<double> LogarithmicTicks(double least, double greatest);

}  // namespace simile::cli::bench
