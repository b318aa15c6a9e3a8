#include "observe/log_line.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <variant>

#include <fmt/format.h>

#include "base/utf8.h"

namespace simile::observe {
namespace {

// Appends text with JSON's escapes, without quotes.
void AppendEscaped(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::size_t bytes = base::Utf8SequenceLength(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (bytes == 0) {
      out += "\xEF\xBF\xBD";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += text[0];
    } else if (first == '\n') {
      out += "\\n";
    } else if (first < 0x20 || first == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", first);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
}

void AppendQuoted(std::string_view text, std::string& out) {
  out += '"';
  AppendEscaped(text, out);
  out += '"';
}

bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t bytes = base::Utf8SequenceLength(text);
    if (bytes == 0 || first <= ' ' || first == '"' || first == '=' || first == '\\' ||
        first == 0x7F) {
      return true;
    }
    text.remove_prefix(bytes);
  }
  return false;
}

struct AppendText {
  std::string& out;
  void operator()(std::string_view text) const {
    if (NeedsQuotes(text)) {
      AppendQuoted(text, out);
    } else {
      out += text;
    }
  }
  void operator()(bool flag) const { out += flag ? "true" : "false"; }
  void operator()(auto number) const { fmt::format_to(std::back_inserter(out), "{}", number); }
};

struct AppendJson {
  std::string& out;
  void operator()(std::string_view text) const { AppendQuoted(text, out); }
  void operator()(bool flag) const { out += flag ? "true" : "false"; }
  void operator()(double number) const {
    if (std::isfinite(number)) {
      fmt::format_to(std::back_inserter(out), "{}", number);
    } else {
      out += "null";
    }
  }
  void operator()(auto number) const { fmt::format_to(std::back_inserter(out), "{}", number); }
};

}  // namespace

std::string TextLine(std::string_view message, std::span<const LogField> fields) {
  std::string out;
  AppendEscaped(message, out);
  for (const LogField& field : fields) {
    out += ' ';
    out += field.key;
    out += '=';
    std::visit(AppendText{out}, field.value);
  }
  return out;
}

std::string JsonMembers(std::string_view message, std::span<const LogField> fields) {
  std::string out = "\"message\":";
  AppendQuoted(message, out);
  for (const LogField& field : fields) {
    out += ',';
    AppendQuoted(field.key, out);
    out += ':';
    std::visit(AppendJson{out}, field.value);
  }
  return out;
}

}  // namespace simile::observe
