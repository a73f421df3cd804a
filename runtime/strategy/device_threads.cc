#include "runtime/strategy/device_threads.h"

#include <string>

#include "runtime/base/status.h"

namespace tfjob::strategy {

DeviceThreads::DeviceThreads(int devices) {
  for (int device = 1; device < devices; ++device)
    threads_.emplace_back(StrCat("device-", device), [this, device] { Serve(device); });
}

DeviceThreads::~DeviceThreads() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    begin_.NotifyAll();
  }
  for (Thread& thread : threads_) thread.Join();
}

void DeviceThreads::Run(absl::FunctionRef<void(int)> work) {
  {
    MutexLock lock(mutex_);
    work_ = &work;
    running_ = static_cast<int>(threads_.size());
    ++run_;
    begin_.NotifyAll();
  }
  work(0);
  MutexLock lock(mutex_);
  while (running_ > 0) end_.Wait(mutex_);
}

void DeviceThreads::Serve(int device) {
  MutexLock lock(mutex_);
  for (int64_t last = 0; true; last = run_) {
    while (!stopping_ && run_ == last) begin_.Wait(mutex_);
    if (stopping_) return;
    const absl::FunctionRef<void(int)> work = *work_;
    mutex_.Unlock();
    work(device);
    mutex_.Lock();
    if (--running_ == 0) end_.NotifyOne();
  }
}

}  // namespace tfjob::strategy
