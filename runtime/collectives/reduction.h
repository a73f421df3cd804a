// Defines the value of a reduction: the pairwise tree over the ranks in rank order. For ranks
// [begin, end), the value is combine(value of [begin, middle), value of [middle, end)), where
// middle − begin is the largest power of two below end − begin. Addition rounds, so this order
// determines the bits of a sum. Every algorithm and transport of this package uses this order.
//
//   5 ranks:  ((v0 + v1) + (v2 + v3)) + v4
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/collectives/communicator.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::collectives {

// Returns the middle of the tree over [begin, end); end − begin is at least 2.
int TreeMiddle(int begin, int end);

std::string_view Name(Reduction reduction);  // "sum"

// Returns whether values of this type can be reduced.
bool CanReduce(DType dtype);

// target[i] = combine(left[i], right[i]). `target` may be `left` or `right`. All spans have equal
// sizes and are aligned to their elements. Sums of integers wrap around. The minimum or maximum of
// NaN and a number is NaN.
void Combine(DType dtype, Reduction reduction, std::span<std::byte> target,
             std::span<const std::byte> left, std::span<const std::byte> right);

// Sets `target` to tree(values[0], …, values[n - 1]) in one pass over memory. `values` has one
// element per rank, in rank order, and at least one in total. `target` may be one of the values.
void CombineAll(DType dtype, Reduction reduction, std::span<std::byte> target,
                std::span<const std::span<const std::byte>> values);

}  // namespace tfjob::collectives
