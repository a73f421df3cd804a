// Defines Scheduler, which replaces the operating system's threads, locks, waits and clocks with
// simulated ones, so that a test can run whole tasks deterministically (tests/simulation/machine).
// In programs, no scheduler is installed, and Mutex, CondVar, Thread and RealClock use the
// operating system.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>

namespace tfjob {

class CondVar;
class Mutex;

using SteadyTime = std::chrono::steady_clock::time_point;

// If a scheduler is installed, Mutex, CondVar, Thread and RealClock call it on the simulated
// threads.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Starts a thread, and returns a handle. Call Join exactly once with each handle.
  virtual void* Start(std::function<void()> body) = 0;
  virtual void Join(void* thread) = 0;
  // Identifies the calling thread.
  virtual const void* Current() = 0;

  virtual void Lock(const Mutex& mutex) = 0;
  virtual void Unlock(const Mutex& mutex) = 0;
  // Unlocks the mutex, waits for a notification or for the deadline, and locks the mutex again.
  // Returns false if the deadline has passed.
  virtual bool Wait(const CondVar& condition, const Mutex& mutex, SteadyTime deadline) = 0;
  virtual void NotifyOne(const CondVar& condition) = 0;
  virtual void NotifyAll(const CondVar& condition) = 0;

  virtual SteadyTime Now() = 0;
  // Returns the wall-clock time of the calling thread's simulated machine.
  virtual std::chrono::system_clock::time_point WallNow() = 0;

  // Returns the installed scheduler, or null if the operating system is used.
  static Scheduler* Installed() { return installed_.load(std::memory_order_relaxed); }
  // Call only while no other thread of the process uses a mutex.
  static void Install(Scheduler* scheduler) { installed_ = scheduler; }

 private:
  inline static std::atomic<Scheduler*> installed_ = nullptr;
};

// Returns the time of the steady clock, by which all waits are measured.
inline SteadyTime SteadyNow() {
  Scheduler* scheduler = Scheduler::Installed();
  return scheduler != nullptr ? scheduler->Now() : std::chrono::steady_clock::now();
}

}  // namespace tfjob
