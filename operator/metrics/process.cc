#include "operator/metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "runtime/base/file.h"

namespace tfjob::metrics {
namespace {

// Returns the boot time of the machine in seconds since the epoch, from the line "btime N"
// of /proc/stat.
double BootTime() {
  std::istringstream lines(ReadFile("/proc/stat").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return 0;
}

}  // namespace

ProcessNumbers ReadProcess() {
  ProcessNumbers numbers;
  const std::string stat = ReadFile("/proc/self/stat").value_or("");
  // The program's name is in parentheses and may contain any character. The fields after the name
  // start with field 3, the state; all others are numbers.
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 2)));
  std::string state;
  fields >> state;
  double values[25] = {};  // fields 4 to 24, indexed by field number
  for (int field = 4; field <= 24 && fields >> values[field]; ++field) {
  }
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  numbers.cpu_seconds = (values[14] + values[15]) / ticks;
  numbers.threads = values[20];
  numbers.start_time_seconds = BootTime() + values[22] / ticks;
  numbers.virtual_bytes = values[23];
  numbers.resident_bytes = values[24] * static_cast<double>(sysconf(_SC_PAGESIZE));
  const auto files = ListDirectory("/proc/self/fd");
  // Do not count the descriptor of the listing itself.
  if (files.ok()) numbers.open_files = static_cast<double>(files->size()) - 1;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    numbers.max_files = static_cast<double>(limit.rlim_cur);
  return numbers;
}

}  // namespace tfjob::metrics
