// Defines pooling over volumes [depth,height,width,channels] (kRank = 3), images
// [height,width,channels] (kRank = 2), and rows [steps,channels] (kRank = 1).
#pragma once

#include "runtime/model/layers/padding.h"

namespace tfjob::model::layers {

enum class PoolingKind { kMax, kAverage };

// Computes the maximum or the average of each window, per channel. Padding is ignored.
template <PoolingKind kKind, int kRank>
struct Pooling {
  static constexpr std::string_view kClass = kKind == PoolingKind::kMax
                                                 ? (kRank == 1   ? "MaxPooling1D"
                                                    : kRank == 2 ? "MaxPooling2D"
                                                                 : "MaxPooling3D")
                                                 : (kRank == 1   ? "AveragePooling1D"
                                                    : kRank == 2 ? "AveragePooling2D"
                                                                 : "AveragePooling3D");
  // By default, the strides equal the sizes of the windows.
  WindowArguments window = {.size = std::vector<int64_t>(kRank, 2)};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes the maximum or the average of each channel over the whole example. The output is
// [channels] or, with keepdims, [1…,channels]. As in Keras, GlobalAveragePooling1D averages only
// the unmasked steps.
template <PoolingKind kKind, int kRank>
struct GlobalPooling {
  static constexpr std::string_view kClass = kKind == PoolingKind::kMax
                                                 ? (kRank == 1   ? "GlobalMaxPooling1D"
                                                    : kRank == 2 ? "GlobalMaxPooling2D"
                                                                 : "GlobalMaxPooling3D")
                                                 : (kRank == 1   ? "GlobalAveragePooling1D"
                                                    : kRank == 2 ? "GlobalAveragePooling2D"
                                                                 : "GlobalAveragePooling3D");
  static constexpr bool kTakesMask = kKind == PoolingKind::kAverage && kRank == 1;
  bool keepdims = false;

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

using MaxPooling1D = Pooling<PoolingKind::kMax, 1>;
using MaxPooling2D = Pooling<PoolingKind::kMax, 2>;
using MaxPooling3D = Pooling<PoolingKind::kMax, 3>;
using AveragePooling1D = Pooling<PoolingKind::kAverage, 1>;
using AveragePooling2D = Pooling<PoolingKind::kAverage, 2>;
using AveragePooling3D = Pooling<PoolingKind::kAverage, 3>;
using GlobalMaxPooling1D = GlobalPooling<PoolingKind::kMax, 1>;
using GlobalMaxPooling2D = GlobalPooling<PoolingKind::kMax, 2>;
using GlobalMaxPooling3D = GlobalPooling<PoolingKind::kMax, 3>;
using GlobalAveragePooling1D = GlobalPooling<PoolingKind::kAverage, 1>;
using GlobalAveragePooling2D = GlobalPooling<PoolingKind::kAverage, 2>;
using GlobalAveragePooling3D = GlobalPooling<PoolingKind::kAverage, 3>;

}  // namespace tfjob::model::layers
