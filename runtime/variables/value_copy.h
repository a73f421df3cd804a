// Copies the value of a variable while a program continues to use the variable. The copy contains
// the value that the variable had when the copy was started, because every writer first calls
// Variable::BeforeWrite, which finishes the copy.
//
// The value is copied in pieces, and several threads may copy different pieces at the same time. A
// writer copies the pieces that no thread has started to copy, and then waits for at most one piece
// per other thread.
#pragma once

#include <cstddef>
#include <optional>

#include "runtime/base/mutex.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::variables {

class Variable;

// Thread-safe. Created by Variable::BeginCopy. A finished copy no longer refers to the variable.
class ValueCopy {
 public:
  ValueCopy(const Variable& from, Tensor to);
  ValueCopy(const ValueCopy&) = delete;
  ValueCopy& operator=(const ValueCopy&) = delete;

  // Copies the pieces that no thread has started to copy, then waits for the pieces that other
  // threads are copying. Afterwards, the tensor contains the whole value.
  void Finish();
  bool finished() const;

 private:
  void CopyPieces() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Variable& from_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Tensor> to_ ABSL_GUARDED_BY(mutex_);  // nullopt: finished
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;           // the first byte of the next piece to copy
  size_t copying_ ABSL_GUARDED_BY(mutex_) = 0;        // the number of threads that are copying
};

}  // namespace tfjob::variables
