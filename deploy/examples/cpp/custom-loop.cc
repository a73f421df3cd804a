// Trains a classifier with the custom training loop of TensorFlow's guide to distributed training,
// alone or as a job of several tasks. All tasks share each batch. If a task is lost, the others end
// with an error; once all tasks have been started again, they continue from the last checkpoint.
#include <tfjob/tfjob.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>
namespace tj = tfjob;
namespace ops = tj::ops;

namespace {

constexpr int64_t kExamples = 1003;

// Returns points in the plane. The class of a point is the third of the circle in which it lies.
tj::data::Arrays Points() {
  std::vector<float> points, classes;
  for (int64_t i = 0; i < kExamples; ++i) {
    const double angle = std::fmod(static_cast<double>(i) * 2.399963, 2 * M_PI);
    const double radius = 0.5 + static_cast<double>(i % 100) / 100;
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    for (int c = 0; c < 3; ++c)
      classes.push_back(static_cast<int>(angle / (2 * M_PI / 3)) == c ? 1.0F : 0.0F);
  }
  return {.x = tj::Tensor::Of({kExamples, 2}, points).value(),
          .y = tj::Tensor::Of({kExamples, 3}, classes).value()};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string checkpoints = argc > 1 ? argv[1] : "/tmp/custom-loop";
  const int64_t epochs = argc > 2 ? std::stoll(argv[2]) : 20;

  const tj::Session session(tj::Strategy::FromEnvironment());
  const int64_t global_batch_size = 16 * session.NumReplicasInSync();
  tj::CompiledModel model =
      session
          .Compile(
              tj::Sequential({tj::Input{.shape = {2}}, tj::Dense{.units = 32, .activation = "relu"},
                              tj::Dense{.units = 3}}),
              {.optimizer = tj::Adam{.learning_rate = 0.01}})
          .value();
  tj::Function train_step =
      session
          .Function({{.shape = {2}}, {.shape = {3}}},
                    [&](tj::Step& step, const std::vector<tj::Symbol>& inputs) {
                      const tj::Symbol features = inputs[0], labels = inputs[1];
                      const tj::Symbol logits = step.Call(model, features);
                      const tj::Symbol cross_entropy = step.SoftmaxCrossEntropy(labels, logits);
                      const tj::Symbol loss = ops::Sum(cross_entropy) / step.NumExamples();
                      const std::vector<tj::Symbol> variables = step.TrainableVariables(model);
                      step.Apply(model, step.Gradients(loss, variables));
                      step.Return("mean_loss", step.Reduce(tj::Reduction::kMean, cross_entropy, 0));
                    })
          .value();

  session.Barrier().value();
  const tj::Status restored = model.LoadCheckpoint(checkpoints);
  if (restored.code() != tj::StatusCode::kNotFound) restored.value();
  const tj::data::Arrays points = Points();
  const int64_t steps_per_epoch = (kExamples + global_batch_size - 1) / global_batch_size;
  for (int64_t epoch = model.step() / steps_per_epoch; epoch < epochs; ++epoch) {
    double mean_loss = 0;
    for (const tj::Batch& batch :
         session.Distribute(points, {.batch_size = global_batch_size, .initial_epoch = epoch})
             .value())
      mean_loss = train_step(batch).value().number("mean_loss");
    if (!session.is_chief()) continue;
    model.SaveCheckpoint(checkpoints).value();
    std::cout << "epoch " << epoch + 1 << ", step " << model.step() << ": loss " << mean_loss
              << std::endl;
  }
}
