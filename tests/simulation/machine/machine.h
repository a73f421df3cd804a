// Runs the threads of several processes deterministically, in simulated time. A seed determines
// which thread runs next, and where threads are interrupted. Apart from a microsecond per turn of a
// thread, time passes only while all threads wait, so minutes of waiting take no real time.
//
//   Machine machine(seed);
//   machine.Spawn(/*process=*/1, [&] { server->WaitUntilFinished(); });
//   machine.After(3s, [&] { machine.Pause(1, 20s); });
//   bool ended = machine.RunUntil([&] { return machine.idle(); }, 10min);
//
// Everything runs on one thread of the operating system. The code under test must use the threads,
// locks, waits and clocks of runtime/base (see Scheduler).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/scheduler.h"
#include "tests/simulation/machine/fiber.h"

namespace tfjob::simulation {

// A machine is the installed scheduler as long as it exists.
class Machine : public Scheduler {
 public:
  // `interruption` is the probability that a thread is interrupted when it locks a mutex.
  explicit Machine(uint64_t seed, double interruption = 0.02);
  // All threads must have ended.
  ~Machine() override;

  // Starts a thread of `process`. Threads that this thread starts belong to the same process.
  void Spawn(int process, std::function<void()> body);
  // Calls `act` after `delay`. `act` must neither wait nor use locks that threads use.
  void After(Duration delay, std::function<void()> act);
  // Stops all threads of `process` for `time`, as between SIGSTOP and SIGCONT.
  void Pause(int process, Duration time);
  // Sets how far the wall clock of `process` is ahead of those of other processes.
  void SetSkew(int process, Duration ahead);

  // Runs until done() returns true. Returns false if `limit` passes first, or if all threads wait
  // without a deadline.
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  // Returns whether all threads have ended.
  bool idle() const { return threads_.empty(); }
  // Returns the simulated time since the start.
  Duration elapsed() const { return now_; }
  // Returns a hash of all decisions so far. Two runs with the same decisions have the same
  // fingerprint.
  uint64_t fingerprint() const { return fingerprint_; }
  // Returns the process of the calling thread.
  int process() const;

  // Makes the calling thread wait.
  void Sleep(Duration time);

  void* Start(std::function<void()> body) override;
  void Join(void* thread) override;
  const void* Current() override { return running_; }
  void Lock(const Mutex& mutex) override;
  void Unlock(const Mutex& mutex) override;
  bool Wait(const CondVar& condition, const Mutex& mutex, SteadyTime deadline) override;
  void NotifyOne(const CondVar& condition) override;
  void NotifyAll(const CondVar& condition) override;
  SteadyTime Now() override { return SteadyTime(now_); }
  std::chrono::system_clock::time_point WallNow() override;

 private:
  struct Thread {
    int process = 0;
    std::unique_ptr<Fiber> fiber;
    uint64_t number = 0;
    uint64_t wait = 0;  // number of the current wait; timers of earlier waits do nothing
    bool timed_out = false;
    const CondVar* condition = nullptr;  // null if the thread waits for no condition
    Thread* joiner = nullptr;
    bool detached = false;
  };
  struct Timer {
    Duration time{0};
    uint64_t order = 0;
    std::function<void()> act;
    bool operator<(const Timer& other) const {
      return std::pair(other.time, other.order) < std::pair(time, order);
    }
  };

  Thread* NewThread(int process, std::function<void()> body);
  bool Chance(double probability);
  // Lets other threads run until Ready has been called for this thread and Choose has chosen this
  // thread. Must be called on a thread of the machine.
  void Block();
  void Ready(Thread* thread) { ready_.push_back(thread); }
  Thread* Choose();
  void Run(Thread* thread);
  // Runs the actions of all timers that are due.
  void ActOnTimers();
  void Expire(Thread* thread, uint64_t wait);
  void Wake(Thread* thread);
  void LetIn(const Mutex& mutex);

  std::mt19937_64 random_;
  const double interruption_;
  Duration now_{0};
  uint64_t order_ = 0;
  uint64_t fingerprint_ = 0;
  Thread* running_ = nullptr;
  std::map<uint64_t, std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> ready_;
  std::priority_queue<Timer> timers_;
  std::unordered_map<const Mutex*, Thread*> owners_;
  std::unordered_map<const Mutex*, std::deque<Thread*>> lock_waits_;
  std::unordered_map<const CondVar*, std::deque<Thread*>> waits_;
  std::map<int, Duration> paused_until_;
  std::map<int, Duration> skews_;
};

}  // namespace tfjob::simulation
