// Defines a snapshot whose values may still have to be copied, so that training can continue during
// the copy.
#pragma once

#include <functional>
#include <utility>

#include "runtime/state/snapshot.h"

namespace tfjob::state {

class SnapshotCopy {
 public:
  // Wraps a snapshot that already contains its values.
  SnapshotCopy(Snapshot whole) : snapshot_(std::move(whole)) {}  // NOLINT: converts
  // Wraps a snapshot whose tensors may still lack values. `finish` must return only after the
  // tensors contain the values of the snapshot's step. It must be safe to call on any thread, on
  // several threads at the same time, and more than once.
  SnapshotCopy(Snapshot snapshot, std::function<void()> finish)
      : snapshot_(std::move(snapshot)), finish_(std::move(finish)) {}

  int64_t global_step() const { return snapshot_.global_step; }
  // Copies the values that are still missing, and returns the complete snapshot. May be called on
  // any thread, and more than once.
  const Snapshot& Finish() const {
    if (finish_) finish_();
    return snapshot_;
  }

 private:
  Snapshot snapshot_;
  std::function<void()> finish_;  // null if the snapshot is already complete
};

}  // namespace tfjob::state
