// Admits only a few contributions at a time while the server is busy receiving. Complete
// contributions can then be summed (protocol/merge_tree.h) before further contributions take
// memory. Private to this package.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::ps {

// Thread-safe. Outstanding slots keep the intake alive.
class Intake : public std::enable_shared_from_this<Intake> {
 public:
  struct Options {
    int slots = 4;
    // The server is idle if it receives fewer than `busy_bytes` within `look_every`. Senders that
    // are still computing then limit the rate of the admitted contributions, so an idle server
    // admits another contribution.
    Duration look_every{20ms};
    uint64_t busy_bytes = uint64_t{2} << 20;
    // The longest time that a contribution waits.
    Duration patience{5s};
  };
  static std::shared_ptr<Intake> Create(const Options& options) {
    return std::shared_ptr<Intake>(new Intake(options));
  }

  // The admission of one contribution. Held while the contribution is being received.
  class Slot {
   public:
    explicit Slot(std::shared_ptr<Intake> intake) : intake_(std::move(intake)) {}
    ~Slot() { intake_->Release(); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    // Reports that bytes of the contribution have arrived.
    void Count(uint64_t bytes) { intake_->Count(bytes); }

   private:
    const std::shared_ptr<Intake> intake_;
  };
  // Waits for a free slot, or until the server is idle.
  std::unique_ptr<Slot> Enter();

 private:
  explicit Intake(const Options& options) : options_(options) {}
  void Count(uint64_t bytes);
  void Release();

  const Options options_;
  Mutex mutex_;
  CondVar free_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;  // may exceed the number of slots
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tfjob::ps
