// Declares the random numbers and arguments that the layers of augmentation.h and
// random_transforms.h have in common. Private to this package.
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

// Lists the arguments that all random layers for images have. The seed is only stored.
void RandomArguments(ArgumentVisitor& visitor, std::optional<int64_t>& seed);

// The bounds between which a random number is drawn.
using Bounds = std::array<double, 2>;
// Returns the bounds that the argument `name` stands for, as in Keras' BaseImagePreprocessingLayer:
// a single number x stands for the bounds max(-|x|, least) and |x|. Returns InvalidArgument for
// numbers that are not in [least, 1].
StatusOr<Bounds> BoundsOf(std::string_view name, const std::vector<double>& factor, double least);

// Returns one number per image, distributed uniformly between the bounds, in the shape
// [batch,1,1,1] and the type of the images. If the bounds are equal, returns exactly this number.
graph::Output UniformPerImage(const LayerCall& call, const Bounds& bounds);

}  // namespace tfjob::model::layers
