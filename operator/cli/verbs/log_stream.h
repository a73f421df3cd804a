// Follows the log of one run of one container, over as many connections as necessary.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "operator/cli/verbs/cluster.h"
#include "operator/cli/verbs/log_printer.h"

namespace tfjob::cli {

// The state of the container run whose log is followed.
enum class RunState {
  kRunning,
  kEnded,     // the container has not been started again, so its log is still that of this run
  kReplaced,  // the next run has started, so this run's log is the previous one
  kGone,      // the server no longer keeps the log: the pod is gone, or there were several new runs
};

class LogStream {
 public:
  // `prefix` is printed before each line. `state` returns the state of the run, which may be
  // slightly out of date. Once the run has ended, the stream prints the rest of the log and then
  // ends. If a stop is requested through `stop`, the stream ends early. `logs`, `printer` and
  // `stop` must outlive the stream.
  LogStream(LogReader& logs, LogRequest request, std::string prefix, LogPrinter& printer,
            std::function<RunState()> state, const StopSource& stop);
  ~LogStream() { thread_.join(); }

  // Returns whether the stream has ended, that is, will print no more lines.
  bool done() const { return done_; }

 private:
  void Run();
  Status ReadOnce();
  // Waits before the next connection. Returns false if a stop was requested.
  bool Rest(const Status& last);
  // Prints a line, which begins with its timestamp. Skips lines that were already printed before
  // the connection broke.
  bool PrintLine(std::string_view line);

  LogReader& logs_;
  LogRequest request_;
  const bool timestamps_;
  const std::string prefix_;
  LogPrinter& printer_;
  const std::function<RunState()> state_;
  const StopSource& stop_;
  std::string last_;        // the timestamp of the newest line
  std::string seen_;        // the timestamp of the newest line of the earlier connections
  std::string unfinished_;  // the beginning of a line whose end has not arrived
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace tfjob::cli
