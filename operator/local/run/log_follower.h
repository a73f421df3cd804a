// Prints what is appended to the logs of all pods, line by line, each with its pod's name before
// it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tfjob::local {

class LogFollower {
 public:
  // `folder` holds <pod>/<container>.log; it need not exist yet. `print` gets whole lines without
  // their end.
  LogFollower(std::string folder, std::function<void(std::string_view)> print);

  // Prints what has come since the last call; `last` also a line that has no end yet.
  void Poll(bool last = false);

 private:
  struct Tail {
    int64_t offset = 0;
    std::string rest;  // the beginning of a line
  };
  void Read(const std::string& path, const std::string& prefix, bool last);

  const std::string folder_;
  const std::function<void(std::string_view)> print_;
  std::map<std::string, Tail> tails_;
};

// The last `count` lines of a log, without line ends; empty lines at its end do not count.
std::vector<std::string> LastLines(std::string_view log, size_t count);

// The last value that a log gives for a metric, written `name=0.88`, `name: 0.88` or `name 0.88`,
// in lines that contain `word` ("" for every line). "" when there is none.
std::string LastMetric(std::string_view log, std::string_view metric, std::string_view word);

}  // namespace tfjob::local
