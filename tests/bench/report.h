// Prints one JSON line per benchmark case to standard output:
//
//   {"case":"mlp", …the case's own figures…, "wall_s":1.23, "cpu_s":1.2, "peak_rss_mb":210.5,
//    "load1":0.4}
//
// Times cover only the measured part. The CPU time includes all threads of the process, and all
// children that have exited.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tfjob::bench {

// Contains a wall-clock time and a CPU time, in seconds.
struct Times {
  double wall_s = 0;
  double cpu_s = 0;
};

// Measures the time since construction.
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

  // Adds a field. Fields are printed in the order of the calls. Floating-point numbers are printed
  // with six significant digits.
  Report& Add(std::string_view name, std::string_view value);
  Report& Add(std::string_view name, const char* value) {
    return Add(name, std::string_view(value));
  }
  Report& Add(std::string_view name, double value);
  Report& Add(std::string_view name, std::integral auto value) {
    return AddRaw(name, std::to_string(value));
  }

  // Prints the line, after adding the times of the measured part, the peak resident memory of the
  // process and the load of the machine.
  void Print(const Times& times);
  // Like Print(times), but for a case in which other processes do the work. `peak_rss_mb` is the
  // sum of the peaks of these processes.
  void Print(const Times& times, double peak_rss_mb);

 private:
  Report& AddRaw(std::string_view name, const std::string& json);

  std::string line_;
};

}  // namespace tfjob::bench
