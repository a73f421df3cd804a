// Defines layers that combine several inputs.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Lists the layers that combine their inputs element by element. All axes after the batch axis are
// broadcast according to NumPy's rules. As in Keras, if the inputs have different ranks, axes of
// size 1 are inserted after the batch axis of each input with a lower rank.
enum class MergeKind { kAdd, kSubtract, kMultiply, kAverage, kMaximum, kMinimum };
// Listed in the order of the enum.
inline constexpr std::string_view kMergeClasses[] = {"Add",     "Subtract", "Multiply",
                                                     "Average", "Maximum",  "Minimum"};

// Return the type of the merged value, and the value itself. Require at least two inputs of the
// same type (kSubtract: exactly two). If all inputs have masks, a step of the output is masked if
// it is masked in every input; otherwise, the output has no mask.
StatusOr<std::vector<TensorType>> MergedType(MergeKind kind, std::span<const TensorType> in);
graph::Output Merged(MergeKind kind, LayerCall& call);

template <MergeKind kKind>
struct Merge {
  static constexpr std::string_view kClass = kMergeClasses[static_cast<size_t>(kKind)];

  void Arguments(ArgumentVisitor&) {}
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const {
    return MergedType(kKind, in);
  }
  graph::Output Apply(LayerCall& call) const { return Merged(kKind, call); }
};

// Joins the inputs along an axis. The sizes of all other axes must be equal. A step of the output
// is masked if all of its elements come from masked steps. An input without a mask has no masked
// steps.
struct Concatenate {
  static constexpr std::string_view kClass = "Concatenate";
  int64_t axis = -1;  // the batch is axis 0

  void Arguments(ArgumentVisitor& visitor) { visitor.Axis("axis", axis); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  graph::Output Apply(LayerCall& call) const;
};

using Add = Merge<MergeKind::kAdd>;
using Subtract = Merge<MergeKind::kSubtract>;
using Multiply = Merge<MergeKind::kMultiply>;
using Average = Merge<MergeKind::kAverage>;
using Maximum = Merge<MergeKind::kMaximum>;
using Minimum = Merge<MergeKind::kMinimum>;

}  // namespace tfjob::model::layers
