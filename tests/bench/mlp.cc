// Implements the benchmark case mlp: training a multi-layer perceptron.
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/layers/dense.h"
#include "runtime/model/shape.h"
#include "tests/bench/fashion_mnist.h"

namespace tfjob::bench {
namespace {

FashionMnistCase MakeCase(const std::vector<int64_t>& hidden) {
  std::string shape = "784";
  std::vector<model::Layer> layers = {{.name = "flatten", .config = model::layers::Flatten{}}};
  for (size_t i = 0; i < hidden.size(); ++i) {
    shape += StrCat("-", hidden[i]);
    layers.push_back({.name = StrCat("dense_", i),
                      .config = model::layers::Dense{.units = hidden[i],
                                                     .activation = model::ActivationKind::kRelu}});
  }
  layers.push_back({.name = "logits", .config = model::layers::Dense{.units = kClasses}});
  return {"mlp", StrCat(shape, "-", kClasses), model::Sequential("mlp", std::move(layers))};
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::FashionMnistOptions options;
  std::vector<int64_t> hidden = {512, 512};
  CLI::App app("Trains a multi-layer perceptron on Fashion-MNIST");
  tfjob::bench::AddFlags(app, options);
  app.add_option("--hidden", hidden, "units of the hidden layers: 512,512")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536));
  CLI11_PARSE(app, argc, argv);
  return tfjob::bench::RunFashionMnist(tfjob::bench::MakeCase(hidden), options);
}
