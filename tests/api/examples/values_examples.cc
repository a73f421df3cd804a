// Examples of status.h, tensor.h, arguments.h, metrics.h and strategy.h.
#include <gtest/gtest.h>

#include <iostream>
#include <numeric>
#include <sstream>

#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

TEST(StatusExamples, Results) {
  const Session session(Strategy::OneDevice());
  const Model model = Sequential({Input{.shape = {2}}, Dense{.units = 0}});
  // [Result, Result::ok, Result::status, Result::value, Status::message, Status::code]
  Result<CompiledModel> compiled = session.Compile(model, {.loss = "mean_squared_error"});
  if (!compiled.ok() && compiled.status().code() == StatusCode::kInvalidArgument) {
    std::cerr << "The model is wrong: " << compiled.status().message() << "\n";
  } else {
    CompiledModel trained = compiled.value();
  }
  // [end]
  EXPECT_FALSE(compiled.ok());
  EXPECT_NE(compiled.status().message().find("units"), std::string::npos);
}

TEST(StatusExamples, Statuses) {
  // [Status, Status::ToString, Name]
  const Status missing(StatusCode::kNotFound, "no such city: Atlantis");
  std::string text = missing.ToString();  // "NOT_FOUND: no such city: Atlantis"
  text += Name(StatusCode::kAborted);     // "ABORTED"
  text += Name(DType::kInt64);            // "int64"
  // [end]
  EXPECT_EQ(text, "NOT_FOUND: no such city: AtlantisABORTEDint64");
  std::ostringstream stream;
  std::streambuf* const standard = std::cout.rdbuf(stream.rdbuf());
  const Metrics metrics({{"loss", 0.33}, {"accuracy", 0.88}});
  // [operator<<]
  std::cout << metrics << "\n";  // loss=0.33 accuracy=0.88
  std::cout << missing << "\n";  // NOT_FOUND: no such city: Atlantis
  // [end]
  std::cout.rdbuf(standard);
  EXPECT_EQ(stream.str(), "loss=0.33 accuracy=0.88\nNOT_FOUND: no such city: Atlantis\n");
}

TEST(StatusExamples, Ends) {
  CompiledModel model = Compiled();
  const auto save = [&] {
    // [Status::value]
    model.Save("/tmp/model.zip").value();  // prints the error and ends the process
    // [end]
  };
  EXPECT_EXIT(save(), testing::ExitedWithCode(2), "zip");
  const auto end = [&] {
    // [Exit, Status::ok]
    const Status saved = model.Save("/tmp/model.zip");
    if (!saved.ok()) Exit(saved);  // like saved.value()
    // [end]
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(2), "zip");
}

TEST(TensorExamples, Arrays) {
  // [Tensor, Tensor::float32, Tensor::shape, Tensor::dtype, Tensor::size]
  Tensor squares(DType::kFloat32, {2, 3});  // zeros
  for (size_t i = 0; i < 6; ++i) squares.float32()[i] = static_cast<float>(i * i);
  std::cout << "rows: " << squares.shape()[0] << ", elements: " << squares.size()
            << ", type: " << Name(squares.dtype()) << "\n";
  // [end]
  EXPECT_EQ(squares.float32()[5], 25);
  // [Tensor::Of, Tensor::int64]
  const std::vector<int64_t> classes = {3, 1, 2};
  const Tensor labels = Tensor::Of({3}, classes).value();
  const int64_t sum = std::accumulate(labels.int64().begin(), labels.int64().end(), int64_t{0});
  // [end]
  EXPECT_EQ(sum, 6);
  // [Tensor::Clone, Tensor::Reshaped]
  Tensor copy = squares.Clone();                        // has elements of its own
  const Tensor column = copy.Reshaped({6, 1}).value();  // shares the elements of `copy`
  copy.float32()[5] = 0;
  // [end]
  EXPECT_EQ(column.float32()[5], 0);
  EXPECT_EQ(squares.float32()[5], 25);
  // [Tensor::present]
  const data::Arrays unlabelled = {.x = squares};
  const bool labelled = unlabelled.y.present();  // false
  // [end]
  EXPECT_FALSE(labelled);
}

TEST(TensorExamples, Types) {
  // [Tensor::float64, Tensor::int32, Tensor::uint8, Tensor::boolean, Tensor::bytes]
  Tensor prices(DType::kFloat64, {2}), rooms(DType::kInt32, {2}), pixels(DType::kUInt8, {2});
  Tensor sold(DType::kBool, {2});
  prices.float64()[0] = 1.5;
  rooms.int32()[0] = 3;
  pixels.uint8()[0] = 255;
  sold.boolean()[0] = true;
  const size_t size = prices.bytes().size();  // 16
  // [end]
  EXPECT_EQ(size, 16U);
  EXPECT_EQ(rooms.int32()[0] + pixels.uint8()[0] + sold.boolean()[0], 259);
}

TEST(ArgumentExamples, Named) {
  // [Named, OptionalInteger, Integers, Integers::values, Integers::one, Value, Value::held]
  const Named regularizer = {"l2", {{"l2", Value(1e-4)}}};
  const Layer dense = Dense{.units = 10, .kernel_regularizer = regularizer};
  const double factor = std::get<double>(regularizer.arguments[0].second.held());  // 1e-4
  const OptionalInteger unset = {};  // unset.has_value() is false
  const Integers three = 3;          // the same kernel size on all axes: three.one() is true
  const Integers sizes = {3, 5};     // sizes.values()[1] is 5
  const Layer conv = Conv2D{.filters = 8, .kernel_size = sizes};
  // [end]
  EXPECT_EQ(factor, 1e-4);
  EXPECT_FALSE(unset.has_value());
  EXPECT_TRUE(three.one());
  EXPECT_TRUE(Sequential({Input{.shape = {8, 8, 1}}, conv, Flatten{}, dense}).status().ok());
}

TEST(MetricExamples, Values) {
  CompiledModel trained = Compiled();
  const Dataset test = Points(20);
  // [Metrics, Metrics::has, Metrics::At, Metrics::values]
  const Metrics metrics = trained.Evaluate(test).value();
  double loss = metrics["loss"];  // NaN if there is no such metric
  if (metrics.has("accuracy")) loss = metrics.At("accuracy").value();
  for (const auto& [name, value] : metrics.values()) std::cout << name << ": " << value << "\n";
  // [end]
  EXPECT_GE(loss, 0);
  // [History, CompiledModel::history]
  History history = trained.Fit(test, {.epochs = 2, .verbose = Verbose::kSilent}).value();
  const double last = history.values["loss"].back();
  const size_t epochs = trained.history().epoch.size();  // 2; kept even if Fit fails
  // [end]
  EXPECT_GT(last, 0);
  EXPECT_EQ(epochs, 2U);
}

TEST(StrategyExamples, Choices) {
  // [Strategy, Strategy::OneDevice, Strategy::Mirrored, Strategy::CentralStorage]
  const Strategy one = Strategy::OneDevice();
  const Strategy copies = Strategy::Mirrored(2);         // each device has all variables
  const Strategy central = Strategy::CentralStorage(2);  // the first device has the variables
  const Session session(copies);
  // [end]
  EXPECT_EQ(session.NumReplicasInSync(), 2);
  EXPECT_EQ(one.name() + central.name(), "one_devicecentral_storage");
  // [Strategy::FromEnvironment, Strategy::status, Strategy::name, Strategy::is_chief]
  // [Strategy::task_type, Strategy::task_index]
  const Strategy strategy = Strategy::FromEnvironment();
  strategy.status().value();  // ends the process if TF_CONFIG is invalid
  std::cout << "task " << strategy.task_type() << " " << strategy.task_index() << " trains with "
            << strategy.name() << "\n";
  const std::string folder = strategy.is_chief() ? "/model" : "/tmp/scratch";
  // [end]
  EXPECT_EQ(folder, "/model");
}

TEST(StrategyExamples, Jobs) {
  // [Strategy::MultiWorkerMirrored, MultiWorkerMirroredOptions]
  const MultiWorkerMirroredOptions shrink = {.on_failure = "shrink", .compression = "bfloat16"};
  const Session group(Strategy::MultiWorkerMirrored(shrink));
  // [end]
  EXPECT_TRUE(group.strategy().status().ok());
  // [Strategy::ParameterServer, ParameterServerOptions]
  const ParameterServerOptions sync = {.mode = "sync", .replicas_to_aggregate = 3};
  const Session servers(Strategy::ParameterServer(sync));
  // [end]
  EXPECT_TRUE(servers.strategy().status().ok());
}

}  // namespace
