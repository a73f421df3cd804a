#include "tests/simulation/machine/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tfjob::simulation {
namespace {

// The time of the wall clocks at the start; an arbitrary value.
constexpr std::chrono::seconds kStart{1'800'000'000};
// The duration of each turn of a thread. It is above 0, so that time passes for a thread that polls
// the clock.
constexpr Duration kTurn{1us};

void Check(bool condition, const char* expectation) {
  if (condition) return;
  std::fprintf(stderr, "simulated machine: %s\n", expectation);
  std::abort();
}

}  // namespace

Machine::Machine(uint64_t seed, double interruption) : random_(seed), interruption_(interruption) {
  Check(Installed() == nullptr, "only one machine may exist at a time");
  Install(this);
}

Machine::~Machine() {
  Check(running_ == nullptr, "destroyed on one of its threads");
  Check(idle(), "destroyed before its threads have ended");
  Install(nullptr);
}

bool Machine::Chance(double probability) {
  return std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

// ---- threads

Machine::Thread* Machine::NewThread(int process, std::function<void()> body) {
  auto thread = std::make_unique<Thread>();
  thread->process = process;
  thread->number = ++order_;
  thread->fiber = std::make_unique<Fiber>(std::move(body));
  Thread* created = thread.get();
  threads_.emplace(created->number, std::move(thread));
  Ready(created);
  return created;
}

void Machine::Spawn(int process, std::function<void()> body) {
  NewThread(process, std::move(body))->detached = true;
}

void* Machine::Start(std::function<void()> body) {
  Check(running_ != nullptr, "a thread was started outside of any process: use Spawn");
  return NewThread(running_->process, std::move(body));
}

void Machine::Join(void* joined) {
  auto* thread = static_cast<Thread*>(joined);
  Check(running_ != nullptr, "only a thread can join another");
  if (!thread->fiber->done()) {
    thread->joiner = running_;
    Block();
  }
  threads_.erase(thread->number);
}

int Machine::process() const {
  return running_ != nullptr ? running_->process : 0;
}

void Machine::Pause(int process, Duration time) {
  Duration& until = paused_until_[process];
  until = std::max(until, now_ + time);
}

void Machine::SetSkew(int process, Duration ahead) {
  skews_[process] = ahead;
}

std::chrono::system_clock::time_point Machine::WallNow() {
  const auto found = skews_.find(process());
  const Duration skew = found == skews_.end() ? Duration(0) : found->second;
  return std::chrono::system_clock::time_point(kStart + now_ + skew);
}

// ---- the order of events

void Machine::After(Duration delay, std::function<void()> act) {
  timers_.push({now_ + std::max(delay, Duration(0)), ++order_, std::move(act)});
}

bool Machine::RunUntil(const std::function<bool()>& done, Duration limit) {
  const Duration end = now_ + limit;
  while (!done()) {
    ActOnTimers();
    if (Thread* next = Choose()) {
      Run(next);
      continue;
    }
    // No timer is needed for the limit, because nothing can happen any more if no timer is left.
    if (timers_.empty() || timers_.top().time > end) return done();
    now_ = std::max(now_, timers_.top().time);
  }
  return true;
}

void Machine::ActOnTimers() {
  while (!timers_.empty() && timers_.top().time <= now_) {
    // Moving the function does not affect the order of the timers.
    const std::function<void()> act = std::move(const_cast<Timer&>(timers_.top()).act);
    timers_.pop();
    act();
  }
}

Machine::Thread* Machine::Choose() {
  while (!ready_.empty()) {
    const size_t chosen = random_() % ready_.size();
    Thread* thread = std::exchange(ready_[chosen], ready_.back());
    ready_.pop_back();
    const auto paused = paused_until_.find(thread->process);
    if (paused == paused_until_.end() || paused->second <= now_) return thread;
    After(paused->second - now_, [this, thread] { Ready(thread); });
  }
  return nullptr;
}

void Machine::Run(Thread* thread) {
  now_ += kTurn;
  fingerprint_ = (fingerprint_ ^ thread->number ^ static_cast<uint64_t>(now_.count())) *
                 uint64_t{0x100000001b3};
  running_ = thread;
  thread->fiber->Resume();
  running_ = nullptr;
  if (!thread->fiber->done()) return;
  if (thread->joiner != nullptr) Ready(thread->joiner);
  if (thread->detached) threads_.erase(thread->number);
}

void Machine::Block() {
  running_->fiber->Yield();
}

void Machine::Sleep(Duration time) {
  Thread* self = running_;
  After(time, [this, self] { Ready(self); });
  Block();
}

// ---- locks

void Machine::Lock(const Mutex& mutex) {
  if (running_ == nullptr) {
    Check(owners_.emplace(&mutex, nullptr).second, "a lock that a thread holds was taken outside");
    return;
  }
  Thread* self = running_;
  if (Chance(interruption_)) {
    Ready(self);
    Block();
  }
  while (!owners_.emplace(&mutex, self).second) {
    Check(owners_[&mutex] != self, "a thread locks a mutex that it holds");
    lock_waits_[&mutex].push_back(self);
    Block();
  }
}

void Machine::Unlock(const Mutex& mutex) {
  Check(owners_.erase(&mutex) == 1, "a mutex was unlocked that is not locked");
  LetIn(mutex);
}

void Machine::LetIn(const Mutex& mutex) {
  const auto found = lock_waits_.find(&mutex);
  if (found == lock_waits_.end()) return;
  Ready(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) lock_waits_.erase(found);
}

// ---- waits

bool Machine::Wait(const CondVar& condition, const Mutex& mutex, SteadyTime deadline) {
  Check(running_ != nullptr, "only a thread can wait");
  Thread* self = running_;
  self->timed_out = false;
  self->condition = &condition;
  waits_[&condition].push_back(self);
  const uint64_t wait = ++self->wait;
  if (deadline != SteadyTime::max()) {
    const auto at = std::chrono::ceil<Duration>(deadline.time_since_epoch());
    After(at - now_, [this, number = self->number, wait] {
      // The thread may have exited in the meantime.
      const auto found = threads_.find(number);
      if (found != threads_.end()) Expire(found->second.get(), wait);
    });
  }
  Unlock(mutex);
  Block();
  Lock(mutex);
  return !self->timed_out;
}

void Machine::Expire(Thread* thread, uint64_t wait) {
  if (thread->wait != wait || thread->condition == nullptr) return;
  const auto found = waits_.find(thread->condition);
  std::erase(found->second, thread);
  if (found->second.empty()) waits_.erase(found);
  thread->timed_out = true;
  Wake(thread);
}

void Machine::Wake(Thread* thread) {
  thread->condition = nullptr;
  Ready(thread);
}

void Machine::NotifyOne(const CondVar& condition) {
  const auto found = waits_.find(&condition);
  if (found == waits_.end()) return;
  Thread* thread = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) waits_.erase(found);
  Wake(thread);
}

void Machine::NotifyAll(const CondVar& condition) {
  const auto found = waits_.find(&condition);
  if (found == waits_.end()) return;
  for (Thread* thread : found->second) Wake(thread);
  waits_.erase(found);
}

}  // namespace tfjob::simulation
