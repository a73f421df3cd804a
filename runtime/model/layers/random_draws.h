// Declares functions for the arguments and random numbers of the layers in augmentation.h and
// random_transforms.h. Private to this package.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Returns InvalidArgument unless examples of this shape are images.
Status ExpectImages(const Shape& in);

// Lists the arguments that all random image layers have in common. The seed is stored but not used.
void RandomArguments(ArgumentVisitor& visitor, std::optional<int64_t>& seed);

// Contains the bounds between which a random number is drawn.
using Bounds = std::array<double, 2>;
// Converts the value of the argument `name` to bounds, like Keras' BaseImagePreprocessingLayer. A
// single number x means the bounds max(-|x|, least) and |x|. Returns InvalidArgument for numbers
// outside [least, 1].
StatusOr<Bounds> BoundsOf(std::string_view name, const std::vector<double>& factor, double least);

// Returns one random number per image, distributed uniformly between the bounds. The result has the
// shape [batch,1,1,1] and the type of the images. If both bounds are the same number, returns
// exactly this number.
graph::Output UniformPerImage(const LayerCall& call, const Bounds& bounds);

}  // namespace tfjob::model::layers
