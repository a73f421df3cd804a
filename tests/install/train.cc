// Implements a user's program: trains a small classifier, and exits with 0 if the classifier has
// learned and its files can be read again. The argument is a folder for the files.
#include <tfjob/tfjob.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
namespace tj = tfjob;

// Returns points. Points with x0 > x1 have the class 1, and all others the class 0.
tj::data::Arrays Points(int64_t examples) {
  tj::Tensor x(tj::DType::kFloat32, {examples, 2}), y(tj::DType::kInt64, {examples});
  uint32_t state = 12345;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
  };
  for (int64_t i = 0; i < examples; ++i) {
    const float a = next(), b = next();
    x.float32()[static_cast<size_t>(2 * i)] = a;
    x.float32()[static_cast<size_t>(2 * i + 1)] = b;
    y.int64()[static_cast<size_t>(i)] = a > b ? 1 : 0;
  }
  return {.x = x, .y = y};
}

// A callback class that the program defines, and that the library calls.
class Epochs : public tj::CallbackHooks {
 public:
  tj::Status OnEpochEnd(tj::FitControl&, int64_t, const tj::Metrics&) override {
    ++count;
    return {};
  }
  int count = 0;
};

void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "not true: " << what << "\n";
  std::exit(1);
}

int main(int argc, char** argv) {
  Check(argc == 2, "the argument is a folder");
  const std::string folder = argv[1];
  const tj::Model model = tj::Sequential({
      tj::Input{.shape = {2}},
      tj::Dense{.units = 8, .activation = "tanh"},
      tj::Dense{.units = 2},
  });
  const tj::CompileOptions how = {.optimizer = tj::Adam{.learning_rate = 0.02},
                                  .loss = tj::SparseCategoricalCrossentropy{.from_logits = true},
                                  .metrics = {"accuracy"}};
  tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  tj::CompiledModel trained = session.Compile(model, how).value();
  const auto epochs = std::make_shared<Epochs>();
  trained.Fit(Points(256), {.epochs = 20, .callbacks = {epochs}}).value();
  Check(epochs->count == 20, "the callback was called once per epoch");

  const tj::Metrics metrics = trained.Evaluate(Points(256)).value();
  std::cout << metrics << "\n";
  Check(metrics["accuracy"] > 0.9, "the accuracy is above 0.9");

  // The library must find the program tfjob-hdf5, which writes the .keras file.
  trained.Save(folder + "/points.keras").value();
  tj::CompiledModel again = session.Load(folder + "/points.keras").value();
  Check(again.Evaluate(Points(256)).value()["accuracy"] == metrics["accuracy"],
        "a model that is saved and loaded computes the same");

  const tj::Status error = trained.Save(folder + "/points.txt");
  Check(error.code() == tj::StatusCode::kInvalidArgument, "an unknown format is an error");
}
