// Defines the value of a reduction: the pairwise tree over the ranks in rank order. For ranks
// [begin, end), the value is combine(value of [begin, middle), value of [middle, end)), where
// middle − begin is the largest power of two below end − begin. Addition rounds, so this order
// determines the bits of a sum. Every algorithm and transport of this package uses this order,
// except a ring (plan.h) and NCCL.
//
//   5 ranks:  ((v0 + v1) + (v2 + v3)) + v4
//
// Values of type bfloat16 and float16 are converted to float32, which is exact. The whole tree is
// evaluated in float32, and its value is rounded once to the type of the values. Such values have
// no partial results: one rank must have the values of all ranks. A mean divides the value of the
// tree by the number of ranks, before that rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::collectives {

// Returns the middle of the tree over [begin, end); end − begin is at least 2.
int TreeMiddle(int begin, int end);

std::string_view Name(Reduction reduction);  // "sum"

// Returns InvalidArgument if there is no such reduction of values of this type. The message starts
// with `operation`: "AllReduce of uint8: expected …".
Status CheckReduction(std::string_view operation, DType dtype, Reduction reduction);

// target[i] = combine(left[i], right[i]). `target` may be `left` or `right`. All spans have equal
// sizes and are aligned to their elements. Sums of integers wrap around. The minimum or maximum of
// NaN and a number is NaN. CheckReduction must have accepted the type and the reduction.
void Combine(DType dtype, Reduction reduction, std::span<std::byte> target,
             std::span<const std::byte> left, std::span<const std::byte> right);

// Sets `target` to tree(values[0], …, values[n - 1]) in one pass over memory. `values` has one
// element per rank, in rank order, and at least one in total. `target` may be one of the values.
// For a mean, the value of the tree is divided by the number of values.
void CombineAll(DType dtype, Reduction reduction, std::span<std::byte> target,
                std::span<const std::span<const std::byte>> values);

// Divides each value by the number of ranks. Turns a sum that was computed from partial sums into a
// mean. `dtype` is float32 or float64.
void DivideByRanks(DType dtype, std::span<std::byte> values, int ranks);

}  // namespace tfjob::collectives
