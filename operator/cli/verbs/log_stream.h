// Follows the log of one run of one container, over as many connections as necessary.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/log_printer.h"

namespace tfjob::cli {

class LogStream {
 public:
  // `prefix` is printed before each line. `ended` returns whether the container has ended or its
  // pod is gone. After it has returned true, the log is read to its end once more, and the stream
  // ends. `stop` ends the stream early. `logs`, `printer` and `stop` must outlive the stream.
  LogStream(LogReader& logs, LogRequest request, std::string prefix, LogPrinter& printer,
            std::function<bool()> ended, const StopSource& stop);
  ~LogStream() { thread_.join(); }

  // Returns whether the stream has ended. After that, nothing more is printed.
  bool done() const { return done_; }

 private:
  void Run();
  Status ReadOnce();
  // Prints a line, which begins with its timestamp. Skips lines that were already printed before
  // the connection broke.
  bool PrintLine(std::string_view line);

  LogReader& logs_;
  LogRequest request_;
  const bool timestamps_;
  const std::string prefix_;
  LogPrinter& printer_;
  const std::function<bool()> ended_;
  const StopSource& stop_;
  std::string last_;    // the timestamp of the newest line
  bool again_ = false;  // true once a connection has returned a line
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace tfjob::cli
