// Implements the benchmark case cnn: training the convolutional network of TensorFlow's tutorial "A
// Guide to TF Layers" (two 5×5 convolutions with 32 and 64 filters, each followed by a pooling
// layer, and then 1024 units).
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/layers/convolution.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/layers/pooling.h"
#include "runtime/model/shape.h"
#include "tests/bench/fashion_mnist.h"

namespace tfjob::bench {
namespace {

FashionMnistCase MakeCase() {
  namespace layers = model::layers;
  std::vector<model::Layer> chain = {
      {.name = "image", .config = layers::Reshape{.target_shape = {28, 28, 1}}}};
  for (const int64_t filters : {32, 64}) {
    layers::Conv2D convolution;
    convolution.filters = filters;
    convolution.window.size = {5, 5};
    convolution.window.padding = layers::PaddingKind::kSame;
    convolution.activation = model::ActivationKind::kRelu;
    chain.push_back({.name = StrCat("convolution_", filters), .config = convolution});
    chain.push_back({.name = StrCat("pooling_", filters), .config = layers::MaxPooling2D{}});
  }
  chain.push_back({.name = "flatten", .config = layers::Flatten{}});
  chain.push_back(
      {.name = "dense",
       .config = layers::Dense{.units = 1024, .activation = model::ActivationKind::kRelu}});
  chain.push_back({.name = "logits", .config = layers::Dense{.units = kClasses}});
  return {"cnn", "28x28-32c5-p2-64c5-p2-1024-10", model::Sequential("cnn", std::move(chain))};
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::FashionMnistOptions options{.batch = 64, .optimizer = "adam", .epochs = 0.16};
  CLI::App app("Trains a convolutional network on Fashion-MNIST");
  tfjob::bench::AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  return tfjob::bench::RunFashionMnist(tfjob::bench::MakeCase(), options);
}
