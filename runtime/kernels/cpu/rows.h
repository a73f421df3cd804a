// Loops over operands of the same shape, row by row. If no operand has row padding, treats the
// whole tensor as one row.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {

struct Rows {
  int64_t rows = 0;
  int64_t cols = 0;

  // Requires that all operands have the same shape.
  explicit Rows(std::initializer_list<const Operand*> operands) {
    const Operand& first = **operands.begin();
    const bool dense =
        std::ranges::all_of(operands, [](const Operand* operand) { return operand->dense(); });
    rows = dense ? 1 : first.rows();
    cols = dense ? first.shape.num_elements() : first.cols();
  }

  // Calls body(row, begin, end) for columns [begin, end) of each row. `weight` is the cost of an
  // element, measured in elements of a cheap loop.
  template <typename Body>
  void ForEach(Stream& stream, const Body& body, int64_t weight = 1) const {
    if (rows == 1) {
      stream.ParallelFor(cols, kGrain / weight,
                         [&](int64_t begin, int64_t end) { body(int64_t{0}, begin, end); });
      return;
    }
    const int64_t grain = 1 + kGrain / weight / std::max<int64_t>(1, cols);
    stream.ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row, int64_t{0}, cols);
    });
  }
};

// Sets out[i] = f(in[i]...). `out` may be one of the inputs. The pragma informs gcc that no
// iteration reads a value that another iteration has written. `f` is passed by value, so that its
// members cannot alias the elements.
template <typename F, typename Out, typename... In>
inline void Map(int64_t count, F f, Out* out, const In*... in) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]...);
}

}  // namespace tfjob::kernels::cpu
