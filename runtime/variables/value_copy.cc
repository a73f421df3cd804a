#include "runtime/variables/value_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "runtime/base/check.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::variables {
namespace {

// The size of the pieces in which a value is copied. A copy of this many bytes into new memory
// takes about a millisecond, which is how long a writer may wait for another thread's piece.
constexpr size_t kPiece = 2 << 20;

// Requests that the kernel map all pages of new memory at once; separate page faults would take a
// third longer. Kernels before Linux 5.14 reject the request, so there the pages are mapped one by
// one.
void Populate(std::span<std::byte> bytes) {
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const uintptr_t end = (begin + bytes.size()) / kPage * kPage;
  if (first >= end) return;
  [[maybe_unused]] const int populated =
      madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
}

}  // namespace

ValueCopy::ValueCopy(const Variable& from, Tensor to) : from_(from), to_(std::move(to)) {
  ENFORCE(to_->dtype() == from.dtype() && to_->shape() == from.shape(),
          "a tensor of the variable's dtype and shape");
}

void ValueCopy::Finish() {
  MutexLock lock(mutex_);
  if (!to_) return;
  CopyPieces();
  while (to_ && copying_ > 0) changed_.Wait(mutex_);
  to_.reset();
  changed_.NotifyAll();
}

bool ValueCopy::finished() const {
  MutexLock lock(mutex_);
  return !to_;
}

void ValueCopy::CopyPieces() {
  const std::span<std::byte> to = to_->bytes();
  ++copying_;
  while (next_ < to.size()) {
    const size_t begin = next_;
    const size_t size = std::min(kPiece, to.size() - begin);
    next_ += size;
    mutex_.Unlock();
    const std::span<std::byte> piece = to.subspan(begin, size);
    Populate(piece);
    ENFORCE(from_.CopyOut(begin, piece).ok(), "a piece of the value");
    mutex_.Lock();
  }
  --copying_;
}

}  // namespace tfjob::variables
