// Tests the settings of compile() and the state of optimizers in files of tf.keras 2. The settings
// and the names of variables are those that tf_keras 2.21 writes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/io/hdf5_file.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/compile_config.h"
#include "runtime/model/keras/optimizer_state.h"

namespace tfjob::keras {
namespace {

std::string OptimizerOf(const std::string& optimizer) {
  const auto config =
      ParseJson(StrCat(R"({"keras_version": "2.21.0", "optimizer": )", optimizer, "}"), "test");
  EXPECT_TRUE(config.ok()) << config.status();
  const StatusOr<Json> keys = OptimizerKeys(*config);
  return keys.ok() ? PrintJson(*keys) : std::string(Message(keys.status()));
}

std::string Objective(const std::string& compiled, const std::vector<std::string>& outputs) {
  Json config = *ParseJson(compiled, "test");
  config["keras_version"] = "2.8.0";
  const StatusOr<Json> keys = ObjectiveKeys(config, outputs);
  return keys.ok() ? PrintJson(*keys) : std::string(Message(keys.status()));
}

TEST(Keras2Settings, OptimizersHaveTheirHyperParameters) {
  EXPECT_EQ(OptimizerOf(R"({"class_name": "Custom>AdamW", "config": {"name": "AdamW",
              "weight_decay": 0.004, "clipnorm": null, "use_ema": false, "ema_momentum": 0.99,
              "jit_compile": false, "is_legacy_optimizer": false, "learning_rate": {"module":
              "keras.optimizers.schedules", "class_name": "ExponentialDecay", "config":
              {"initial_learning_rate": 0.05, "decay_steps": 3, "decay_rate": 0.5, "name": null},
              "registered_name": null}, "beta_1": 0.9}})"),
            R"({"beta_1":0.9,"learning_rate":0.05,"learning_rate_schedule":{"decay_rate":0.5,)"
            R"("decay_steps":3,"name":"exponential_decay"},"name":"adamw","weight_decay":0.004})");
  EXPECT_EQ(OptimizerOf(R"({"class_name": "ExperimentalAdam", "config": {"lr": 0.5}})"),
            R"({"learning_rate":0.5,"name":"adam"})");
  EXPECT_EQ(OptimizerOf(R"({"class_name": "SGD", "config": {"name": "SGD", "learning_rate": 0.25,
              "decay": 0.0, "momentum": 0.5, "nesterov": true}})"),
            R"({"learning_rate":0.25,"momentum":0.5,"name":"sgd","nesterov":true})");
  EXPECT_EQ(OptimizerOf(R"("adam")"), R"({"name":"adam"})");
}

TEST(Keras2Settings, DecayIsAScheduleOfInverseTime) {
  EXPECT_EQ(OptimizerOf(R"({"class_name": "SGD", "config": {"learning_rate": 0.25,
              "decay": 0.1}})"),
            R"({"learning_rate":0.25,"learning_rate_schedule":{"decay_rate":0.1,"decay_steps":1,)"
            R"("name":"inverse_time_decay","staircase":false},"name":"sgd"})");
  EXPECT_EQ(OptimizerOf(R"({"class_name": "SGD", "config": {"decay": 0.1, "learning_rate":
              {"class_name": "CosineDecay", "config": {}}}})"),
            "compile_config.optimizer.config.decay: 0.1 together with a schedule is not supported");
}

TEST(Keras2Settings, OptimizersThatComputeSomethingElseAreErrors) {
  const auto error = [](const std::string& optimizer) {
    const std::string message = OptimizerOf(optimizer);
    return message.substr(0, message.find(", unlike ours"));
  };
  EXPECT_EQ(error(R"({"class_name": "Nadam", "config": {"decay": 0.004}})"),
            "compile_config.optimizer: Nadam of tf.keras 2 has a different momentum schedule");
  EXPECT_EQ(error(R"({"class_name": "Custom>Nadam", "config": {"is_legacy_optimizer": false}})"),
            "compile_config.optimizer: Nadam of tf.keras 2 has a different momentum schedule");
  EXPECT_EQ(error(R"("nadam")"),
            "compile_config.optimizer: Nadam of tf.keras 2 has a different momentum schedule");
  EXPECT_EQ(error(R"("rmsprop")"), R"({"name":"rmsprop"})");
  EXPECT_EQ(error(R"({"class_name": "RMSprop", "config": {"momentum": 0.0}})"),
            "compile_config.optimizer: RMSprop of tf.keras.optimizers.legacy without momentum adds "
            "epsilon to the root, not to the mean square");
  EXPECT_EQ(error(R"({"class_name": "Adagrad", "config": {"initial_accumulator_value": 0.0}})"),
            "compile_config.optimizer: Adagrad of tf.keras.optimizers.legacy adds epsilon to the "
            "root, not to the accumulator");
  EXPECT_EQ(error(R"({"class_name": "Adagrad", "config": {"epsilon": 1e-7}})"),
            R"({"epsilon":1e-07,"name":"adagrad"})");
  for (const char* name : {"RMSprop", "Adagrad"}) {
    const std::string settings = StrCat(R"({"class_name": "Custom>)", name,
                                        R"(", "config": {"is_legacy_optimizer": false}})");
    EXPECT_EQ(error(settings).substr(0, 8), R"({"name":)") << name;
  }
  EXPECT_EQ(error(R"({"class_name": "Custom>LossScaleOptimizerV3", "config": {}})").substr(0, 44),
            "there is no optimizer \"LossScaleOptimizerV3\"");
}

TEST(Keras2Settings, MetricsOfFunctionsHaveTheNamesThatKerasReports) {
  EXPECT_EQ(Objective(R"({"loss": {"class_name": "BinaryCrossentropy", "config": {"reduction":
              "auto", "name": "binary_crossentropy", "from_logits": true, "axis": -1}},
              "metrics": [[{"class_name": "MeanMetricWrapper", "config": {"name": "acc", "dtype":
              "float32", "fn": "binary_accuracy"}}, {"class_name": "MeanMetricWrapper", "config":
              {"name": "mae", "fn": "mean_absolute_error"}}, {"class_name": "AUC", "config":
              {"name": "auc", "curve": "PR"}}]], "loss_weights": [0.5]})",
                      {"y"}),
            R"({"loss":{"from_logits":true,"name":"binary_crossentropy"},"loss_weight":0.5,)"
            R"("metrics":[{"as":"acc","name":"binary_accuracy"},{"as":"mae",)"
            R"("name":"mean_absolute_error"},{"curve":"PR","name":"auc"}]})");
  EXPECT_EQ(Objective(R"({"loss": {"a": "mse", "b": "mae"}, "metrics": {"b": {"class_name":
              "MeanMetricWrapper", "config": {"name": "mse", "fn": "mean_squared_error"}}}})",
                      {"a", "b"}),
            R"({"outputs":{"a":{"loss":{"name":"mean_squared_error"}},"b":{"loss":{"name":)"
            R"("mean_absolute_error"},"metrics":[{"as":"mse","name":"mean_squared_error"}]}}})");
  EXPECT_EQ(Objective(R"({"loss": "mse", "metrics": [[{"class_name": "MeanMetricWrapper", "config":
              {"name": "c", "fn": "cosine_similarity"}}]]})",
                      {"y"})
                .substr(0, 74),
            "compile_config.metrics[0][0]: the file does not say whether the function c");
}

constexpr char kModel[] = R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
  {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 3], "name": "x"}},
  {"class_name": "Dense", "config": {"units": 2, "name": "a"}}]}, "keras_version": "2.21.0"})";

class Keras2StateTest : public testing::Test {
 protected:
  // Adds a variable of the optimizer, all elements of which have the same value.
  void Add(const std::string& name, const Shape& shape, float value) {
    Tensor tensor(DType::kFloat32, shape);
    for (float& element : tensor.data<float>()) element = value;
    Add(name, tensor);
  }
  void Add(const std::string& name, const Tensor& tensor) {
    names_.push_back(name);
    datasets_.emplace_back(StrCat("optimizer_weights/", name), tensor);
  }
  StatusOr<OptimizerState> Read(const optimizer::Optimizer& optimizer) {
    return Read(optimizer, {{"", {{"keras_version", "2.21.0"}}},
                            {"optimizer_weights", {{"weight_names", names_}}}});
  }
  StatusOr<OptimizerState> Read(const optimizer::Optimizer& optimizer, const Json& attributes) {
    StatusOr<io::MemoryFile> file = io::MakeHdf5("test", datasets_, attributes);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(WriteFileAtomically(path_, *file->Map()), OkStatus());
    return ReadOptimizerState(path_, model_, variables_, optimizer);
  }
  static float First(const OptimizerState& state, const std::string& variable,
                     const std::string& slot) {
    return state.slots.at(variable).at(slot).data<float>()[0];
  }

  const std::string path_ = testing::TempDir() + "/keras2.h5";
  const model::Model model_ = *model::ReadKerasJson(kModel, "the model");
  const std::vector<model::VariableSpec> variables_ =
      *model::Variables(model_, model::Features({3}));
  io::NamedTensors datasets_;
  std::vector<std::string> names_;
};

TEST_F(Keras2StateTest, LegacyOptimizersWriteOneSlotAfterTheOther) {
  auto rmsprop = optimizer::Optimizer::Default(optimizer::Kind::kRmsprop);
  rmsprop.momentum = 0.5;
  rmsprop.centered = true;
  Add("RMSprop/iter:0", Tensor::Scalar<int64_t>(7));
  float value = 1;
  for (const char* slot : {"rms", "momentum", "mg"}) {
    Add(StrCat("RMSprop/a/kernel/", slot, ":0"), {3, 2}, value++);
    Add(StrCat("RMSprop/a/bias/", slot, ":0"), {2}, value++);
  }
  const StatusOr<OptimizerState> state = Read(rmsprop);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->iterations, 7);
  EXPECT_EQ(First(*state, "a/kernel", "velocity"), 1);
  EXPECT_EQ(First(*state, "a/bias", "momentum"), 4);
  EXPECT_EQ(First(*state, "a/kernel", "average_gradient"), 5);
  // The same file does not fit another optimizer.
  EXPECT_EQ(Message(Read(optimizer::Optimizer::Default(optimizer::Kind::kSgd)).status()),
            StrCat(path_, ": its optimizer has 7 variables, but SGD has 1 for this model"));
  names_.back() = "RMSprop/a/bias/other:0";
  datasets_.back().first = "optimizer_weights/RMSprop/a/bias/other:0";
  EXPECT_EQ(Message(Read(rmsprop).status()),
            StrCat(path_, ": its optimizer has no mg of trained variable 2, unlike RMSprop for ",
                   "this model"));
}

// Legacy optimizers create their variables, also the number of steps, in the first step.
TEST_F(Keras2StateTest, ACompiledModelThatWasNotTrainedStartsAfresh) {
  const auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  datasets_.emplace_back("model_weights/a/bias", Tensor(DType::kFloat32, {2}));
  const auto state =
      Read(adam, {{"", {{"keras_version", "2.8.0"}, {"training_config", R"({"loss": "mse"})"}}}});
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->iterations, 0);
  EXPECT_TRUE(state->slots.empty());
  const StatusOr<OptimizerState> none = Read(adam, {{"", {{"keras_version", "2.8.0"}}}});
  EXPECT_EQ(Message(none.status()),
            StrCat(path_, " has no state of an optimizer; to let the optimizer start afresh, set ",
                   "optimizer.name, but not model.optimizer_state, in the training file or, in ",
                   "the API, use Model::Load and compile the model"));
}

TEST_F(Keras2StateTest, NewerOptimizersSaveNoLearningRate) {
  Add("iteration:0", Tensor::Scalar<int64_t>(3));
  Add("Adam/m/a/kernel:0", {3, 2}, 1);
  Add("Adam/v/a/kernel:0", {3, 2}, 2);
  Add("Adam/m/a/bias:0", {2}, 3);
  Add("Adam/v/a/bias:0", {2}, 4);
  const auto state = Read(optimizer::Optimizer::Default(optimizer::Kind::kAdam));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(First(*state, "a/kernel", "velocity"), 2);
  EXPECT_EQ(First(*state, "a/bias", "momentum"), 3);
}

TEST_F(Keras2StateTest, TheUnusedSlotOfSgdIsIgnored) {
  Add("iteration:0", Tensor::Scalar<int64_t>(3));
  Add("SGD/m/a/kernel:0", {3, 2}, 1);
  Add("SGD/m/a/bias:0", {2}, 3);
  const auto state = Read(optimizer::Optimizer::Default(optimizer::Kind::kSgd));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->iterations, 3);
  EXPECT_TRUE(state->slots.empty());
  Add("SGD/more:0", {2}, 3);
  EXPECT_EQ(Message(Read(optimizer::Optimizer::Default(optimizer::Kind::kSgd)).status()),
            StrCat(path_, ": its optimizer has 4 variables, but SGD has 1 for this model"));
}

}  // namespace
}  // namespace tfjob::keras
