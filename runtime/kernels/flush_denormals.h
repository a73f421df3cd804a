// Turns off subnormal numbers during its lifetime: on the thread that created the object, the
// vector unit treats subnormal inputs as zero, and returns zero instead of subnormal results. Has
// no effect in builds for processors without SSE.
//
// This is important for training: if the gradient of a weight remains 0, the optimizer's moments
// for the weight decay until they are subnormal, and would remain subnormal. Arithmetic on
// subnormal numbers is several times slower (Adam on Fashion-MNIST: 83 µs per step instead of 32
// µs).
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tfjob::kernels {

class FlushDenormals {
 public:
#if defined(__SSE__)
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#if defined(__SSE__)
 private:
  // See section 10.2.3 in volume 1 of Intel's manual.
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  unsigned before_;
#endif
};

}  // namespace tfjob::kernels
