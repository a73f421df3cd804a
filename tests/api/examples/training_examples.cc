// Examples of session.h, batch.h and function.h.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/api/examples/working_folder.h"
#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

// Lets the examples read and write files by their names alone.
class TrainingExamples : public testing::Test {
 protected:
  const WorkingFolder folder_{"training_examples"};
};

TEST_F(TrainingExamples, Compiling) {
  const Model model = Classifier();
  // [Session, SessionOptions, Session::Compile, CompileOptions, CompiledModel]
  const SessionOptions reproducible = {.seed = 42, .threads = 1};
  const Session session(Strategy::FromEnvironment(), reproducible);
  const CompileOptions options = {.optimizer = Adam{.learning_rate = 1e-3},
                                  .loss = SparseCategoricalCrossentropy{.from_logits = true},
                                  .metrics = {"accuracy"}};
  CompiledModel trained = session.Compile(model, options).value();
  CompiledModel copy = trained;  // is trained independently of `trained`
  // [end]
  EXPECT_EQ(copy.step(), 0);
  const Symbol x = Input{.shape = {2}};
  const Model two =
      Functional(x, {Dense{.units = 3, .name = "city"}(x), Dense{.units = 1, .name = "price"}(x)});
  // [OutputOptions]
  const OutputOptions city = {.loss = SparseCategoricalCrossentropy{.from_logits = true},
                              .metrics = {"accuracy"}};
  const OutputOptions price = {.loss = Huber{}, .loss_weight = 0.1};
  CompiledModel both =
      session.Compile(two, {.outputs = {{"city", city}, {"price", price}}}).value();
  // [end]
  EXPECT_EQ(both.step(), 0);
  // [Session::is_chief, Session::strategy, Session::NumReplicasInSync]
  std::cout << "strategy " << session.strategy().name() << ", " << session.NumReplicasInSync()
            << " devices\n";
  if (session.is_chief()) trained.Save("model.safetensors").value();
  // [end]
  EXPECT_TRUE(std::filesystem::exists("model.safetensors"));
  // [Session::Barrier]
  session.Barrier().value();  // no task reads the checkpoint before all tasks have started
  // [end]
  // [Session::ServeVariables]
  session.ServeVariables().value();  // in a ps, serves until the job ends, and exits
  // [end]
}

TEST_F(TrainingExamples, Fitting) {
  CompiledModel trained = Compiled();
  const Dataset train = Points(100), test = Points(20);
  // [CompiledModel::Fit, FitOptions]
  const FitOptions options = {.batch_size = 64, .epochs = 5, .validation = &test};
  const History history = trained.Fit(train, options).value();
  // [end]
  EXPECT_EQ(history.values.at("val_loss").size(), 5U);
  // [CompiledModel::Evaluate, EvaluateOptions]
  const EvaluateOptions small_batches = {.batch_size = 16};
  std::cout << trained.Evaluate(test, small_batches).value() << "\n";  // loss=0.33 accuracy=0.88
  // [end]
  const Tensor points = Points(3).x;
  // [CompiledModel::Predict, PredictOptions]
  const PredictOptions whole = {.batch_size = 1000};
  const Tensor logits = trained.Predict(points, whole).value();
  const float first = logits.float32()[0];
  // [end]
  EXPECT_TRUE(first < 0 || first >= 0);
  // [CompiledModel::Weights, CompiledModel::SetWeights]
  std::map<std::string, Tensor> weights;
  for (const auto& [name, value] : trained.Weights().value()) weights[name] = value.Clone();
  for (float& value : weights.at("dense/kernel").float32()) value *= 0.5F;
  trained.SetWeights(weights).value();
  // [end]
  // [CompiledModel::step, CompiledModel::model, CompiledModel::Summary]
  std::cout << "after " << trained.step() << " steps: " << trained.model().name() << "\n"
            << trained.Summary().value();
  // [end]
  EXPECT_EQ(trained.step(), 10);
}

TEST_F(TrainingExamples, Lengths) {
  Tensor ids(DType::kInt64, {16, 12});
  for (int64_t& id : ids.int64()) id = 5;
  const Model model = Sequential({Input{.shape = {-1}, .dtype = "int64"},
                                  Embedding{.input_dim = 100, .output_dim = 4, .mask_zero = true},
                                  Dense{.units = 100}});
  CompiledModel trained =
      Session(Strategy::OneDevice())
          .Compile(model, {.loss = SparseCategoricalCrossentropy{.from_logits = true}})
          .value();
  const Dataset sentences = data::Arrays{.x = ids, .y = ids};
  // [BucketByLength, MaskTokens]
  const BucketByLength buckets = {.boundaries = {4, 8}, .batch_sizes = {32, 16, 8}};
  const MaskTokens masking = {.mask_token = 99, .vocabulary_size = 100};
  const FitOptions options = {.bucket_by_length = buckets, .mask_tokens = masking};
  trained.Fit(sentences, options).value();
  // [end]
  EXPECT_GT(trained.step(), 0);
}

TEST_F(TrainingExamples, Files) {
  CompiledModel trained = Compiled();
  const Session session(Strategy::OneDevice());
  // [CompiledModel::Save, Session::Load]
  trained.Save("model.keras").value();  // for keras.models.load_model, too
  CompiledModel same = session.Load("model.keras").value();
  // [end]
  EXPECT_EQ(WeightsOf(same), WeightsOf(trained));
  // [CompiledModel::LoadWeights, LoadOptions]
  const LoadOptions without_head = {.skip = {"logits/*"}};  // these variables keep their values
  trained.Save("weights.safetensors").value();
  same.LoadWeights("weights.safetensors", without_head).value();
  // [end]
  // [CompiledModel::SaveCheckpoint, CompiledModel::LoadCheckpoint]
  trained.SaveCheckpoint("checkpoints").value();
  same.LoadCheckpoint("checkpoints").value();  // the newest
  // [end]
  EXPECT_EQ(WeightsOf(same), WeightsOf(trained));
}

TEST_F(TrainingExamples, Batches) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  CompiledModel trained = session.Compile(Classifier(), Options()).value();
  const Dataset train = Points(100);
  // [Session::Distribute, DistributeOptions, Batches, CompiledModel::Step, BatchReport]
  const DistributeOptions twice = {.batch_size = 50, .epochs = 2};
  Batches batches = session.Distribute(train, twice).value();
  for (const Batch& batch : batches) {
    const BatchReport report = trained.Step(batch).value();
    std::cout << "step " << report.step << ": loss " << report.loss << "\n";
  }
  // [end]
  EXPECT_EQ(trained.step(), 4);
  // [Batches::batches_per_epoch, Batches::Next]
  Batches again = session.Distribute(train).value();
  for (int64_t i = 0; i < again.batches_per_epoch(); ++i) {
    const std::optional<Batch> batch = again.Next().value();
    if (batch) trained.Step(*batch).value();
  }
  // [end]
  EXPECT_EQ(trained.step(), 8);
  Batches last = session.Distribute(train).value();
  // [CompiledModel::TrainOnBatch, CompiledModel::TestOnBatch, CompiledModel::ResetMetrics]
  // [Batches::Iterator, Batches::begin, Batches::end]
  trained.ResetMetrics();
  Metrics metrics;
  for (Batches::Iterator batch = last.begin(); batch != last.end(); ++batch) {
    trained.TrainOnBatch(*batch).value();
    metrics = trained.TestOnBatch(*batch).value();  // of all batches since ResetMetrics
  }
  // [end]
  EXPECT_TRUE(metrics.has("loss"));
  EXPECT_EQ(trained.step(), 12);
}

TEST_F(TrainingExamples, Functions) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  const Model network = Sequential({Input{.shape = {2}}, Dense{.units = 1}});
  CompiledModel model = session.Compile(network, {.optimizer = SGD{.learning_rate = 0.1}}).value();
  Tensor y(DType::kFloat32, {8, 1});
  // [Session::Function, Function, Step, Step::Call, Step::Gradients, Step::TrainableVariables]
  // [Step::Apply, Step::NumExamples, Step::Reduce, Reduced, Step::Return, StepResults::number]
  Function train =
      session
          .Function({{.shape = {2}}, {.shape = {1}}},
                    [&](Step& step, const std::vector<Symbol>& in) {
                      const Symbol error = ops::Square(step.Call(model, in[0]) - in[1]);
                      const Symbol loss = ops::Sum(error) / step.NumExamples();
                      step.Apply(model, step.Gradients(loss, step.TrainableVariables(model)));
                      const Reduced total = step.Reduce(Reduction::kSum, loss);
                      step.Return("loss", total);
                    })
          .value();
  const double loss = train({.x = Points(8).x, .y = y}).value().number("loss");
  // [end]
  EXPECT_GT(loss, 0);
  EXPECT_EQ(model.step(), 1);
}

TEST_F(TrainingExamples, FunctionsOfClasses) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  CompiledModel model = session.Compile(Classifier(), {.optimizer = "sgd"}).value();
  // [Step::Minimize, Step::SoftmaxCrossEntropy, Step::Penalty, StepResults, StepResults::at]
  Function train =
      session
          .Function(
              {{.shape = {2}}, {.shape = {}, .dtype = "int64"}},
              [&](Step& step, const std::vector<Symbol>& in) {
                const Symbol losses = step.SoftmaxCrossEntropy(in[1], step.Call(model, in[0]));
                step.Minimize(model, ops::Sum(losses + step.Penalty(model)) / step.NumExamples());
                step.Return("losses", losses);
              })
          .value();
  const StepResults results = train(Points(8)).value();
  const Tensor losses = results.at("losses");  // one for each example
  // [end]
  EXPECT_EQ(losses.size(), 8);
  // [StepResults::values]
  for (const auto& [name, value] : results.values()) std::cout << name << "\n";
  // [end]
  EXPECT_EQ(results.values().size(), 1U);
}

TEST_F(TrainingExamples, RandomFunctions) {
  const Session session(Strategy::OneDevice(), {.threads = 1});
  const CompiledModel model = session.Compile(Classifier(), {}).value();
  // [Step::RandomNormal, Step::RandomUniform, Step::StopGradient]
  Function noise =
      session
          .Function({{.shape = {2}}},
                    [&](Step& step, const std::vector<Symbol>& in) {
                      const Symbol noisy = in[0] + step.RandomNormal({2}, 0, 0.1);
                      const Symbol share = step.RandomUniform({1});  // one number per example
                      const Symbol target = step.StopGradient(step.Call(model, in[0], false));
                      step.Return("mixed", share * step.Call(model, noisy) + (1 - share) * target);
                    })
          .value();
  const Tensor mixed = noise({.x = Points(8).x}).value().at("mixed");
  // [end]
  EXPECT_EQ(mixed.shape(), (std::vector<int64_t>{8, 2}));
}

}  // namespace
