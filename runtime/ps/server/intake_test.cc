#include "runtime/ps/server/intake.h"

#include <gtest/gtest.h>

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

TEST(Intake, LetsOneInForEachThatIsCompleteWhileBytesArrive) {
  const auto intake = Intake::Create(OneSlot());
  auto first = intake->Enter();
  Waiting second(*intake);
  const auto end = std::chrono::steady_clock::now() + 200ms;
  while (std::chrono::steady_clock::now() < end) {
    first->Count(1);
    std::this_thread::yield();
  }
  EXPECT_FALSE(second.entered);
  first = nullptr;  // `second` must now be admitted, or the test would hang
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
