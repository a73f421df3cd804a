// Follows the log of one run of one container, over as many connections as it takes.
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
  // `prefix` stands before each line. `ended` says whether the container has come to its end (or
  // its pod has gone): then the next end of the log is the last. The arguments outlive the stream;
  // `stop` ends it.
  LogStream(LogReader& logs, LogRequest request, std::string prefix, LogPrinter& printer,
            std::function<bool()> ended, const StopSource& stop);
  ~LogStream() { thread_.join(); }

  // Nothing more will come.
  bool done() const { return done_; }

 private:
  void Run();
  Status ReadOnce();
  // One line with its time stamp before it; lines that were printed before the connection broke are
  // left out.
  bool Take(std::string_view line);

  LogReader& logs_;
  LogRequest request_;
  const bool timestamps_;
  const std::string prefix_;
  LogPrinter& printer_;
  const std::function<bool()> ended_;
  const StopSource& stop_;
  std::string last_;    // the time stamp of the newest line
  bool again_ = false;  // this is not the first connection
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace tfjob::cli
