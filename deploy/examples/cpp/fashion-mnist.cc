// Trains a classifier of clothing images. Runs alone or, unchanged, as a task of a TFJob. The
// argument is the folder for its files.
#include <tfjob/tfjob.h>

#include <iostream>
#include <string>
namespace tj = tfjob;

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "/tmp/fashion-mnist";
  tj::Model model = tj::Sequential({
      tj::Flatten{},
      tj::Dense{.units = 128, .activation = "relu"},
      tj::Dropout{.rate = 0.2},
      tj::Dense{.units = 10},
  });
  auto [train, test] = tj::data::FashionMnist("/usr/share/datasets/fashion-mnist").value();
  tj::Session session(tj::Strategy::FromEnvironment());
  tj::CompileOptions how = {.optimizer = tj::Adam{.learning_rate = 1e-3},
                            .loss = tj::SparseCategoricalCrossentropy{.from_logits = true},
                            .metrics = {"accuracy"}};
  tj::CompiledModel trained = session.Compile(model, how).value();
  tj::FitOptions options = {.batch_size = 64, .epochs = 5, .validation = &test};
  options.callbacks = {tj::BackupAndRestore{folder + "/backup"}, tj::TensorBoard{folder + "/logs"}};
  trained.Fit(train, options).value();
  std::cout << trained.Evaluate(test).value() << "\n";
  if (session.is_chief()) trained.Save(folder + "/fashion.safetensors").value();
}
