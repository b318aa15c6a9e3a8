#include "cli/bench/load_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::cli::bench {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 500;
constexpr double kLeft = 78;
constexpr double kRightMargin = 112;  // holds the names of the series
constexpr double kTop = 66;
constexpr double kBottom = 58;

// Distinguishable with the common colour blindnesses (Okabe and Ito, 2008), darkest first.
constexpr std::array<std::string_view, 6> kColours = {"#0072b2", "#e69f00", "#d55e00",
                                                      "#009e73", "#cc79a7", "#56b4e9"};

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// Converts values to coordinates in the picture.
struct Axes {
  double load_max = 1;
  double latency_min = 1;
  double latency_max = 10;

  double X(double load) const { return kLeft + load / load_max * (kWidth - kLeft - kRightMargin); }
  double Y(double latency) const {
    const double share = std::log(latency / latency_min) / std::log(latency_max / latency_min);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
};

std::string LoadTickText(double load) {
  return load == std::floor(load) ? base::Grouped(static_cast<std::uint64_t>(load))
                                  : fmt::format("{:g}", load);
}

std::string Grid(const Axes& axes, const std::vector<double>& loads,
                 const std::vector<double>& latencies, const PlotTexts& texts) {
  const double right = kWidth - kRightMargin;
  const double bottom = kHeight - kBottom;
  std::string svg;
  for (const double load : loads) {
    const double x = axes.X(load);
    svg += fmt::format(
        R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="#e4e4e4"/>)"
        R"(<text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4}</text>)"
        "\n",
        x, kTop, bottom, bottom + 18, LoadTickText(load));
  }
  for (const double latency : latencies) {
    const double y = axes.Y(latency);
    svg += fmt::format(
        R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{2:.1f}" y2="{1:.1f}" stroke="#e4e4e4"/>)"
        R"(<text x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5:g}</text>)"
        "\n",
        kLeft, y, right, kLeft - 8, y + 4, latency);
  }
  svg += fmt::format(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}" fill="none" stroke="#555"/>)"
                     "\n",
                     kLeft, kTop, bottom, right);
  svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)"
                     "\n",
                     (kLeft + right) / 2, kHeight - 16, Escaped(texts.load_axis));
  svg += fmt::format(
      R"svg(<text transform="translate(20 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg"
      "\n",
      (kTop + bottom) / 2, Escaped(texts.latency_axis));
  return svg;
}

std::string Curve(const Axes& axes, const PlotSeries& series, std::string_view colour) {
  std::string path;
  std::string dots;
  for (const PlotPoint& point : series.points) {
    const double x = axes.X(point.load);
    const double y = axes.Y(point.latency_ms);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    dots += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"><title>{}: {:.4g} ms at {}</title></circle>)"
        "\n",
        x, y, colour, Escaped(series.name), point.latency_ms, LoadTickText(std::round(point.load)));
  }
  return fmt::format(R"(<path d="{}" fill="none" stroke="{}" stroke-width="2"/>)"
                     "\n{}",
                     path, colour, dots);
}

// The names of the series, beside the last points of their curves. Moves names apart that would
// overlap.
std::string Names(const Axes& axes, const std::vector<PlotSeries>& series) {
  constexpr double kLineHeight = 16;
  struct Name {
    std::size_t index;
    double y;
  };
  std::vector<Name> names;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!series[i].points.empty()) names.push_back({i, axes.Y(series[i].points.back().latency_ms)});
  }
  std::ranges::sort(names, {}, &Name::y);
  for (std::size_t i = 1; i < names.size(); ++i) {
    names[i].y = std::max(names[i].y, names[i - 1].y + kLineHeight);
  }
  std::string svg;
  for (const auto& [index, y] : names) {
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" fill="{}" font-weight="bold">{}</text>)"
                       "\n",
                       kWidth - kRightMargin + 10, y + 4, kColours[index % kColours.size()],
                       Escaped(series[index].name));
  }
  return svg;
}

}  // namespace

std::vector<double> LinearTicks(double greatest) {
  const double power = std::pow(10, std::floor(std::log10(greatest)));
  double step = power;
  for (const double factor : {0.1, 0.2, 0.5, 1.0}) {
    step = factor * power;
    if (greatest / step <= 10) break;
  }
  std::vector<double> ticks;
  for (int i = 0; ticks.empty() || ticks.back() < greatest; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> LogarithmicTicks(double least, double greatest) {
  const bool only_powers = std::log10(greatest / least) > 3;
  std::vector<double> candidates;
  for (int power = static_cast<int>(std::floor(std::log10(least)));
       power <= static_cast<int>(std::floor(std::log10(greatest))) + 1; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor == 1.0 || !only_powers) candidates.push_back(factor * std::pow(10, power));
    }
  }
  // The nearest candidates outside the range enclose it.
  std::size_t first = 0;
  while (first + 1 < candidates.size() && candidates[first + 1] <= least) ++first;
  std::size_t last = first + 1;
  while (last + 1 < candidates.size() && candidates[last] < greatest) ++last;
  return {candidates.begin() + static_cast<std::ptrdiff_t>(first),
          candidates.begin() + static_cast<std::ptrdiff_t>(last) + 1};
}

std::string LoadPlot(const PlotTexts& texts, const std::vector<PlotSeries>& series) {
  double load_max = 0;
  double least = std::numeric_limits<double>::infinity();
  double greatest = 0;
  for (const PlotSeries& each : series) {
    for (const PlotPoint& point : each.points) {
      load_max = std::max(load_max, point.load);
      least = std::min(least, point.latency_ms);
      greatest = std::max(greatest, point.latency_ms);
    }
  }
  const std::vector<double> loads = LinearTicks(load_max > 0 ? load_max : 1);
  const std::vector<double> latencies = LogarithmicTicks(least, greatest);
  const Axes axes{loads.back(), latencies.front(), latencies.back()};
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
      R"(font-family="sans-serif" font-size="13" fill="#333">)"
      "\n"
      R"(<rect width="100%" height="100%" fill="white"/>)"
      "\n"
      R"(<text x="{2}" y="28" font-size="17" font-weight="bold">{3}</text>)"
      "\n"
      R"(<text x="{2}" y="49" fill="#666">{4}</text>)"
      "\n",
      kWidth, kHeight, kLeft, Escaped(texts.title), Escaped(texts.subtitle));
  svg += Grid(axes, loads, latencies, texts);
  for (std::size_t i = 0; i < series.size(); ++i) {
    svg += Curve(axes, series[i], kColours[i % kColours.size()]);
  }
  return svg + Names(axes, series) + "</svg>\n";
}

}  // namespace simile::cli::bench
