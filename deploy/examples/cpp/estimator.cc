// Trains a linear regression as tf.estimator does. Runs alone or, unchanged, as a chief, worker, ps
// or evaluator of a TFJob: estimator.yaml.
//
//   estimator MODEL_DIR
#include <tfjob/tfjob.h>

#include <iostream>
#include <vector>
namespace tj = tfjob;

// Returns this task's part of the points on y = 2x + 10.
static tj::Result<tj::InputBatches> Points(const tj::InputContext& context) {
  std::vector<float> x, y;
  for (int i = context.input_pipeline_id; i < 1000; i += context.num_input_pipelines) {
    x.push_back(static_cast<float>(i) / 500 - 1);
    y.push_back(2 * x.back() + 10);
  }
  const auto rows = static_cast<int64_t>(x.size());
  return tj::InputBatches{
      .examples = tj::data::Arrays{.y = tj::Tensor::Of({rows, 1}, y).value(),
                                   .inputs = {{"x", tj::Tensor::Of({rows, 1}, x).value()}}},
      .batch_size = 10};
}

int main(int argc, char** argv) {
  const tj::Estimator regressor =
      tj::LinearRegressor{.feature_columns = {{"x"}},
                          .optimizer = tj::SGD{.learning_rate = 0.05},
                          .config = {.model_dir = argc > 1 ? argv[1] : "/model",
                                     .save_checkpoints_steps = 500,
                                     .session = {.log_level = "info"}}};
  // In a ps and in an evaluator, the process ends here.
  const tj::Metrics last =
      tj::TrainAndEvaluate(regressor, {.input_fn = Points, .max_steps = 2000},
                           {.input_fn = Points, .start_delay_secs = 0, .throttle_secs = 0})
          .value();
  std::cout << "the end: " << last << "\n";
}
