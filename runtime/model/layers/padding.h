// Computes the windows of a layer over images from its arguments. Layers whose names end in 1D
// treat rows [batch,steps,channels] as images of height 1.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/layer/layer.h"
#include "runtime/tensor/window.h"

namespace tfjob::model::layers {

// kSame pads so that there are ⌈inputs / stride⌉ windows. kCausal pads only before the inputs, so
// that no output depends on a later input.
enum class PaddingKind { kValid, kSame, kCausal };
// In the order of the enum.
inline constexpr std::string_view kPaddings[] = {"valid", "same", "causal"};

// The windows of a layer: one number per axis.
struct WindowArguments {
  std::vector<int64_t> size, strides, dilations;
  PaddingKind padding = PaddingKind::kValid;

  // Returns windows of one element, which fit any example of the right rank.
  static WindowArguments Ones(int rank);

  // Returns the windows of `count` axes, starting with axis `first`.
  WindowArguments Part(size_t first, size_t count) const;

  // Returns the windows over examples of shape [height,width,channels] or [steps,channels].
  // Returns InvalidArgument if the examples have a different rank, or no window fits.
  StatusOr<Window> Over(const Shape& example) const;
};

// Returns InvalidArgument if the windows have both strides and dilations above 1: neither
// TensorFlow nor Keras can combine them.
Status ExpectNotBoth(const WindowArguments& window);

// Returns [1,height,width,channels] for examples of shape [height,width,channels], and
// [1,1,steps,channels] for [steps,channels].
Shape ImageOf(const Shape& example);
// Returns the layer's input as images.
graph::Output Images(const LayerCall& call);
// Returns images in the form of the layer's examples, whose rank (without the batch) is `rank`.
graph::Output Examples(graph::Builder& b, graph::Output images, int rank);
// Returns the shape of an example of this rank with these sizes. The height is 1 if the rank is 2.
Shape ExampleShape(int rank, int64_t height, int64_t width, int64_t channels);

}  // namespace tfjob::model::layers
