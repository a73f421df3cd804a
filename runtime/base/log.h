// Writes structured logs with spdlog: a constant message and key=value fields, with one named
// logger per package.
//
//   const Logger kLog("control");
//   kLog.Info("job suspended", {{"job", key}, {"pods", 4}});
//   → 2026-11-21T09:30:00.123Z INFO control job suspended job=ns/a pods=4
//
// Writes to standard error. Thread-safe; lines are never interleaved.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

// Parses "debug", "info", "warning" (or "warn"), "error", "off".
StatusOr<LogLevel> ParseLogLevel(std::string_view text);

// Configures logging for the whole process. Call it before threads start. The defaults are level
// info and format text.
void ConfigureLogging(LogLevel level, LogFormat format);

// One key=value pair. Valid only during the call that it is passed to.
struct LogField {
  template <typename T>
  LogField(std::string_view key, const T& value) : key(key), value(Text(value)) {}

  std::string_view key;
  std::string value;

 private:
  static std::string Text(const Status& status) { return status.ToString(); }
  static std::string Text(bool flag) { return flag ? "true" : "false"; }
  template <typename T>
  static std::string Text(const T& value) {
    return StrCat(value);
  }
};

class Logger {
 public:
  explicit constexpr Logger(const char* room) : room_(room) {}

  void Debug(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Info(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Warning(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void Error(std::string_view message, std::initializer_list<LogField> fields = {}) const;

  // Returns whether lines of this level are written. If they are not, callers need not compute
  // expensive fields.
  static bool Enabled(LogLevel level);

 private:
  void Write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) const;

  const char* room_;
};

}  // namespace tfjob
