// Defines the scalar functions of the elementwise ops. They are used by the kernels of individual
// ops and by FusedElementwise.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/kernels/cpu/math.h"

namespace tfjob::kernels::cpu {

// As in NumPy, Maximum, Minimum and Relu return NaN if an operand is NaN. If they dropped NaN,
// training that has diverged could appear healthy.
struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // The processor would trap on a division by 0, and on the division of the smallest value by
      // -1, which overflows.
      if (b == 0) return 0;
      return b == -1 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a / b;
    } else {
      return a / b;
    }
  }
};
struct Maximum {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct Pow {
  template <typename T>
  T operator()(T a, T b) const {
    return std::pow(a, b);
  }
};

struct Neg {
  template <typename T>
  T operator()(T x) const {
    return -x;
  }
};
struct Abs {
  template <typename T>
  T operator()(T x) const {
    return std::abs(x);
  }
};
struct Square {
  template <typename T>
  T operator()(T x) const {
    return x * x;
  }
};
struct SquareRoot {
  template <typename T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <typename T>
  T operator()(T x) const {
    return T{1} / std::sqrt(x);
  }
};
struct Exponential {
  template <typename T>
  T operator()(T x) const {
    return Exp(x);
  }
};
struct Logarithm {
  template <typename T>
  T operator()(T x) const {
    return Log(x);
  }
};
struct ErrorFunction {
  template <typename T>
  T operator()(T x) const {
    return Erf(x);
  }
};
struct Sine {
  template <typename T>
  T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cosine {
  template <typename T>
  T operator()(T x) const {
    return std::cos(x);
  }
};
struct Relu {
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? T{0} : x;
  }
};
struct SigmoidOf {
  template <typename T>
  T operator()(T x) const {
    return Sigmoid(x);
  }
};
struct TanhOf {
  template <typename T>
  T operator()(T x) const {
    return Tanh(x);
  }
};
struct Copy {
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};

struct ReluGrad {
  template <typename T>
  T operator()(T dy, T y) const {
    return y > 0 ? dy : T{0};
  }
};
struct SigmoidGrad {
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * y * (1 - y);
  }
};
struct TanhGrad {
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * (1 - y * y);
  }
};
struct Clip {
  template <typename T>
  T operator()(T x, T low, T high) const {
    x = x < low ? low : x;
    return x > high ? high : x;
  }
};

struct Equal {
  template <typename T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Greater {
  template <typename T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Less {
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

}  // namespace tfjob::kernels::cpu
