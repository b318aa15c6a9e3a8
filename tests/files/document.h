#pragma once

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace simile {

// The text of a file of this repository, "docs/guide.md". Empty when there is no such file.
inline std::string TextOfSource(const std::string& path) {
  std::ifstream file(SIMILE_SOURCE_DIR "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The contents of the document's fenced blocks that are marked with this language, or with none.
inline std::vector<std::string> FencedBlocks(std::string_view document,
                                             std::string_view language = "") {
  constexpr std::string_view kFence = "```";
  std::vector<std::string> blocks;
  std::size_t at = document.find(kFence);
  while (at != std::string_view::npos) {
    const std::size_t begin = document.find('\n', at) + 1;
    const std::size_t end = document.find(kFence, begin);
    if (document.substr(at + kFence.size(), begin - 1 - at - kFence.size()) == language) {
      blocks.emplace_back(document.substr(begin, end - begin));
    }
    at = document.find(kFence, end + kFence.size());
  }
  return blocks;
}

}  // namespace simile
