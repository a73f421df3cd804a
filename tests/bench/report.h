// One JSON line a benchmark case, on standard output:
//   {"case":"mlp", …the case's own figures…, "wall_s":1.23, "cpu_s":1.2, "peak_rss_mb":210.5, "load1":0.4}
// Times are of the measured part only; CPU time is the process's, all threads, with children that ended.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tfjob::bench {

// Seconds of wall clock and of CPU.
struct Times {
  double wall_s = 0;
  double cpu_s = 0;
};

// Runs from construction.
class Stopwatch {
 public:
  Stopwatch();
  Times Elapsed() const;

 private:
  Times start_;
};

class Report {
 public:
  explicit Report(std::string_view name);

  // A field; numbers keep six significant digits. In the order of the calls.
  Report& Add(std::string_view name, std::string_view value);
  Report& Add(std::string_view name, const char* value) {
    return Add(name, std::string_view(value));
  }
  Report& Add(std::string_view name, double value);
  Report& Add(std::string_view name, std::integral auto value) {
    return AddRaw(name, std::to_string(value));
  }

  // The measured part's times, the process's peak resident memory and the machine's load; then the line.
  void Print(const Times& times);
  // The same for a case whose work other processes do: the sum of their peaks.
  void Print(const Times& times, double peak_rss_mb);

 private:
  Report& AddRaw(std::string_view name, const std::string& json);

  std::string line_;
};

}  // namespace tfjob::bench
