// Implements the benchmark case mlp: training a multi-layer perceptron.
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tests/bench/fashion_mnist.h"

namespace tfjob::bench {
namespace {

FashionMnistCase MakeCase(const std::vector<int64_t>& hidden) {
  std::string shape = "784";
  for (const int64_t units : hidden) shape += StrCat("-", units);
  return {"mlp", StrCat(shape, "-", kClasses), MlpModel(hidden)};
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
