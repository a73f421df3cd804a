// Reads what the kernel reports about this process.
#pragma once

namespace tfjob::metrics {

struct ProcessNumbers {
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // since 1970
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double threads = 0;
  double open_files = 0;
  double max_files = 0;
};

// Reads the numbers. A value that cannot be read is 0.
ProcessNumbers ReadProcess();

}  // namespace tfjob::metrics
