// Computes the windows of layers over images from the layers' arguments. Layers whose names end in
// 1D treat rows [batch,steps,channels] as images of height 1.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/layer/layer.h"
#include "runtime/tensor/window.h"

namespace tfjob::model::layers {

// Specifies the padding. kSame adds padding to get ⌈inputs / stride⌉ windows. kCausal adds padding
// only before the inputs, so that no output depends on a later input.
enum class PaddingKind { kValid, kSame, kCausal };
// Listed in the order of the enum.
inline constexpr std::string_view kPaddings[] = {"valid", "same", "causal"};

// Describes the windows of a layer, with one number per axis.
struct WindowArguments {
  std::vector<int64_t> size, strides, dilations;
  PaddingKind padding = PaddingKind::kValid;

  // Returns windows of one element, which are valid for any example of the right rank.
  static WindowArguments Ones(int rank);

  // Returns the part of the windows for `count` axes, starting with axis `first`.
  WindowArguments Part(size_t first, size_t count) const;

  // Returns the windows over examples of shape [height,width,channels] or [steps,channels]. Returns
  // InvalidArgument if the examples have a different rank, or are too small for a window.
  StatusOr<Window> Over(const Shape& example) const;
};

// Returns InvalidArgument if the windows have both strides and dilations above 1, which Keras
// allows only in depthwise and separable convolutions.
Status ExpectNotBoth(const WindowArguments& window);

// Returns [1,height,width,channels] for examples of shape [height,width,channels], and
// [1,1,steps,channels] for [steps,channels].
Shape ImageOf(const Shape& example);
// Converts the layer's input to images.
graph::Output Images(const LayerCall& call);
// Converts images back to the form of the layer's examples, whose rank (without the batch) is
// `rank`.
graph::Output Examples(graph::Builder& b, graph::Output images, int rank);
// Returns the shape of an example with the given rank and sizes. If the rank is 2, the height,
// which must be 1, is omitted.
Shape ExampleShape(int rank, int64_t height, int64_t width, int64_t channels);

}  // namespace tfjob::model::layers
