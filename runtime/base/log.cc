#include "runtime/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob {
namespace {

std::atomic<LogLevel> threshold{LogLevel::kInfo};
std::atomic<LogFormat> line_format{LogFormat::kText};

const char* NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
    case LogLevel::kOff:
      return "OFF";
  }
  return "";
}

spdlog::logger& Sink() {
  // Never destroy the logger, because threads may log until the process exits.
  static auto* logger = [] {
    auto* made = new spdlog::logger("tfjob", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

// Escapes control characters, so that untrusted text can neither start a new line nor move a
// terminal's cursor.
std::string OneLine(std::string_view text) {
  std::string line;
  for (char c : text) {
    if (IsControl(c)) {
      constexpr char kDigits[] = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      line += c == '\n' ? std::string("\\n")
                        : StrCat("\\x", std::string(1, kDigits[byte >> 4]),
                                 std::string(1, kDigits[byte & 15]));
    } else {
      line += c;
    }
  }
  return line;
}

// Formats a value as in logfmt: in quotes if it is empty or contains a space, a control character,
// a quote, a backslash or '='; otherwise without quotes.
std::string Quoted(const std::string& value) {
  const bool bare = !value.empty() && value.find_first_of(" \"=\\") == std::string::npos &&
                    std::ranges::none_of(value, IsControl);
  return bare ? value : OneLine(PrintJson(Json(value)));
}

std::string TextLine(LogLevel level, const char* room, std::string_view message,
                     std::initializer_list<LogField> fields) {
  std::string line = FormatMicroTime(RealClock().Now());
  line.replace(line.size() - 4, 3, "");  // milliseconds are enough
  line += StrCat(" ", NameOf(level), " ", room, " ", OneLine(message));
  for (const LogField& field : fields) line += StrCat(" ", field.key, "=", Quoted(field.value));
  return line;
}

std::string JsonLine(LogLevel level, const char* room, std::string_view message,
                     std::initializer_list<LogField> fields) {
  nlohmann::ordered_json line;
  line["time"] = FormatMicroTime(RealClock().Now());
  line["level"] = NameOf(level);
  line["room"] = room;
  line["message"] = std::string(message);
  for (const LogField& field : fields) line[std::string(field.key)] = field.value;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

StatusOr<LogLevel> ParseLogLevel(std::string_view text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning" || text == "warn") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return InvalidArgument("log level '", text, "': expected debug, info, warning, error or off");
}

void ConfigureLogging(LogLevel level, LogFormat format) {
  threshold = level;
  line_format = format;
}

bool Logger::Enabled(LogLevel level) {
  return level >= threshold.load(std::memory_order_relaxed);
}

void Logger::Debug(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kDebug, message, fields);
}
void Logger::Info(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kInfo, message, fields);
}
void Logger::Warning(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kWarning, message, fields);
}
void Logger::Error(std::string_view message, std::initializer_list<LogField> fields) const {
  Write(LogLevel::kError, message, fields);
}

void Logger::Write(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) const {
  if (!Enabled(level)) return;
  const bool json = line_format.load(std::memory_order_relaxed) == LogFormat::kJson;
  Sink().info(json ? JsonLine(level, room_, message, fields)
                   : TextLine(level, room_, message, fields));
}

}  // namespace tfjob
