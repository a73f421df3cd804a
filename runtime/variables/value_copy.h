// Copies the value of a variable while a program goes on to use it. The copy holds the value that
// the variable had when the copy began, because nobody overwrites the variable before the copy is
// finished: Variable::BeforeWrite, which every writer calls, finishes it.
//
// The value is copied in pieces. Several threads may copy at the same time, each its own pieces, so
// a writer never waits for more than the piece that another thread is copying.
#pragma once

#include <cstddef>
#include <optional>

#include "runtime/base/mutex.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::variables {

class Variable;

// Thread-safe. Made by Variable::BeginCopy. Does not refer to the variable once it is finished.
class ValueCopy {
 public:
  ValueCopy(const Variable& from, Tensor to);
  ValueCopy(const ValueCopy&) = delete;
  ValueCopy& operator=(const ValueCopy&) = delete;

  // Copies the pieces that no thread has begun to copy, then waits for those of other threads. The
  // tensor holds the whole value afterwards.
  void Finish();
  bool finished() const;

 private:
  void CopyPieces() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Variable& from_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Tensor> to_ ABSL_GUARDED_BY(mutex_);  // nullopt: finished
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;           // the first byte that no thread has begun
  size_t copying_ ABSL_GUARDED_BY(mutex_) = 0;        // threads
};

}  // namespace tfjob::variables
