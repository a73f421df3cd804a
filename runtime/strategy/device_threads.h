// Runs a function concurrently for all devices of a task, on one thread per device.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"

namespace tfjob::strategy {

// Owned by one thread, which also does the work of device 0. Every other device has its own thread,
// which sleeps between runs.
class DeviceThreads {
 public:
  explicit DeviceThreads(int devices);
  ~DeviceThreads();
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

  // Calls work(device) on the thread of each device, and returns once all calls have returned.
  // Allocates no memory.
  void Run(absl::FunctionRef<void(int)> work);

 private:
  void Serve(int device);

  Mutex mutex_;
  CondVar begin_, end_;
  const absl::FunctionRef<void(int)>* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t run_ ABSL_GUARDED_BY(mutex_) = 0;  // ordinal of the run in progress
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that have not finished this run
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;  // one per device, starting with device 1
};

}  // namespace tfjob::strategy
