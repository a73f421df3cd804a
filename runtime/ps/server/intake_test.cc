#include "runtime/ps/server/intake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace tfjob::ps {
namespace {

Intake::Options OneSlot() {
  return {.slots = 1, .look_every = 10ms, .busy_bytes = 1, .patience = 60s};
}

// A contribution that is waiting to be admitted.
class Waiting {
 public:
  explicit Waiting(Intake& intake)
      : thread_([this, &intake] {
          const auto slot = intake.Enter();
          entered = true;
        }) {}
  ~Waiting() { thread_.join(); }
  std::atomic<bool> entered = false;

 private:
  std::thread thread_;
};

// Counts bytes for 300 ms. Returns the longest pause, which depends on how busy the machine is.
std::chrono::steady_clock::duration CountBytes(Intake::Slot& slot) {
  const auto begin = std::chrono::steady_clock::now();
  auto last = begin;
  std::chrono::steady_clock::duration pause{0};
  while (last < begin + 300ms) {
    slot.Count(1);
    std::this_thread::yield();
    const auto now = std::chrono::steady_clock::now();
    pause = std::max(pause, now - last);
    last = now;
  }
  return pause;
}

TEST(Intake, LetsOneInForEachThatIsCompleteWhileBytesArrive) {
  Intake::Options options = OneSlot();
  options.look_every = 100ms;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto intake = Intake::Create(options);
    auto first = intake->Enter();
    Waiting second(*intake);
    const bool steady = CountBytes(*first) < options.look_every / 2;
    const bool entered = second.entered;
    first = nullptr;  // `second` must now be admitted, or the test would hang
    if (!steady) continue;
    EXPECT_FALSE(entered);
    return;
  }
  FAIL() << "the machine was too busy to count bytes without long pauses, in 20 attempts";
}

TEST(Intake, LetsFurtherOnesInIfNoBytesArrive) {
  const auto intake = Intake::Create(OneSlot());
  const auto first = intake->Enter();
  EXPECT_NE(intake->Enter(), nullptr) << "although the first is not complete";
}

TEST(Intake, LetsNobodyWaitForever) {
  Intake::Options options = OneSlot();
  options.patience = 100ms;
  const auto intake = Intake::Create(options);
  const auto first = intake->Enter();
  Waiting second(*intake);
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!second.entered && std::chrono::steady_clock::now() < end) first->Count(1);
  EXPECT_TRUE(second.entered);
}

TEST(Intake, LetsAsManyInAtOnceAsItHasSlots) {
  const auto intake = Intake::Create({.slots = 3, .look_every = 60s, .patience = 60s});
  const auto a = intake->Enter(), b = intake->Enter(), c = intake->Enter();
  EXPECT_NE(c, nullptr);
}

}  // namespace
}  // namespace tfjob::ps
