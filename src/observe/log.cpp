#include "observe/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <ostream>
#include <variant>

#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>

#include "base/utf8.h"
#include "observe/line_writer.h"

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

spdlog::level::level_enum ToSpdlogLevel(LogLevel level) {
  constexpr std::array kLevels = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                  spdlog::level::err};
  static_assert(kLevels.size() == static_cast<std::size_t>(LogLevel::kError) + 1);
  return kLevels[static_cast<std::size_t>(level)];
}

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
// Erases a progress bar that the terminal's last line may hold.
constexpr const char* kTerminalPattern = "\r\x1b[K%Y-%m-%dT%H:%M:%S.%eZ %l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";

const char* ChoosePattern(const Logger::Options& options) {
  if (options.format == LogFormat::kJson) return kJsonPattern;
  return options.sink == nullptr && isatty(STDERR_FILENO) == 1 ? kTerminalPattern : kTextPattern;
}

// Makes whole lines: time, level, message and fields. Not safe to use from several threads.
class LineFormatter {
 public:
  explicit LineFormatter(const Logger::Options& options)
      : format_(options.format),
        formatter_(ChoosePattern(options), spdlog::pattern_time_type::utc) {}

  std::string Line(LogLevel level, std::string_view message, std::span<const LogField> fields) {
    const std::string text = format_ == LogFormat::kJson ? FormatJsonMembers(message, fields)
                                                         : FormatTextLine(message, fields);
    spdlog::memory_buf_t line;
    formatter_.format({"", ToSpdlogLevel(level), spdlog::string_view_t(text)}, line);
    return {line.data(), line.size()};
  }

 private:
  const LogFormat format_;
  spdlog::pattern_formatter formatter_;
};

LineWriter::Options ToStandardError(const Logger::Options& options) {
  LineWriter::Options writer;
  writer.fd = STDERR_FILENO;
  // It has a formatter of its own, because the writer's thread calls it.
  writer.dropped_line = [formatter =
                             std::make_shared<LineFormatter>(options)](std::uint64_t count) {
    const LogField lines("lines", count);
    return formatter->Line(LogLevel::kWarning,
                           "lines of this log were dropped: standard error did not take them",
                           {&lines, 1});
  };
  return writer;
}

}  // namespace

std::string FormatTextLine(std::string_view message, std::span<const LogField> fields) {
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

std::string FormatJsonMembers(std::string_view message, std::span<const LogField> fields) {
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

class Logger::Impl {
 public:
  explicit Impl(const Options& options)
      : level_(options.level), sink_(options.sink), formatter_(options) {
    if (sink_ == nullptr) writer_.emplace(ToStandardError(options));
  }

  bool Takes(LogLevel level) const { return level >= level_; }

  //   urgent  waits a moment for the line to be written
  void Write(LogLevel level, bool urgent, std::string_view message,
             std::span<const LogField> fields) {
    std::unique_lock lock(mutex_);
    const std::string line = formatter_.Line(level, message, fields);
    if (sink_ != nullptr) {
      *sink_ << line << std::flush;
      return;
    }
    lock.unlock();
    urgent ? writer_->AddUrgent(line) : writer_->Add(line);
  }
  void CountLost() {
    if (writer_) writer_->CountLost();
  }

  bool Flush(std::chrono::milliseconds wait) { return !writer_ || writer_->Flush(wait); }
  std::uint64_t lines_dropped() const { return writer_ ? writer_->lines_dropped() : 0; }

 private:
  const LogLevel level_;
  std::ostream* const sink_;
  std::mutex mutex_;  // guards what follows and the sink
  LineFormatter formatter_;
  std::optional<LineWriter> writer_;
};

Logger::Logger(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Logger::~Logger() = default;

void Logger::Write(LogLevel level, bool urgent, std::string_view message,
                   std::span<const LogField> fields) const noexcept {
  if (impl_->Takes(level)) WriteLine(level, urgent, message, fields);
}

void Logger::WriteAlways(std::string_view message,
                         std::span<const LogField> fields) const noexcept {
  WriteLine(LogLevel::kInfo, false, message, fields);
}

void Logger::WriteLine(LogLevel level, bool urgent, std::string_view message,
                       std::span<const LogField> fields) const noexcept {
  try {
    impl_->Write(level, urgent, message, fields);
  } catch (const std::exception&) {
    impl_->CountLost();  // out of memory while formatting
  }
}

bool Logger::Flush(std::chrono::milliseconds wait) const noexcept { return impl_->Flush(wait); }

std::uint64_t Logger::lines_dropped() const noexcept { return impl_->lines_dropped(); }

}  // namespace simile::observe
