#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace simile::observe {

enum class LogFormat : std::uint8_t { kText, kJson };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// One named value of a log line. Borrows its text for the duration of the call.
struct LogField {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const std::string& text)
      : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, const char* text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, bool flag) : key(name), value(flag) {}
  LogField(std::string_view name, double number) : key(name), value(number) {}
  template <std::signed_integral T>
  LogField(std::string_view name, T number) : key(name), value(std::int64_t{number}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) LogField(std::string_view name, T number)
      : key(name), value(std::uint64_t{number}) {}

  std::string_view key;
  Value value;
};

// Format the part of a log line after time and level. Pure.

// `request failed request_id=4f1c rpc="Search Two"`: values with white space, quotes, '=' or
// control characters are quoted and escaped, so that a line stays one line and fields are distinct.
std::string FormatTextLine(std::string_view message, std::span<const LogField> fields);

// `"message":"request failed","request_id":"4f1c"`: the inside of a JSON object. Bytes that are not
// UTF-8 become U+FFFD; non-finite numbers become null.
std::string FormatJsonMembers(std::string_view message, std::span<const LogField> fields);

// Writes a log, one event on each line, as text or as one JSON object.
//
//   log.Warn("request failed", {{"request_id", id}, {"rpc", method}, {"duration_us", 812U}});
//
// Values may hold untrusted text: a line stays one line and valid UTF-8. A line of text to a
// terminal first erases what its last line holds, which may be a progress bar.
// Another thread writes to standard error (line_writer.h): a reader who stops reading costs lines
// and holds up nobody. Error() waits a moment for its line, because the process may end after it.
// One logger for a process, so that its lines keep their order. All methods may be called from any
// thread and never throw.
class Logger {
 public:
  struct Options {
    LogFormat format = LogFormat::kText;
    LogLevel level = LogLevel::kInfo;  // less severe events are dropped
    std::ostream* sink = nullptr;      // borrowed; nullptr: standard error
  };
  using Fields = std::initializer_list<LogField>;

  explicit Logger(const Options& options);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Debug(std::string_view message, Fields fields = {}) const noexcept {
    Write(LogLevel::kDebug, message, {fields.begin(), fields.size()});
  }
  void Info(std::string_view message, Fields fields = {}) const noexcept {
    Write(LogLevel::kInfo, message, {fields.begin(), fields.size()});
  }
  void Warn(std::string_view message, Fields fields = {}) const noexcept {
    Write(LogLevel::kWarning, message, {fields.begin(), fields.size()});
  }
  void Error(std::string_view message, Fields fields = {}) const noexcept {
    Write(LogLevel::kError, true, message, {fields.begin(), fields.size()});
  }
  // For fields that are chosen at run time. Never waits, because there may be a line for each call.
  void Write(LogLevel level, std::string_view message,
             std::span<const LogField> fields) const noexcept {
    Write(level, false, message, fields);
  }

  // Writes a line at level info, even when Options::level drops that level.
  void WriteAlways(std::string_view message, std::span<const LogField> fields) const noexcept;

  // Waits until every line is written, at most `wait` for a reader who does not read. Returns
  // whether all are written. For a process that ends by _exit; the destructor does the same.
  bool Flush(std::chrono::milliseconds wait = std::chrono::seconds(1)) const noexcept;
  // Lines that were lost since the start, because the reader did not read or there was no memory.
  std::uint64_t lines_dropped() const noexcept;

 private:
  void Write(LogLevel level, bool urgent, std::string_view message,
             std::span<const LogField> fields) const noexcept;
  // Writes a line of any level.
  void WriteLine(LogLevel level, bool urgent, std::string_view message,
                 std::span<const LogField> fields) const noexcept;

  class Impl;  // keeps spdlog's headers out of this one

  std::unique_ptr<Impl> impl_;
};

}  // namespace simile::observe
