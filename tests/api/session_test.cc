// Tests compiled models: the arguments that Compile accepts, and the results of models.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/api/programs.h"

namespace {

TEST(Functional, InputsAndOutputsHaveNames) {
  const tj::Symbol a = tj::Input{.shape = {2}, .name = "a"};
  const tj::Symbol b = tj::Input{.shape = {3}, .name = "b"};
  const tj::Symbol both = tj::Concatenate{}({a, b});
  const tj::Model model = tj::Functional({a, b}, {tj::Dense{.units = 1, .name = "sum"}(both),
                                                  tj::Dense{.units = 1, .name = "first"}(a)});
  tj::CompiledModel compiled =
      tj::Session(tj::Strategy::OneDevice())
          .Compile(model, {.optimizer = "sgd",
                           .outputs = {{"sum", {.loss = "mean_squared_error"}},
                                       {"first",
                                        {.loss = tj::Huber{.delta = 0.5},
                                         .loss_weight = 2,
                                         .metrics = {"mean_absolute_error"}}}}})
          .value();
  const auto zeros = [](int64_t width) { return tj::Tensor(tj::DType::kFloat32, {8, width}); };
  const tj::data::Arrays arrays = {.inputs = {{"a", zeros(2)}, {"b", zeros(3)}},
                                   .targets = {{"sum", zeros(1)}, {"first", zeros(1)}}};
  const auto history = compiled.Fit(arrays, Quietly(1));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(history->values.contains("first_mean_absolute_error"));
  EXPECT_TRUE(history->values.contains("sum_loss"));
  const auto outputs = compiled.Predict({{"a", zeros(2)}, {"b", zeros(3)}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->size(), 2U);
  EXPECT_EQ(outputs->at("sum").shape(), (std::vector<int64_t>{8, 1}));
  EXPECT_NE(compiled.Predict(zeros(2)).status().message().find("2 outputs"), std::string::npos);
  EXPECT_FALSE(compiled.Predict({{"a", zeros(2)}}).ok());
}

TEST(Functional, AModelAtAnOutputIsTheCallThatIsMeant) {
  const tj::Symbol a = tj::Input{.shape = {2}};
  const tj::Model block =
      tj::Functional(a, tj::Dense{.units = 2, .activation = "tanh"}(a), "block");
  const tj::Symbol x = tj::Input{.shape = {2}};
  const auto compiled = [](const tj::Model& model) {
    return tj::Session(tj::Strategy::OneDevice())
        .Compile(model, {.optimizer = "sgd", .loss = "mean_squared_error"})
        .value();
  };
  // With equal seeds and names, the variables are equal.
  tj::CompiledModel once = compiled(tj::Functional(x, block(x)));
  tj::CompiledModel twice = compiled(tj::Functional(x, block(block(x))));
  EXPECT_EQ(WeightsOf(once), WeightsOf(twice));
  const tj::Tensor points = Points(8).x;
  const tj::Tensor expected = once.Predict(once.Predict(points).value()).value();
  const tj::Tensor got = twice.Predict(points).value();
  for (size_t i = 0; i < 16; ++i) EXPECT_FLOAT_EQ(got.float32()[i], expected.float32()[i]) << i;
}

TEST(Compile, AModelWithAnOpenLengthHasItsVariablesAtOnce) {
  const auto compiled = [](const std::vector<tj::Layer>& layers) {
    return Compiled(tj::Sequential(layers));
  };
  const tj::CompiledModel recurrent = compiled(
      {tj::Input{.shape = {-1, 4}}, tj::LSTM{.units = 3}, tj::Dense{.units = 2, .name = "logits"}});
  EXPECT_EQ(recurrent.Weights().value().size(), 5U);
  const std::string path = Temp("open.safetensors");
  ASSERT_TRUE(recurrent.Save(path).ok());
  tj::CompiledModel other = recurrent;
  EXPECT_TRUE(other.LoadWeights(path).ok());
  // In this model, the shape of the kernel depends on the length, so the variables cannot be
  // created yet.
  const tj::CompiledModel flat =
      compiled({tj::Input{.shape = {-1, 4}}, tj::Flatten{}, tj::Dense{.units = 2}});
  EXPECT_EQ(flat.Weights().status().code(), tj::StatusCode::kFailedPrecondition);
}

TEST(Compile, ErrorsSayWhatToChange) {
  const tj::Session session(tj::Strategy::OneDevice());
  const auto error = [&](const tj::Model& model, const tj::CompileOptions& options) {
    return session.Compile(model, options).status().message();
  };
  tj::CompileOptions options = Options();
  options.optimizer = tj::Adam{.learning_rate = -1};
  EXPECT_EQ(error(Classifier(), options),
            "optimizer.learning_rate: expected a value of at least 0, got -1.0");
  options = Options();
  options.metrics = {"acuracy"};
  EXPECT_NE(error(Classifier(), options).find("acuracy"), std::string::npos);
  options = Options();
  options.outputs = {{"nothing", {.loss = "mean_squared_error"}}};
  EXPECT_NE(error(Classifier(), options).find("outputs.nothing: the model has no such output"),
            std::string::npos);
  EXPECT_NE(error(tj::Model(), Options()).find("there is no model"), std::string::npos);
  EXPECT_NE(tj::Session(tj::Strategy::Mirrored(0))
                .Compile(Classifier(), Options())
                .status()
                .message()
                .find("1 to 256 devices"),
            std::string::npos);
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice(), {.device = "gpu"})
                .Compile(Classifier(), Options())
                .status()
                .message()
                .find("device"),
            std::string::npos);
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice(), {.log_level = "loud"})
                .Compile(Classifier(), Options())
                .status()
                .message()
                .find("log_level"),
            std::string::npos);
}

TEST(Compile, OptimizersAndSchedulesHaveTheirOptions) {
  tj::CompileOptions options = Options();
  options.optimizer =
      tj::SGD{.learning_rate =
                  tj::CosineDecay{.initial_learning_rate = 0.5, .decay_steps = 100, .alpha = 0.1},
              .momentum = 0.9,
              .nesterov = true,
              .clipnorm = 1.0};
  EXPECT_TRUE(tj::Session(tj::Strategy::OneDevice()).Compile(Classifier(), options).ok());
  options.optimizer = tj::AdamW{.weight_decay = 0.01, .exclude_from_weight_decay = {"bias"}};
  EXPECT_TRUE(tj::Session(tj::Strategy::OneDevice()).Compile(Classifier(), options).ok());
  options.optimizer = tj::SGD{.learning_rate = tj::ExponentialDecay{.decay_rate = 0.5}};
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice())
                .Compile(Classifier(), options)
                .status()
                .message()
                .find("decay_steps"),
            std::string::npos);
}

TEST(Predict, ChecksItsInput) {
  tj::CompiledModel model = Compiled();
  EXPECT_EQ(model.Predict(tj::Tensor()).status().message(), "there is no array of examples");
  EXPECT_NE(model.Predict(tj::Tensor(tj::DType::kFloat32, {4, 3}))
                .status()
                .message()
                .find("the model expects [2]"),
            std::string::npos);
  // Bytes are converted to float32.
  EXPECT_TRUE(model.Predict(tj::Tensor(tj::DType::kUInt8, {4, 2}), {.scale = 1.0 / 255}).ok());
}

TEST(Strategy, TheEnvironmentNamesTheJob) {
  unsetenv("TF_CONFIG");
  EXPECT_TRUE(tj::Strategy::FromEnvironment().status().ok());
  EXPECT_TRUE(tj::Session().is_chief());
  EXPECT_TRUE(tj::Session().ServeVariables().ok()) << "this process is no ps";
  setenv("TF_CONFIG",
         R"({"cluster":{"ps":["a:1"],"worker":["b:1"]},"task":{"type":"ps","index":0}})", 1);
  const tj::Strategy server = tj::Strategy::FromEnvironment();
  EXPECT_TRUE(server.status().ok()) << server.status();
  EXPECT_FALSE(server.is_chief());
  EXPECT_EQ(server.task_type(), "ps");
  EXPECT_EQ(server.task_index(), 0);
  setenv("TF_CONFIG", "{", 1);
  const tj::Session session;
  EXPECT_NE(session.Compile(Classifier(), Options()).status().message().find("TF_CONFIG"),
            std::string::npos);
  unsetenv("TF_CONFIG");
}

TEST(Strategy, OptionsAreThoseOfTheTrainingFile) {
  unsetenv("TF_CONFIG");
  const tj::Strategy servers = tj::Strategy::ParameterServer({.mode = "sync"});
  EXPECT_TRUE(servers.status().ok()) << servers.status();
  EXPECT_EQ(servers.name(), "parameter_server");
  EXPECT_NE(
      tj::Strategy::ParameterServer({.mode = "fast"}).status().message().find("strategy.mode"),
      std::string::npos);
  EXPECT_NE(tj::Strategy::ParameterServer({.shard_bytes = -1})
                .status()
                .message()
                .find("strategy.shard_bytes"),
            std::string::npos);
  EXPECT_NE(tj::Strategy::MultiWorkerMirrored({.transport = "pigeons"})
                .status()
                .message()
                .find("strategy.transport"),
            std::string::npos);
  EXPECT_NE(tj::Strategy::MultiWorkerMirrored({.compression = "fp16"})
                .status()
                .message()
                .find("strategy.compression: expected one of none, bfloat16"),
            std::string::npos);
  EXPECT_TRUE(tj::Strategy::MultiWorkerMirrored({.compression = "bfloat16"}).status().ok());
  EXPECT_TRUE(tj::Strategy::MultiWorkerMirrored({.implementation = "ring"}).status().ok());
  const tj::Session ring(
      tj::Strategy::MultiWorkerMirrored({.implementation = "ring", .compression = "bfloat16"}));
  EXPECT_NE(ring.Compile(Classifier(), Options())
                .status()
                .message()
                .find("strategy.compression: expected none"),
            std::string::npos);
  // max_staleness can be set only in asynchronous mode.
  const tj::Session session(tj::Strategy::ParameterServer({.mode = "sync", .max_staleness = 3}));
  EXPECT_NE(session.Compile(Classifier(), Options()).status().message().find("max_staleness"),
            std::string::npos);
}

TEST(Strategy, AGroupOfOneTrainsAndServersAreNeeded) {
  unsetenv("TF_CONFIG");
  const auto fitted = [](const tj::Strategy& strategy) {
    return tj::Session(strategy, {.threads = 1})
        .Compile(Classifier(), Options())
        .value()
        .Fit(Points(64), Quietly(1))
        .status();
  };
  EXPECT_TRUE(fitted(tj::Strategy::MultiWorkerMirrored()).ok());
  EXPECT_NE(fitted(tj::Strategy::ParameterServer()).message().find("needs ps tasks"),
            std::string::npos);
}

}  // namespace
