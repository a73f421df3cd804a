// Tests the type inference of ops that cut and join tensors, and of ops on images.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/graph/ops/inference_cases.h"
#include "runtime/tensor/window.h"

namespace tfjob::graph {
namespace {

TEST(Inference, OfPartsOfTensors) {
  const std::string alike =
      "refused: expected inputs of one dtype that differ only along axis 1, got ";
  Check({
      {"Concat", {I32({2, 3}), I32({2, 1}), I32({2, 0})}, {{"axis", int64_t{-1}}}, "int32[2,4]"},
      {"Concat", {Bool({2, 3}), Bool({4, 3})}, {{"axis", int64_t{0}}}, "bool[6,3]"},
      {"Concat", {F32({2, 3})}, {{"axis", int64_t{1}}}, "float32[2,3]"},
      {"Concat",
       {F32({2, 3}), F32({3, 3})},
       {{"axis", int64_t{1}}},
       alike + "float32[2,3] and float32[3,3]"},
      {"Concat",
       {F32({2, 3}), F64({2, 3})},
       {{"axis", int64_t{1}}},
       alike + "float32[2,3] and float64[2,3]"},
      {"Concat",
       {F32({2, 3}), F32({2})},
       {{"axis", int64_t{1}}},
       alike + "float32[2,3] and float32[2]"},
      {"Concat",
       {F32({2, 3})},
       {{"axis", int64_t{2}}},
       "refused: expected an axis from -2 to 1, got 2"},
      {"Slice", {Bytes({4, 5})}, {{"begin", Ints{1, 5}}, {"size", Ints{3, 0}}}, "uint8[3,0]"},
      {"Slice",
       {F32({4, 5})},
       {{"begin", Ints{2, 0}}, {"size", Ints{3, 5}}},
       "refused: expected a slice within the 4 elements of axis 0, got 3 from 2 on"},
      {"Slice",
       {F32({4})},
       {{"begin", Ints{-1}}, {"size", Ints{1}}},
       "refused: expected the attribute begin: 1 numbers of at least 0"},
      {"Slice",
       {F32({4})},
       {{"begin", Ints{0}}},
       "refused: expected the attribute size: 1 numbers of at least 0"},
      {"Pad", {I64({4, 5})}, {{"before", Ints{1, 0}}, {"after", Ints{0, 2}}}, "int64[5,7]"},
      {"Pad",
       {F32({4, 5})},
       {{"before", Ints{1}}, {"after", Ints{0, 2}}},
       "refused: expected the attribute before: 2 numbers of at least 0"},
      {"Pad",
       {F32({4})},
       {{"before", Ints{1}}, {"after", Ints{std::numeric_limits<int64_t>::max()}}},
       "refused: expected an output of at most 2^40 elements"},
  });
}

// Returns 3×2 windows with a stride of 2 along the height, and padding of 1 on both sides of the
// width.
Attributes ImageWindow(Attributes attributes = {}) {
  SetWindow(attributes, {.height = {3, 2}, .width = {2, 1, 1, 1, 1}});
  return attributes;
}

TEST(Inference, OfBatchNormalisation) {
  const Attributes some = {{"epsilon", 0.1}};
  const TensorType x = F32({2, 5, 3}), c = F32({3});
  const Text all = "float32[2,5,3] float32[3] float32[3]";
  Check({
      {"FusedBatchNorm", {x, c, c}, some, all},
      {"FusedBatchNorm", {x, c, F32({2})}, some, "refused: expected float32[3] as input 2"},
      {"FusedBatchNorm", {x, c, F64({3})}, some, "refused: expected float32[3] as input 2"},
      {"FusedBatchNorm", {x, c, c}, {}, "refused: expected the attribute epsilon, a number"},
      {"FusedBatchNorm", {I32({2, 3}), c, c}, some, kFloats},
      {"FusedBatchNorm",
       {c, c, c},
       some,
       "refused: expected at least two axes, and at least one channel"},
      {"FusedBatchNormEx", {x, c, c, x}, some, all},
      {"FusedBatchNormEx", {x, c, c, c}, some, "refused: expected float32[2,5,3] as input 3"},
      {"FusedBatchNormGrad", {x, x, c, c, c, c}, some, all},
      {"FusedBatchNormGrad",
       {c, x, c, c, c, c},
       some,
       "refused: expected float32[2,5,3] as input 0"},
      {"FusedBatchNormGradEx", {x, x, c, c, c, c, x, x}, some, all + " float32[2,5,3]"},
  });
}

TEST(Inference, OfConvolutions) {
  const std::string filter = "refused: expected a filter ";
  const Attributes window = ImageWindow();
  Check({
      {"Conv2D", {F32({8, 7, 6, 4}), F32({3, 2, 4, 5})}, window, "float32[8,3,7,5]"},
      {"Conv2D", {F64({8, 7, 6, 4}), F64({3, 2, 2, 6})}, window, "float64[8,3,7,6]"},
      {"Conv2D", {F32({8, 7, 6, 4}), F64({3, 2, 4, 5})}, window, kOneType},
      {"Conv2D", {I32({8, 7, 6, 4}), I32({3, 2, 4, 5})}, window, kFloats},
      {"Conv2D",
       {F32({8, 7, 6, 4}), F32({2, 3, 4, 5})},
       window,
       filter + "[3,2,channels,outputs], got [2,3,4,5]"},
      {"Conv2D",
       {F32({8, 7, 6, 4}), F32({3, 2, 3, 5})},
       window,
       filter + "whose channels (3) divide the 4 channels of the image into groups, and outputs "
                "(5) that are a multiple of the groups"},
      {"Conv2D",
       {F32({8, 2, 6, 4}), F32({3, 2, 4, 5})},
       window,
       "refused: expected a height of at least 3 for a window of 3, got 2"},
      {"Conv2D",
       {F32({8, 7, 6, 4}), F32({3, 2, 4, 5})},
       {},
       "refused: expected the attribute height: [size, stride, dilation, before, after]"},
      {"FusedConv2D",
       {F32({8, 7, 6, 4}), F32({3, 2, 4, 5}), F32({5})},
       ImageWindow({{"bias", true}}),
       "float32[8,3,7,5]"},
      {"FusedConv2D",
       {F32({8, 7, 6, 4}), F32({3, 2, 4, 5}), F32({4})},
       ImageWindow({{"bias", true}}),
       "refused: expected a bias float32[5]"},
      {"FusedConv2D",
       {F32({8, 7, 6, 4}), F32({3, 2, 4, 5})},
       ImageWindow({{"bias", true}}),
       "refused: expected a third input if and only if the attribute bias is set"},
      {"Conv2DBackpropInput",
       {F32({3, 2, 4, 5}), F32({8, 3, 7, 5})},
       ImageWindow({{"image", Shape({8, 7, 6, 4})}}),
       "float32[8,7,6,4]"},
      {"Conv2DBackpropInput",
       {F32({3, 2, 4, 5}), F32({8, 3, 6, 5})},
       ImageWindow({{"image", Shape({8, 7, 6, 4})}}),
       "refused: expected a gradient of shape [8,3,7,5], got [8,3,6,5]"},
      {"Conv2DBackpropInput",
       {F32({3, 2, 4, 5}), F32({8, 3, 7, 5})},
       window,
       "refused: expected the attribute image, a shape"},
      {"Conv2DBackpropFilter",
       {F32({8, 7, 6, 4}), F32({8, 3, 7, 5})},
       ImageWindow({{"filter", Shape({3, 2, 4, 5})}}),
       "float32[3,2,4,5]"},
      {"Conv2DBackpropFilter",
       {F32({8, 7, 6, 4}), F32({8, 3, 7, 5})},
       window,
       "refused: expected the attribute filter, a shape"},
  });
}

TEST(Inference, OfPooling) {
  const Attributes window = ImageWindow();
  const Attributes image = ImageWindow({{"image", Shape({8, 7, 6, 4})}});
  Attributes dilated;
  SetWindow(dilated, {.height = {3, 1, 2}, .width = {}});
  CheckAll({"MaxPool", "AvgPool"}, {I32({8, 7, 6, 4})}, kFloats);
  for (const char* op : {"MaxPool", "AvgPool"}) {
    Check({
        {op, {F64({8, 7, 6, 4})}, window, "float64[8,3,7,4]"},
        {op,
         {F32({7, 6, 4})},
         window,
         "refused: expected images [images,height,width,channels], got [7,6,4]"},
        {op, {F32({8, 7, 6, 4})}, dilated, "refused: expected pooling windows without dilation"},
    });
  }
  Check({
      {"MaxPoolGrad",
       {F32({8, 7, 6, 4}), F32({8, 3, 7, 4}), F32({8, 3, 7, 4})},
       window,
       "float32[8,7,6,4]"},
      {"MaxPoolGrad",
       {F32({8, 7, 6, 4}), F32({8, 3, 7, 5}), F32({8, 3, 7, 4})},
       window,
       "refused: expected pooled images of shape [8,3,7,4], got [8,3,7,5]"},
      {"MaxPoolGrad",
       {F32({8, 7, 6, 4}), F32({8, 3, 7, 4}), F32({8, 3, 7})},
       window,
       "refused: expected a gradient of shape [8,3,7,4], got [8,3,7]"},
      {"AvgPoolGrad", {F32({8, 3, 7, 4})}, image, "float32[8,7,6,4]"},
      {"AvgPoolGrad",
       {F32({8, 3, 6, 4})},
       image,
       "refused: expected a gradient of shape [8,3,7,4], got [8,3,6,4]"},
      {"AvgPoolGrad",
       {F32({8, 3, 7, 4})},
       window,
       "refused: expected the attribute image, a shape"},
  });
}

TEST(Inference, OfImageTransformations) {
  const Attributes size = {{"height", int64_t{3}}, {"width", int64_t{5}}};
  const Attributes images = {{"images", Shape({8, 7, 6, 4})}};
  const char* const kTransform = "ImageProjectiveTransformV3";
  const char* const kGradient = "ImageProjectiveTransformV3Grad";
  Check({
      {kTransform, {F32({8, 7, 6, 4}), F32({8, 8})}, size, "float32[8,3,5,4]"},
      {kTransform, {F64({8, 7, 6, 4}), F64({8, 8})}, size, "float64[8,3,5,4]"},
      {kTransform,
       {F32({8, 7, 6, 4}), F64({8, 8})},
       size,
       "refused: expected inputs of one dtype; add a Cast"},
      {kTransform,
       {F32({8, 7, 6, 4}), F32({1, 8})},
       size,
       "refused: expected transforms of shape [8,8], got [1,8]"},
      {kTransform,
       {F32({7, 6, 4}), F32({7, 8})},
       size,
       "refused: expected images [images,height,width,channels], got [7,6,4]"},
      {kTransform,
       {F32({8, 7, 6, 4}), F32({8, 8})},
       {},
       "refused: expected images with 1 to 2^31 pixels, got [8,0,0,4]"},
      {kGradient, {F32({8, 3, 5, 4}), F32({8, 8})}, images, "float32[8,7,6,4]"},
      {kGradient,
       {F32({8, 3, 5, 3}), F32({8, 8})},
       images,
       "refused: expected a gradient for images of shape [8,7,6,4], got [8,3,5,3]"},
      {kGradient,
       {F32({8, 3, 5, 4}), F32({8, 8})},
       {},
       "refused: expected the attribute images, a shape"},
  });
}

}  // namespace
}  // namespace tfjob::graph
