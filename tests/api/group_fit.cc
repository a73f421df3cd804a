// Trains and validates, alone or as a task of a job, and prints a line for each epoch.
#include <tfjob/tfjob.h>

#include <cstdio>

#include "tests/api/programs.h"

int main() {
  tj::Session session(tj::Strategy::MultiWorkerMirrored(), {.threads = 1});
  const tj::Model model =
      tj::Sequential({tj::Input{.shape = {2}}, tj::Dense{.units = 8, .activation = "tanh"},
                      tj::Dense{.units = 1, .activation = "sigmoid"}});
  tj::CompiledModel compiled = session
                                   .Compile(model, {.optimizer = tj::Adam{.learning_rate = 0.02},
                                                    .loss = "binary_crossentropy",
                                                    .metrics = {"binary_accuracy", "auc"}})
                                   .value();
  tj::data::Arrays train = Points(90), test = Points(50);
  for (tj::data::Arrays* points : {&train, &test}) {
    tj::Tensor labels(tj::DType::kFloat32, {points->y.shape()[0], 1});
    for (size_t i = 0; i < labels.float32().size(); ++i)
      labels.float32()[i] = static_cast<float>(points->y.int64()[i]);
    points->y = labels;
  }
  const tj::Dataset validation = test;
  tj::FitOptions options = Quietly(4);
  options.batch_size = 24;
  options.validation = &validation;
  options.validation_batch_size = 8;  // 7 batches, so the parts of three tasks differ
  options.validation_freq = 2;
  const tj::History history = compiled.Fit(train, options).value();
  for (size_t i = 0; i < history.values.at("val_loss").size(); ++i) {
    std::printf("validated: %.9f %.9f %.9f\n", history.values.at("val_loss")[i],
                history.values.at("val_binary_accuracy")[i], history.values.at("val_auc")[i]);
  }
  return 0;
}
