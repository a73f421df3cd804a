// Examples of layer.h, model.h, optimizer.h, optimizers.h, losses.h and custom_loss.h.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "tests/api/examples/working_folder.h"
#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

TEST(ModelExamples, Parts) {
  // [Input, Symbol, Layer, Functional]
  const Symbol left = Input{.shape = {32}, .name = "left"};
  const Symbol right = Input{.shape = {32}, .name = "right"};
  const Layer shared = Dense{.units = 16, .activation = "relu"};  // one layer, called twice
  const Symbol both = Concatenate{}({shared(left), shared(right)});
  const Model model = Functional({left, right}, Dense{.units = 1}(both));
  // [end]
  EXPECT_TRUE(model.status().ok());
  // [Symbol::Output]
  const Symbol steps = Input{.shape = {10, 4}};
  const Symbol last = LSTM{.units = 8, .return_state = true}(steps);
  const Symbol cell_state = last.Output(2);
  // [end]
  EXPECT_TRUE(Functional(steps, cell_state).status().ok());
  // [Symbols, Symbols::values]
  const Symbols inputs = {left, right};
  const size_t count = inputs.values().size();  // 2
  // [end]
  EXPECT_EQ(count, 2U);
  const bool residual = true;
  // [Layer::present]
  Layer activation;  // no layer
  if (residual) activation = ReLU{};
  const Symbol y = activation.present() ? activation(both) : both;
  // [end]
  EXPECT_TRUE(Functional({left, right}, y).status().ok());
}

TEST(ModelExamples, Chains) {
  // [Sequential, Model, Model::Summary, Model::name]
  const Model model =
      Sequential({Input{.shape = {28, 28}}, Flatten{}, Dense{.units = 128, .activation = "relu"},
                  Dropout{.rate = 0.2}, Dense{.units = 10}},
                 "classifier");
  std::cout << model.name() << ":\n" << model.Summary().value();
  // [end]
  EXPECT_NE(model.Summary().value().find("dense_1"), std::string::npos);
  // [Model::status]
  const Status status = Sequential({Dense{.units = -1}}).status();
  if (!status.ok()) std::cerr << status << "\n";  // names the layer and the argument
  // [end]
  EXPECT_FALSE(status.ok());
  // [Model::Frozen]
  const Model fine_tuned = model.Frozen({"dense"});  // only dense_1 is trained
  // [end]
  EXPECT_TRUE(fine_tuned.status().ok());
  // [Model::Recomputed]
  const Model small = model.Recomputed({"dense*"});  // computes these layers twice
  // [end]
  EXPECT_TRUE(small.status().ok());
  // [Model::WithDTypePolicy]
  const Model mixed = model.WithDTypePolicy("mixed_bfloat16");
  // [end]
  EXPECT_TRUE(mixed.status().ok());
  // [Model::GetLayer]
  const Layer hidden = model.GetLayer("dense").value();
  const Model encoder = Sequential({Input{.shape = {28, 28}}, Flatten{}, hidden}, "encoder");
  // [end]
  EXPECT_TRUE(encoder.status().ok());
  // [Model::Clone]
  const Symbol image = Input{.shape = {28, 28}};
  const Symbol difference = model(image) - model.Clone()(image);  // two sets of variables
  // [end]
  EXPECT_TRUE(Functional(image, difference).status().ok());
}

TEST(ModelExamples, CustomLayers) {
  // [CustomLayer, LayerVariable]
  const LayerVariable scale = {.name = "scale", .shape = {28}, .initializer = "ones"};
  const Layer scaled =
      CustomLayer{.variables = {scale},
                  .call = [](const std::vector<Symbol>& in, const std::vector<Symbol>& variables) {
                    return in[0] * variables[0];
                  }};
  const Model model = Sequential({Input{.shape = {28}}, scaled, Dense{.units = 10}});
  // [end]
  const Session session(Strategy::OneDevice());
  CompiledModel compiled = session.Compile(model, {}).value();
  EXPECT_EQ(compiled.Weights().value()[0].first, "custom_layer/scale");
}

TEST(ModelExamples, Files) {
  const WorkingFolder folder("model_examples");
  const Model model = Classifier();
  // [Model::ToJson]
  std::ofstream("model.json") << model.ToJson().value();  // for keras.models.model_from_json
  // [end]
  // [Model::Load]
  const Model loaded = Model::Load("model.json").value();
  // [end]
  EXPECT_EQ(loaded.ToJson().value(), model.ToJson().value());
}

// Trains one step.
void Trains(const CompileOptions& options, const Dataset& examples = Points(16)) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  Result<CompiledModel> model = session.Compile(Classifier(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  const Result<History> fitted = model->Fit(examples, Quietly(1));
  EXPECT_TRUE(fitted.ok()) << fitted.status();
}

TEST(OptimizerExamples, Optimizers) {
  const Loss loss = SparseCategoricalCrossentropy{.from_logits = true};
  // [Optimizer, LearningRate]
  Optimizer optimizer = "adam";  // with Keras' defaults
  const LearningRate rate = 1e-3;
  optimizer = Adam{.learning_rate = rate};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [SGD]
  optimizer = SGD{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Adagrad]
  optimizer = Adagrad{.learning_rate = 0.01};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Adam]
  optimizer = Adam{.learning_rate = 1e-3, .global_clipnorm = 1};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [RMSprop]
  optimizer = RMSprop{.learning_rate = 1e-3, .rho = 0.9};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [AdamW]
  optimizer =
      AdamW{.learning_rate = 1e-3, .weight_decay = 0.01, .exclude_from_weight_decay = {"bias"}};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Nadam]
  optimizer = Nadam{.learning_rate = 1e-3};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Adamax]
  optimizer = Adamax{.learning_rate = 1e-3};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Adadelta]
  optimizer = Adadelta{.learning_rate = 1, .rho = 0.95};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Ftrl]
  optimizer = Ftrl{.learning_rate = 0.1, .l1_regularization_strength = 0.01};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
  // [Lion]
  optimizer = Lion{.learning_rate = 1e-4};
  // [end]
  Trains({.optimizer = optimizer, .loss = loss});
}

TEST(OptimizerExamples, Schedules) {
  const Loss loss = SparseCategoricalCrossentropy{.from_logits = true};
  // [ExponentialDecay]
  LearningRate rate = ExponentialDecay{
      .initial_learning_rate = 0.1, .decay_steps = 1000, .decay_rate = 0.96, .staircase = true};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = rate}, .loss = loss});
  // [InverseTimeDecay]
  rate = InverseTimeDecay{.initial_learning_rate = 0.1, .decay_steps = 1000, .decay_rate = 0.5};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = rate}, .loss = loss});
  // [PolynomialDecay]
  rate = PolynomialDecay{
      .initial_learning_rate = 0.1, .decay_steps = 1000, .end_learning_rate = 0.01, .power = 2};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = rate}, .loss = loss});
  // [CosineDecay]
  rate = CosineDecay{
      .initial_learning_rate = 0, .decay_steps = 1000, .warmup_target = 0.1, .warmup_steps = 100};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = rate}, .loss = loss});
  // [CosineDecayRestarts]
  rate = CosineDecayRestarts{.initial_learning_rate = 0.1, .first_decay_steps = 100, .t_mul = 2};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = rate}, .loss = loss});
  // [PiecewiseConstantDecay]
  rate = PiecewiseConstantDecay{.boundaries = {1000, 2000}, .values = {0.1, 0.01, 0.001}};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = rate}, .loss = loss});
}

// The labels are rows of probabilities, or numbers, with the shape of the predictions.
Dataset Rows() {
  const Tensor x = Points(16).x;
  Tensor y(DType::kFloat32, {16, 2});
  for (size_t i = 0; i < 16; ++i) y.float32()[2 * i + i % 2] = 1;
  return data::Arrays{.x = x, .y = y};
}

TEST(LossExamples, Classes) {
  // [Loss, Loss::present]
  Loss loss;                                         // no loss
  if (!loss.present()) loss = "mean_squared_error";  // with Keras' defaults
  // [end]
  Trains({.loss = loss}, Rows());
  // [SparseCategoricalCrossentropy]
  loss = SparseCategoricalCrossentropy{.from_logits = true};  // the labels are class numbers
  // [end]
  Trains({.loss = loss});
  // [CategoricalCrossentropy]
  loss = CategoricalCrossentropy{.from_logits = true, .label_smoothing = 0.1};
  // [end]
  Trains({.loss = loss}, Rows());
  // [BinaryCrossentropy]
  loss = BinaryCrossentropy{.from_logits = true};
  // [end]
  Trains({.loss = loss}, Rows());
  // [BinaryFocalCrossentropy]
  loss = BinaryFocalCrossentropy{.gamma = 2, .from_logits = true};
  // [end]
  Trains({.loss = loss}, Rows());
  // [CategoricalFocalCrossentropy]
  loss = CategoricalFocalCrossentropy{.alpha = 0.25, .from_logits = true};
  // [end]
  Trains({.loss = loss}, Rows());
  // [CategoricalGeneralizedCrossEntropy]
  loss = CategoricalGeneralizedCrossEntropy{.q = 0.7};
  // [end]
  Trains({.loss = loss});
  // [Hinge]
  loss = Hinge{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [SquaredHinge]
  loss = SquaredHinge{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [CategoricalHinge]
  loss = CategoricalHinge{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [Circle]
  loss = Circle{.gamma = 20};  // the labels are the numbers of groups
  // [end]
  Trains({.loss = loss});
}

TEST(LossExamples, Overlaps) {
  // [Dice]
  Loss loss = Dice{};  // of all elements of a batch
  // [end]
  Trains({.loss = loss}, Rows());
  // [Tversky]
  loss = Tversky{.alpha = 0.3, .beta = 0.7, .axis = {1}};  // of each example
  // [end]
  Trains({.loss = loss}, Rows());
}

TEST(LossExamples, Sequences) {
  const Model model = Sequential({Input{.shape = {6, 2}}, Dense{.units = 4}});
  data::Arrays examples = {.x = Tensor(DType::kFloat32, {8, 6, 2}),
                           .y = Tensor(DType::kInt64, {8, 3})};
  examples.y.int64()[0] = 2;
  const Session session(Strategy::OneDevice(), {.threads = 1});
  // [CTC]
  const Loss loss = CTC{};  // the labels are lists of classes, padded with 0
  // [end]
  Result<CompiledModel> compiled = session.Compile(model, {.loss = loss});
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_TRUE(compiled->Fit(examples, Quietly(1)).ok());
}

TEST(LossExamples, Numbers) {
  // [MeanSquaredError]
  Loss loss = MeanSquaredError{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [MeanAbsoluteError]
  loss = MeanAbsoluteError{.reduction = "sum"};
  // [end]
  Trains({.loss = loss}, Rows());
  // [MeanAbsolutePercentageError]
  loss = MeanAbsolutePercentageError{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [MeanSquaredLogarithmicError]
  loss = MeanSquaredLogarithmicError{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [Huber]
  loss = Huber{.delta = 0.5};
  // [end]
  Trains({.loss = loss}, Rows());
  // [LogCosh]
  loss = LogCosh{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [Poisson]
  loss = Poisson{};
  // [end]
  Trains({.optimizer = SGD{.learning_rate = 0}, .loss = "mean_squared_error"}, Rows());
  const Session session(Strategy::OneDevice());
  EXPECT_TRUE(session.Compile(Classifier(), {.loss = loss}).ok());
  // [KLDivergence]
  loss = KLDivergence{};
  // [end]
  Trains({.loss = loss}, Rows());
  // [CosineSimilarity]
  loss = CosineSimilarity{};
  // [end]
  Trains({.loss = loss}, Rows());
}

TEST(LossExamples, Clipped) {
  // [ClippedCrossentropy]
  const Loss loss = ClippedCrossentropy{};  // of probabilities, as in TensorFlow's first tutorial
  // [end]
  const Session session(Strategy::OneDevice());
  const Model model = Sequential({Input{.shape = {2}}, Dense{.units = 2, .activation = "softmax"}});
  CompiledModel compiled = session.Compile(model, {.loss = loss}).value();
  const Result<Metrics> sparse = compiled.Evaluate(Points(8));
  const Result<Metrics> rows = compiled.Evaluate(Rows());
  EXPECT_TRUE(sparse.ok() || rows.ok()) << sparse.status() << rows.status();
}

TEST(LossExamples, Custom) {
  const Session session(Strategy::OneDevice());
  const Model network = Classifier();
  // [CustomLoss]
  const Symbol y = Input{.shape = {2}}, p = Input{.shape = {2}};  // the label, the prediction
  const Model quantile = Functional({y, p}, ops::Maximum(0.9 * (y - p), 0.1 * (p - y)));
  CompiledModel model = session.Compile(network, {.loss = CustomLoss{.values = quantile}}).value();
  // [end]
  EXPECT_TRUE(model.Evaluate(Rows()).ok());
  // [CustomMetric]
  const Symbol label = Input{.shape = {2}}, guess = Input{.shape = {2}};
  const Model near =
      Functional({label, guess}, ops::Cast(ops::Abs(label - guess) < 0.5, "float32"));
  CompiledModel measured =
      session
          .Compile(network, {.loss = "mean_squared_error",
                             .metrics = {CustomMetric{.name = "near", .values = near}}})
          .value();
  // [end]
  EXPECT_TRUE(measured.Evaluate(Rows()).value().has("near"));
}

}  // namespace
