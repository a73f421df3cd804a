// Runs the events of a simulation in chronological order, and derives its random choices from a
// seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <tuple>
#include <utility>

#include "runtime/base/clock.h"

namespace tfjob::collectives {

// Not thread-safe.
class SimulatedTime {
 public:
  using Event = std::function<void()>;

  explicit SimulatedTime(uint64_t seed) : random_(seed) {}

  // Returns a number from `least` to `most`.
  int64_t Number(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  Duration Time(Duration least, Duration most) {
    return Duration(Number(least.count(), most.count()));
  }
  bool Chance(double probability) {
    return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }

  // After runs the event once; Repeat runs it again after each `interval`.
  void After(Duration delay, Event event) {
    events_.push({now_ + delay, next_event_++, std::make_shared<Event>(std::move(event))});
  }
  void Repeat(Duration interval, Event event) {
    After(interval, [this, interval, event] {
      event();
      Repeat(interval, event);
    });
  }
  // Runs all events up to the time `end`, or until stop() returns true.
  template <typename Stop>
  void RunUntil(Duration end, const Stop& stop) {
    while (!stop() && !events_.empty() && events_.top().at <= end) {
      const Scheduled next = events_.top();
      events_.pop();
      now_ = next.at;
      (*next.run)();
    }
  }

 protected:
  Duration now_{0};

 private:
  struct Scheduled {
    Duration at;
    uint64_t number;
    std::shared_ptr<Event> run;
    bool operator<(const Scheduled& other) const {
      return std::tie(other.at, other.number) < std::tie(at, number);
    }
  };

  std::mt19937_64 random_;
  uint64_t next_event_ = 0;
  std::priority_queue<Scheduled> events_;
};

}  // namespace tfjob::collectives
