#include "runtime/base/thread.h"

#include <pthread.h>

#include <exception>
#include <utility>

namespace tfjob {

void SetThreadName(const std::string& name) {
  if (Scheduler::Installed() != nullptr) return;
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

Thread::Thread(std::string name, std::function<void()> body) {
  if (Scheduler* scheduler = Scheduler::Installed()) {
    simulated_ = scheduler->Start(std::move(body));
    return;
  }
  thread_ = std::thread([name = std::move(name), body = std::move(body)] {
    SetThreadName(name);
    body();
  });
}

Thread::Thread(Thread&& other) noexcept
    : thread_(std::move(other.thread_)), simulated_(std::exchange(other.simulated_, nullptr)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (simulated_ != nullptr) std::terminate();
  thread_ = std::move(other.thread_);
  simulated_ = std::exchange(other.simulated_, nullptr);
  return *this;
}

Thread::~Thread() {
  if (simulated_ != nullptr) std::terminate();
}

void Thread::Join() {
  if (simulated_ == nullptr) return thread_.join();
  Scheduler::Installed()->Join(std::exchange(simulated_, nullptr));
}

Thread::Id Thread::CurrentId() {
  if (Scheduler* scheduler = Scheduler::Installed()) return scheduler->Current();
  static thread_local char own;
  return &own;
}

}  // namespace tfjob
