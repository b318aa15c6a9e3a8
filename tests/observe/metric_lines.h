#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace simile::observe {

// The lines of a scrape: "simile_rows{collection=\"films\"}" and its number.
using MetricLines = std::map<std::string, double>;

inline MetricLines ParseMetricLines(const std::string& scraped_text) {
  MetricLines lines;
  std::istringstream text(scraped_text);
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.rfind(' ');
    const std::string number = line.substr(space + 1);
    lines[line.substr(0, space)] = number == "+Inf" ? std::numeric_limits<double>::infinity()
                                                    : std::strtod(number.c_str(), nullptr);
  }
  return lines;
}

using SortedLabels = std::map<std::string, std::string>;

//   le  the bound of a histogram's bucket, which comes last; empty for none
inline std::string LineName(const std::string& name, const SortedLabels& labels,
                            const std::string& le = {}) {
  std::string inside;
  for (const auto& [label, value] : labels) {
    inside += fmt::format("{}{}=\"{}\"", inside.empty() ? "" : ",", label, value);
  }
  if (!le.empty()) inside += fmt::format("{}le=\"{}\"", inside.empty() ? "" : ",", le);
  return inside.empty() ? name : fmt::format("{}{{{}}}", name, inside);
}

// Adds the lines of a histogram.
//   buckets  each has upper_bound and cumulative_count
template <class Buckets>
void AddHistogramLines(const std::string& name, const SortedLabels& labels, std::uint64_t count,
                       double sum, const Buckets& buckets, MetricLines& lines) {
  lines[LineName(name + "_count", labels)] = static_cast<double>(count);
  lines[LineName(name + "_sum", labels)] = sum;
  for (const auto& [bound, cumulative_count] : buckets) {
    const std::string le = std::isinf(bound) ? "+Inf" : fmt::format("{:.16g}", bound);
    lines[LineName(name + "_bucket", labels, le)] = static_cast<double>(cumulative_count);
  }
}

}  // namespace simile::observe
