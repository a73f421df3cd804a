#include "operator/service/health.h"

namespace tfjob::service {
namespace {

constexpr Duration kStuck = 15min;

}  // namespace

Status CheckWorkers(const control::QueueNumbers& queue) {
  if (queue.longest_call < kStuck) return OkStatus();
  return DeadlineExceeded("a worker has completed no call for ",
                          FormatDuration(queue.longest_call));
}

}  // namespace tfjob::service
