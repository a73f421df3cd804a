#include "operator/service/health.h"

#include <gtest/gtest.h>

namespace tfjob::service {
namespace {

TEST(CheckWorkers, MeasuresCallsAndNotReconciles) {
  control::QueueNumbers queue{.working = 4, .unfinished = 60min, .longest = 32min};
  queue.longest_call = 15min - 1us;
  EXPECT_EQ(CheckWorkers(queue), OkStatus());
  queue.longest_call = 15min;
  EXPECT_EQ(CheckWorkers(queue), DeadlineExceeded("a worker has completed no call for 15m"));
}

}  // namespace
}  // namespace tfjob::service
