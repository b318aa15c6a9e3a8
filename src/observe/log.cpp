#include "observe/log.h"

#include <unistd.h>

#include <array>
#include <exception>
#include <ostream>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "observe/log_line.h"

namespace simile::observe {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  constexpr std::array kLevels = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                  spdlog::level::err};
  static_assert(kLevels.size() == static_cast<std::size_t>(LogLevel::kError) + 1);
  return kLevels[static_cast<std::size_t>(level)];
}

spdlog::sink_ptr MakeSink(std::ostream* sink) {
  if (sink != nullptr) return std::make_shared<spdlog::sinks::ostream_sink_mt>(*sink, true);
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
// Erases a progress bar that the terminal's last line may hold.
constexpr const char* kTerminalPattern = "\r\x1b[K%Y-%m-%dT%H:%M:%S.%eZ %l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";

const char* PatternFor(const Logger::Options& options) {
  if (options.format == LogFormat::kJson) return kJsonPattern;
  return options.sink == nullptr && isatty(STDERR_FILENO) == 1 ? kTerminalPattern : kTextPattern;
}

}  // namespace

class Logger::Impl {
 public:
  explicit Impl(const Options& options)
      : format(options.format), logger("simile", MakeSink(options.sink)) {
    logger.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        PatternFor(options), spdlog::pattern_time_type::utc));
    logger.set_level(SpdlogLevel(options.level));
    logger.flush_on(spdlog::level::debug);  // so that a crash loses no line
  }

  LogFormat format;
  spdlog::logger logger;
};

Logger::Logger(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Logger::~Logger() = default;

void Logger::Write(LogLevel level, std::string_view message,
                   std::span<const LogField> fields) const noexcept {
  const spdlog::level::level_enum spdlog_level = SpdlogLevel(level);
  if (!impl_->logger.should_log(spdlog_level)) return;
  try {
    const std::string line = impl_->format == LogFormat::kJson ? JsonMembers(message, fields)
                                                               : TextLine(message, fields);
    impl_->logger.log(spdlog_level, spdlog::string_view_t(line));
  } catch (const std::exception&) {
    // Out of memory while formatting: the line is lost.
  }
}

}  // namespace simile::observe
