// A snapshot whose values may still have to be copied, so that training can continue meanwhile.
#pragma once

#include <functional>
#include <utility>

#include "runtime/state/snapshot.h"

namespace tfjob::state {

class SnapshotCopy {
 public:
  // For a snapshot that holds its values already.
  SnapshotCopy(Snapshot whole) : snapshot_(std::move(whole)) {}  // NOLINT: converts
  // `finish` returns once the tensors of `snapshot` hold the values of its step. It is called on
  // any thread, on several at a time, and again.
  SnapshotCopy(Snapshot snapshot, std::function<void()> finish)
      : snapshot_(std::move(snapshot)), finish_(std::move(finish)) {}

  int64_t global_step() const { return snapshot_.global_step; }
  // Copies the values that are still missing, and returns the whole snapshot. May be called on any
  // thread, and again.
  const Snapshot& Finish() const {
    if (finish_) finish_();
    return snapshot_;
  }

 private:
  Snapshot snapshot_;
  std::function<void()> finish_;  // null: the snapshot is whole
};

}  // namespace tfjob::state
