// Tests training with losses that programs define.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/api/programs.h"

namespace {

// y = 2 x0 - x1, with one value per example.
tj::data::Arrays Plane(int64_t examples) {
  const tj::Tensor x = Points(examples).x;
  tj::Tensor y(tj::DType::kFloat32, {examples});
  for (size_t i = 0; i < static_cast<size_t>(examples); ++i)
    y.float32()[i] = 2 * x.float32()[2 * i] - x.float32()[2 * i + 1];
  return {.x = x, .y = y};
}

tj::Model Regression() {
  return tj::Sequential({tj::Input{.shape = {2}}, tj::Dense{.units = 1}});
}

tj::Result<tj::CompiledModel> CompiledWith(const tj::Loss& loss,
                                           const tj::Model& model = Regression()) {
  return tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
      .Compile(model, {.optimizer = tj::Adam{.learning_rate = 0.05}, .loss = loss});
}

using Values = tj::Symbol(const tj::Symbol& labels, const tj::Symbol& predictions);

tj::Model LossOf(Values values) {
  const tj::Symbol y = tj::Input{.shape = {1}}, p = tj::Input{.shape = {1}};
  return tj::Functional({y, p}, values(y, p));
}

tj::Symbol Squares(const tj::Symbol& y, const tj::Symbol& p) {
  return tj::ops::Square(y - p);
}

TEST(CustomLoss, TrainsAsTheSameBuiltInLoss) {
  tj::CompiledModel own = CompiledWith(tj::CustomLoss{.values = LossOf(Squares)}).value();
  tj::CompiledModel built_in = CompiledWith("mean_squared_error").value();
  const tj::data::Arrays plane = Plane(50);
  const auto trained = own.Fit(plane, Quietly(3));
  ASSERT_TRUE(trained.ok()) << trained.status();
  const auto expected = built_in.Fit(plane, Quietly(3)).value();
  EXPECT_EQ(WeightsOf(own), WeightsOf(built_in));
  EXPECT_EQ(trained->values.at("loss"), expected.values.at("loss"));
  EXPECT_EQ(own.Evaluate(plane).value()["loss"], built_in.Evaluate(plane).value()["loss"]);
}

TEST(CustomLoss, IsWeightedLikeOthers) {
  tj::data::Arrays plane = Plane(20);
  plane.sample_weight = tj::Tensor(tj::DType::kFloat32, {20});
  for (size_t i = 0; i < 20; ++i) plane.sample_weight.float32()[i] = static_cast<float>(i % 3);
  tj::CompiledModel own = CompiledWith(tj::CustomLoss{.values = LossOf(Squares)}).value();
  tj::CompiledModel built_in = CompiledWith("mean_squared_error").value();
  ASSERT_TRUE(own.Fit(plane, Quietly(2)).ok());
  ASSERT_TRUE(built_in.Fit(plane, Quietly(2)).ok());
  EXPECT_EQ(WeightsOf(own), WeightsOf(built_in));
}

TEST(CustomLoss, TakesClassesAndOneValuePerExample) {
  const tj::Symbol y = tj::Input{.shape = {1}, .dtype = "int64"}, p = tj::Input{.shape = {2}};
  const tj::Symbol error = tj::ops::Square(p - tj::ops::Cast(y, "float32"));
  const tj::Model sum = tj::Functional({y, p}, tj::ops::Sum(error, {-1}));
  tj::CompiledModel model = CompiledWith(tj::CustomLoss{.values = sum}, Classifier()).value();
  const tj::data::Arrays points = Points(200);
  const double before = model.Evaluate(points).value()["loss"];
  ASSERT_TRUE(model.Fit(points, Quietly(20)).ok());
  EXPECT_LT(model.Evaluate(points).value()["loss"], 0.3 * before);
}

// The predictions have a position for each step, with a single value at each position.
tj::Model PerStep() {
  return tj::Sequential({tj::Input{.shape = {3, 2}}, tj::Dense{.units = 1}});
}

tj::data::Arrays Steps(int64_t examples) {
  const tj::data::Arrays plane = Plane(3 * examples);
  tj::Tensor x(tj::DType::kFloat32, {examples, 3, 2}), y(tj::DType::kFloat32, {examples, 3});
  std::ranges::copy(plane.x.float32(), x.float32().begin());
  std::ranges::copy(plane.y.float32(), y.float32().begin());
  return {.x = x, .y = y};
}

// Computes a value for each step, from predictions without their last axis.
tj::Model SquaresOfSteps() {
  const tj::Symbol y = tj::Input{.shape = {3}}, p = tj::Input{.shape = {3}};
  return tj::Functional({y, p}, Squares(y, p));
}

// Computes a value for each example.
tj::Model SquaresOfExamples() {
  const tj::Symbol y = tj::Input{.shape = {3}}, p = tj::Input{.shape = {3}};
  return tj::Functional({y, p}, tj::ops::Mean(Squares(y, p), {-1}));
}

TEST(CustomLoss, HasAValuePerPlaceIfItTakesPredictionsWithoutTheLastAxis) {
  const tj::data::Arrays steps = Steps(8);
  for (const std::string reduction : {"sum", "sum_over_batch_size"}) {
    tj::CompiledModel own =
        CompiledWith(tj::CustomLoss{.values = SquaresOfSteps(), .reduction = reduction}, PerStep())
            .value();
    tj::CompiledModel built_in =
        CompiledWith(tj::MeanSquaredError{.reduction = reduction}, PerStep()).value();
    EXPECT_EQ(own.Evaluate(steps).value()["loss"], built_in.Evaluate(steps).value()["loss"]);
    ASSERT_TRUE(own.Fit(steps, Quietly(2)).ok());
    ASSERT_TRUE(built_in.Fit(steps, Quietly(2)).ok());
    EXPECT_EQ(WeightsOf(own), WeightsOf(built_in));
  }
}

TEST(CustomLoss, WithAValuePerExampleRefusesWeightsOfPlaces) {
  tj::data::Arrays steps = Steps(4);
  steps.sample_weight = tj::Tensor(tj::DType::kFloat32, {4, 3});
  tj::CompiledModel model =
      CompiledWith(tj::CustomLoss{.values = SquaresOfExamples()}, PerStep()).value();
  const std::string message(model.Fit(steps, Quietly(1)).status().message());
  EXPECT_NE(message.find("loss.model: expected a value for each place"), std::string::npos)
      << message;
  EXPECT_NE(message.find("sample weights"), std::string::npos) << message;
  steps.sample_weight = tj::Tensor(tj::DType::kFloat32, {4});
  EXPECT_TRUE(model.Fit(steps, Quietly(1)).ok());
}

TEST(CustomLoss, WithAValuePerExampleRefusesMasks) {
  const tj::Model masked =
      tj::Sequential({tj::Input{.shape = {3, 2}}, tj::Masking{}, tj::Dense{.units = 1}});
  tj::CompiledModel model =
      CompiledWith(tj::CustomLoss{.values = SquaresOfExamples()}, masked).value();
  const std::string message(model.Fit(Steps(4), Quietly(1)).status().message());
  EXPECT_NE(message.find("loss.model: expected a value for each place"), std::string::npos)
      << message;
  EXPECT_NE(message.find("a mask"), std::string::npos) << message;
  tj::CompiledModel places =
      CompiledWith(tj::CustomLoss{.values = SquaresOfSteps()}, masked).value();
  EXPECT_TRUE(places.Fit(Steps(4), Quietly(1)).ok());
}

TEST(CustomLoss, RefusesAMaskOfItsOutput) {
  const tj::Symbol y = tj::Input{.shape = {3, 1}}, p = tj::Input{.shape = {3, 1}};
  const tj::Model masked = tj::Functional({y, p}, tj::Masking{}(Squares(y, p)));
  tj::CompiledModel model = CompiledWith(tj::CustomLoss{.values = masked}, PerStep()).value();
  const std::string message(model.Fit(Steps(4), Quietly(1)).status().message());
  EXPECT_NE(message.find("loss.model: expected an output without a mask"), std::string::npos)
      << message;
}

// Sequences of 1 to 6 ids, padded with 0. The label of each position is its id modulo 2.
tj::data::Arrays Sequences(int64_t examples, tj::DType labels) {
  tj::Tensor x(tj::DType::kInt64, {examples, 6}), y(labels, {examples, 6});
  for (int64_t i = 0; i < examples * 6; ++i) {
    const int64_t id = i % 6 <= i / 6 % 6 ? 1 + i % 4 : 0;
    x.int64()[static_cast<size_t>(i)] = id;
    if (labels == tj::DType::kInt64) {
      y.int64()[static_cast<size_t>(i)] = id % 2;
    } else {
      y.float32()[static_cast<size_t>(i)] = static_cast<float>(id % 2);
    }
  }
  return {.x = x, .y = y};
}

tj::Model OfAnyLength() {
  return tj::Sequential({tj::Input{.shape = {-1}, .dtype = "int64"},
                         tj::Embedding{.input_dim = 5, .output_dim = 4}, tj::Dense{.units = 1}});
}

tj::FitOptions InBuckets() {
  tj::FitOptions options = Quietly(2);
  options.bucket_by_length = tj::BucketByLength{.boundaries = {2, 4}};
  return options;
}

TEST(CustomLoss, TakesLabelsOfAnyLengthInBuckets) {
  const tj::Symbol y = tj::Input{.shape = {-1}, .dtype = "int64"};
  const tj::Symbol p = tj::Input{.shape = {-1}};
  const tj::Model squares = tj::Functional({y, p}, Squares(tj::ops::Cast(y, "float32"), p));
  tj::CompiledModel own = CompiledWith(tj::CustomLoss{.values = squares}, OfAnyLength()).value();
  tj::CompiledModel built_in = CompiledWith("mean_squared_error", OfAnyLength()).value();
  const tj::Status fitted = own.Fit(Sequences(24, tj::DType::kInt64), InBuckets()).status();
  ASSERT_TRUE(fitted.ok()) << fitted;
  ASSERT_TRUE(built_in.Fit(Sequences(24, tj::DType::kFloat32), InBuckets()).ok());
  EXPECT_EQ(WeightsOf(own), WeightsOf(built_in));
}

TEST(CustomLoss, OfOneLengthIsRefusedInBuckets) {
  const tj::Symbol y = tj::Input{.shape = {6}}, p = tj::Input{.shape = {-1}};
  const tj::Model squares =
      tj::Functional({y, p}, tj::ops::Mean(tj::ops::Square(p), {-1}) + tj::ops::Mean(y, {-1}));
  tj::CompiledModel model = CompiledWith(tj::CustomLoss{.values = squares}, OfAnyLength()).value();
  const std::string message(
      model.Fit(Sequences(24, tj::DType::kFloat32), InBuckets()).status().message());
  EXPECT_NE(message.find("data.bucket_by_length: expected null as the first length"),
            std::string::npos)
      << message;
}

std::string ErrorWith(const tj::Model& values) {
  auto model = CompiledWith(tj::CustomLoss{.values = values});
  return model.ok() ? model->Fit(Plane(8), Quietly(1)).status().message()
                    : model.status().message();
}

TEST(CustomLoss, IsCheckedBeforeTraining) {
  const tj::Symbol y = tj::Input{.shape = {1}}, p = tj::Input{.shape = {1}};
  EXPECT_NE(
      ErrorWith(tj::Functional(p, p * 2)).find("loss.model: expected a model with two inputs"),
      std::string::npos);
  EXPECT_NE(ErrorWith(tj::Functional({y, p}, tj::Dense{.units = 1}(p - y))).find("variable"),
            std::string::npos);
  EXPECT_NE(ErrorWith(tj::Functional({y, p}, tj::Concatenate{}({y, p}))).find("of shape [2]"),
            std::string::npos);
  EXPECT_NE(ErrorWith(tj::Functional({y, p}, tj::ActivityRegularization{.l2 = 1}(Squares(y, p))))
                .find("expected layers without activity_regularizer"),
            std::string::npos);
  EXPECT_NE(ErrorWith(tj::Model()).find("loss: "), std::string::npos);
}

TEST(CustomLoss, DoesNotPreventSaving) {
  tj::CompiledModel model = CompiledWith(tj::CustomLoss{.values = LossOf(Squares)}).value();
  ASSERT_TRUE(model.Fit(Plane(8), Quietly(1)).ok());
  const std::string path = Temp("custom_loss.keras");
  const tj::Status saved = model.Save(path);
  ASSERT_TRUE(saved.ok()) << saved;
  EXPECT_TRUE(tj::Model::Load(path).ok());
  EXPECT_NE(tj::Session().Load(path).status().message().find("no settings of compile()"),
            std::string::npos);
}

}  // namespace
