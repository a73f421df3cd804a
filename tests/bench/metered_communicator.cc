#include "tests/bench/metered_communicator.h"

#include <chrono>
#include <thread>
#include <utility>

#include "tests/bench/ranks.h"

namespace tfjob::bench {

Measurements MeteredCommunicator::TakeMeasurements() {
  return std::exchange(measurements_, {});
}

Status MeteredCommunicator::AllReduce(std::span<std::byte> values, DType dtype,
                                      collectives::Reduction reduction) {
  if (!exchanges_) return OkStatus();
  const double start = Now(), cpu = ThreadCpuSeconds();
  if (seconds_per_byte_ > 0) {
    const double wait = seconds_per_byte_ * static_cast<double>(values.size());
    std::this_thread::sleep_for(std::chrono::duration<double>(wait));
  }
  const Status status = inner_.AllReduce(values, dtype, reduction);
  measurements_.seconds += Now() - start;
  measurements_.cpu_seconds += ThreadCpuSeconds() - cpu;
  measurements_.bytes += static_cast<int64_t>(values.size());
  return status;
}

}  // namespace tfjob::bench
