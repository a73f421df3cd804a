// Prints the lines that are appended to the logs of all pods. Each line is prefixed with the pod's
// name or, for a container other than the main one ("tensorflow"), with "pod/container".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tfjob::local {

// Maps the path of each log to the number of bytes that earlier runs with the same state folder
// wrote. A run appends to the logs of earlier runs.
using LogSizes = std::map<std::string, int64_t>;

// Returns the sizes of the logs in `folder`, which contains <pod>/<container>.log; empty if the
// folder does not exist.
LogSizes SizesOfLogs(const std::string& folder);

// Returns the text of a log without its first bytes, which earlier runs wrote; "" if the log cannot
// be read.
std::string ReadLog(const std::string& path, const LogSizes& earlier);

class LogFollower {
 public:
  // `folder` contains <pod>/<container>.log, but need not exist yet. `print` receives whole lines
  // without line ends, except those that earlier runs wrote.
  LogFollower(std::string folder, const LogSizes& earlier,
              std::function<void(std::string_view)> print);

  // Prints the lines written since the last call and, if `last` is true, also an unterminated line.
  void Poll(bool last = false);

 private:
  struct Tail {
    int64_t offset = 0;
    std::string rest;  // an incomplete line
  };
  void Read(const std::string& path, const std::string& prefix, bool last);

  const std::string folder_;
  const std::function<void(std::string_view)> print_;
  std::map<std::string, Tail> tails_;
};

// Returns the last `count` lines of a log, without line ends. Ignores empty lines at its end.
std::vector<std::string> LastLines(std::string_view log, size_t count);

// Returns the last value of a metric, written `name=0.88`, `name: 0.88` or `name 0.88`, in those
// lines of a log that contain `word` ("" matches every line). Returns "" if there is no such value.
std::string LastMetric(std::string_view log, std::string_view metric, std::string_view word);

}  // namespace tfjob::local
