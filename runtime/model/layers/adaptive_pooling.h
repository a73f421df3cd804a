// Defines pooling to a fixed number of windows, over volumes [depth,height,width,channels]
// (kRank = 3), images [height,width,channels], and rows [steps,channels] (kRank = 1).
#pragma once

#include "runtime/model/layers/pooling.h"

namespace tfjob::model::layers {

// Computes the maximum or the average of each window, per channel. Along an axis of n elements,
// window i of m covers the elements from ⌊i·n / m⌋ to ⌈(i + 1)·n / m⌉ - 1.
template <PoolingKind kKind, int kRank>
struct AdaptivePooling {
  static constexpr std::string_view kClass = kKind == PoolingKind::kMax
                                                 ? (kRank == 1   ? "AdaptiveMaxPooling1D"
                                                    : kRank == 2 ? "AdaptiveMaxPooling2D"
                                                                 : "AdaptiveMaxPooling3D")
                                                 : (kRank == 1   ? "AdaptiveAveragePooling1D"
                                                    : kRank == 2 ? "AdaptiveAveragePooling2D"
                                                                 : "AdaptiveAveragePooling3D");
  std::vector<int64_t> output_size = std::vector<int64_t>(kRank, 1);

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

using AdaptiveMaxPooling1D = AdaptivePooling<PoolingKind::kMax, 1>;
using AdaptiveMaxPooling2D = AdaptivePooling<PoolingKind::kMax, 2>;
using AdaptiveMaxPooling3D = AdaptivePooling<PoolingKind::kMax, 3>;
using AdaptiveAveragePooling1D = AdaptivePooling<PoolingKind::kAverage, 1>;
using AdaptiveAveragePooling2D = AdaptivePooling<PoolingKind::kAverage, 2>;
using AdaptiveAveragePooling3D = AdaptivePooling<PoolingKind::kAverage, 3>;

}  // namespace tfjob::model::layers
