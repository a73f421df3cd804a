// Compares synchronised batch normalisation on several replicas with one device that processes the
// whole global batch.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/exec/fake_device.h"
#include "runtime/model/keras.h"
#include "runtime/strategy/mirrored_strategy.h"
#include "runtime/strategy/one_device_strategy.h"
#include "runtime/strategy/parameter_server_strategy.h"
#include "runtime/strategy/replica.h"
#include "runtime/strategy/test_group.h"
#include "runtime/strategy/test_rows.h"

namespace tfjob::strategy {
namespace {

using Parts = std::vector<int64_t>;  // the sizes of the parts of a global batch, by rank

// The statistics of the first layer need no gradients. The second layer's do.
constexpr char kTwoNorms[] =
    R"([{"BatchNormalization": {"momentum": 0.5, "synchronized": SYNC}},
        {"Dense": {"units": 5, "activation": "tanh"}},
        {"BatchNormalization": {"momentum": 0.5, "synchronized": SYNC}},
        {"Dense": {"units": 1}}])";
// Each example has several positions, and the channels are not the last axis.
constexpr char kFirstAxis[] =
    R"([{"Dense": {"units": 6, "activation": "tanh"}}, {"Reshape": {"target_shape": [2, 3]}},
        {"BatchNormalization": {"axis": 1, "momentum": 0.5, "synchronized": SYNC}},
        {"Flatten": {}}, {"Dense": {"units": 1}}])";
// The third layer ignores the masked steps, and computes the mean over the others.
constexpr char kMasked[] =
    R"([{"Reshape": {"target_shape": [2, 1]}}, {"Masking": {"mask_value": 0}},
        {"Dense": {"units": 3, "activation": "tanh"}},
        {"BatchNormalization": {"momentum": 0.5, "synchronized": SYNC}},
        {"GlobalAveragePooling1D": {}},
        {"Dense": {"units": 1}}])";

std::string With(std::string layers, bool synchronized) {
  for (size_t at = layers.find("SYNC"); at != std::string::npos; at = layers.find("SYNC"))
    layers.replace(at, 4, synchronized ? "true" : "false");
  return layers;
}

ModelDefinition Define(const char* layers, bool synchronized, int64_t batch) {
  ModelDefinition definition;
  const Json json = *ParseJson(With(layers, synchronized), "layers");
  definition.model = *model::ReadLayers(JsonField(json, "model.layers"));
  definition.build.batch_size = batch;
  definition.build.features = model::Features({2});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kSgd);
  definition.state.optimizer.learning_rate = 0.05;
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

StrategyOptions Options(const ModelDefinition& definition, int rank = 0) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .replica = rank,
          .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
}

// Returns rows whose first feature has a mean other than 0. Every third row has a zero, which
// kMasked ignores. The labels contain noise, so that gradients do not become so small that rounding
// errors dominate them.
data::Batch Data(int64_t first, int64_t size) {
  data::Batch batch = Rows(first, size);
  const std::span<float> x = batch.tensors[0].value.data<float>();
  for (int64_t i = 0; i < size; ++i) {
    const auto row = static_cast<size_t>(i);
    x[2 * row] += 0.31F;  // not 0, so every row has a step that counts
    if ((first + i) % 3 == 0) x[2 * row + 1] = 0;
    batch.tensors[1].value.data<float>()[row] += static_cast<float>((first + i) * 29 % 7) - 3;
  }
  return batch;
}

Status Step(Replica& replica, const Parts& parts, int rank, int64_t step, MetricTotals& totals) {
  int64_t first = step * 1000, examples = 0, with = 0;
  for (size_t r = 0; r < parts.size(); ++r) {
    if (static_cast<int>(r) < rank) first += parts[r];
    examples += parts[r];
    with += parts[r] > 0 ? 1 : 0;
  }
  const data::Batch batch = Data(first, parts[static_cast<size_t>(rank)]);
  RETURN_IF_ERROR(replica.Compute(batch, step, {examples, with}));
  RETURN_IF_ERROR(replica.Reduce());
  return replica.Apply(step, totals).status();
}

constexpr int64_t kSteps = 50;

// The states of one device that trains on whole batches with the usual layer. Element i is the
// state before step i.
struct OneDeviceRun {
  std::vector<state::Snapshot> states;
  std::vector<double> losses;
};

OneDeviceRun TrainOneDevice(const char* layers, const std::function<int64_t(int64_t)>& size_of) {
  auto one = *MakeOneDevice({.task_type = "worker"}, Options(Define(layers, false, size_of(0))));
  EXPECT_TRUE(one->Start().ok());
  OneDeviceRun run{.states = {*one->TakeSnapshot()}};
  for (int64_t step = 0; step < kSteps; ++step) {
    MetricTotals totals;
    EXPECT_TRUE(one->Step(Data(step * 1000, size_of(step)), totals).ok());
    run.losses.push_back(totals.loss());
    run.states.push_back(*one->TakeSnapshot());
  }
  return run;
}

double RelativeDistance(const OneDeviceRun& run, int64_t step, const state::Snapshot& after) {
  const auto at = static_cast<size_t>(step);
  const std::vector<float> before = ValuesOf(run.states[at], Slots::kWithout),
                           expected = ValuesOf(run.states[at + 1], Slots::kWithout);
  return Norm(ValuesOf(after, Slots::kWithout), expected) / Norm(before, expected);
}

// Trains replicas. Each step starts from the state of the single device. Returns the largest
// distance between an update and that of the single device, relative to the latter.
double LargestDistance(const char* layers, const Parts& parts, bool synchronized) {
  const int64_t size = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  const OneDeviceRun run = TrainOneDevice(layers, [size](int64_t) { return size; });
  double largest = 0;
  OnEveryRank(parts.size(), [&](int rank, collectives::Communicator& communicator) {
    const ModelDefinition own = Define(layers, synchronized, parts[static_cast<size_t>(rank)]);
    auto replica = Replica::Create(Options(own, rank), 0);
    ASSERT_TRUE(replica.ok()) << replica.status();
    ASSERT_TRUE((*replica)->Connect(communicator).ok());
    for (int64_t step = 0; step < kSteps; ++step) {
      const auto at = static_cast<size_t>(step);
      ASSERT_TRUE((*replica)->Load(run.states[at]).ok());
      MetricTotals totals;
      ASSERT_EQ(Step(**replica, parts, rank, step, totals), OkStatus());
      EXPECT_EQ(totals.examples, size);
      if (synchronized) {
        EXPECT_NEAR(totals.loss(), run.losses[at], 1e-5 * run.losses[at]);
      }
      const double distance =
          RelativeDistance(run, step, (*replica)->BeginSnapshot(step + 1, "")->Finish());
      if (rank == 0) largest = std::max(largest, distance);
    }
  });
  return largest;
}

TEST(Synchronized, ReplicasTakeTheStepsOfOneDevice) {
  for (const char* layers : {kTwoNorms, kFirstAxis, kMasked}) {
    // With a mask, rounding errors are larger: without replicas, the ops compute the variance from
    // the distances to the mean, and even a single rank with examples differs by up to 1.2e-5.
    const double most = layers == kMasked ? 3e-5 : 1e-5;
    for (const Parts& parts : {Parts{8, 8}, {5, 4}, {4, 3, 0}, {5, 0}, {3, 3, 3, 2}}) {
      EXPECT_LE(LargestDistance(layers, parts, true), most)
          << layers << ", " << parts.size() << " ranks, the first with " << parts[0];
    }
  }
}

// The gradients compute the layers a second time, but must not exchange their statistics again.
TEST(Synchronized, RecomputedLayersTakeTheSameSteps) {
  std::vector<std::vector<float>> values;
  for (const bool recompute : {false, true}) {
    ModelDefinition definition = Define(kTwoNorms, true, 4);
    for (model::Layer& layer : definition.model.layers) layer.recompute = recompute;
    OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
      auto replica = *Replica::Create(Options(definition, rank), 0);
      ASSERT_TRUE(replica->Connect(communicator).ok());
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
      MetricTotals totals;
      for (int64_t step = 0; step < 20; ++step)
        ASSERT_EQ(Step(*replica, {4, 4}, rank, step, totals), OkStatus());
      if (rank == 0)
        values.push_back(ValuesOf(replica->BeginSnapshot(20, "")->Finish(), Slots::kWith));
    });
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST(Synchronized, WithoutItTheStepsDiffer) {
  EXPECT_GT(LargestDistance(kTwoNorms, {8, 8}, false), 1e-2);
  EXPECT_GT(LargestDistance(kMasked, {8, 8}, false), 1e-2);
}

TEST(Synchronized, AllRanksHoldTheSameBits) {
  std::vector<std::vector<float>> values(3);
  const Parts parts = {4, 3, 0};
  OnEveryRank(3, [&](int rank, collectives::Communicator& communicator) {
    const auto at = static_cast<size_t>(rank);
    const ModelDefinition definition = Define(kTwoNorms, true, parts[at]);
    auto replica = *Replica::Create(Options(definition, rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    MetricTotals totals;
    for (int64_t step = 0; step < 20; ++step)
      ASSERT_EQ(Step(*replica, parts, rank, step, totals), OkStatus());
    values[at] = ValuesOf(replica->BeginSnapshot(20, "")->Finish(), Slots::kWith);
  });
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
}

// Packs of one byte put every gradient into its own bucket, so that the exchanges of the backward
// pass lie between the buckets.
TEST(Synchronized, PacksDoNotChangeTheResult) {
  std::vector<std::vector<float>> values;
  for (const int64_t bytes_per_pack : {0, 1}) {
    const ModelDefinition definition = Define(kTwoNorms, true, 4);
    OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
      auto replica = *Replica::Create(Options(definition, rank), bytes_per_pack);
      ASSERT_TRUE(replica->Connect(communicator).ok());
      ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
      MetricTotals totals;
      for (int64_t step = 0; step < 20; ++step)
        ASSERT_EQ(Step(*replica, {4, 4}, rank, step, totals), OkStatus());
      if (rank == 0)
        values.push_back(ValuesOf(replica->BeginSnapshot(20, "")->Finish(), Slots::kWith));
    });
  }
  EXPECT_EQ(values[0], values[1]);
}

// The sizes lead to equal parts, unequal parts, and parts without examples.
int64_t SizeOf(int64_t step) {
  return std::array{8, 7, 2, 9}[static_cast<size_t>(step % 4)];
}

TEST(Synchronized, DevicesTakeTheStepsOfOneDevice) {
  const OneDeviceRun run = TrainOneDevice(kTwoNorms, SizeOf);
  for (const VariableStorage storage : {VariableStorage::kMirrored, VariableStorage::kCentral}) {
    for (const int devices : {1, 3, 4}) {
      int64_t step = 0;
      StrategyOptions options = Options(Define(kTwoNorms, true, 8));
      options.provide_state = [&](const state::Snapshot*) -> StatusOr<state::Snapshot> {
        return run.states[static_cast<size_t>(step)];
      };
      auto strategy = MakeWithDevices({.self = {.task_type = "worker"},
                                       .common = options,
                                       .storage = storage,
                                       .devices = devices,
                                       .threads = devices});
      ASSERT_TRUE(strategy.ok()) << strategy.status();
      for (; step < kSteps; ++step) {
        ASSERT_TRUE((*strategy)->Start().ok());
        MetricTotals totals;
        const auto outcome = (*strategy)->Step(Data(step * 1000, SizeOf(step)), totals);
        ASSERT_TRUE(outcome.ok()) << outcome.status();
        const double loss = run.losses[static_cast<size_t>(step)];
        EXPECT_NEAR(totals.loss(), loss, 1e-5 * loss);
        ASSERT_LE(RelativeDistance(run, step, *(*strategy)->TakeSnapshot()), 1e-5)
            << devices << " devices, step " << step;
      }
    }
  }
}

// Fails in the second operation, the exchange of the second normalisation.
class FailingCommunicator : public MeetingCommunicator {
 public:
  using MeetingCommunicator::MeetingCommunicator;
  Status AllReduce(std::span<std::byte> values, DType dtype,
                   collectives::Reduction reduction) override {
    if (++operations_ == 2) Abort(Unavailable("a rank has died"));
    return MeetingCommunicator::AllReduce(values, dtype, reduction);
  }

 private:
  int operations_ = 0;
};

// If a rank is lost during an exchange, the run of the program ends, Compute leaves the error to
// Reduce, and no variable changes. The step can be repeated with another communicator.
TEST(Synchronized, AStepThatLosesARankInAnExchangeCanBeRepeated) {
  auto first = std::make_shared<Meeting>(2), second = std::make_shared<Meeting>(2);
  std::vector<std::vector<float>> values(2);
  OnEveryRank(2, [&](int rank, collectives::Communicator& undisturbed) {
    const ModelDefinition definition = Define(kTwoNorms, true, 4);
    auto replica = *Replica::Create(Options(definition, rank), 0);
    const state::Snapshot initial = InitialState(definition);
    ASSERT_TRUE(replica->Load(initial).ok());
    const data::Batch batch = Data(4 * rank, 4);
    {
      FailingCommunicator failing(first, rank);
      ASSERT_TRUE(replica->Connect(failing).ok());
      EXPECT_EQ(replica->Compute(batch, 0, {8, 2}), OkStatus());
      EXPECT_EQ(replica->Reduce(), Unavailable("a rank has died"));
      replica->Disconnect();
    }
    EXPECT_EQ(ValuesOf(replica->BeginSnapshot(0, "")->Finish(), Slots::kWith),
              ValuesOf(initial, Slots::kWith));
    ASSERT_TRUE(replica->Connect(undisturbed).ok());
    MetricTotals totals;
    ASSERT_EQ(Step(*replica, {4, 4}, rank, 0, totals), OkStatus());
    values[static_cast<size_t>(rank)] =
        ValuesOf(replica->BeginSnapshot(1, "")->Finish(), Slots::kWith);
    EXPECT_NE(values[static_cast<size_t>(rank)], ValuesOf(initial, Slots::kWith));
  });
  EXPECT_EQ(values[0], values[1]);
}

// The batch of rank 1 lacks its labels, so its program does not even start.
TEST(Synchronized, AProgramThatFailsEndsTheExchangesOfTheOthers) {
  OnEveryRank(2, [&](int rank, collectives::Communicator& communicator) {
    const ModelDefinition definition = Define(kTwoNorms, true, 4);
    auto replica = *Replica::Create(Options(definition, rank), 0);
    ASSERT_TRUE(replica->Connect(communicator).ok());
    ASSERT_TRUE(replica->Load(InitialState(definition)).ok());
    data::Batch batch = Data(4 * rank, 4);
    if (rank == 1) batch.tensors.pop_back();
    EXPECT_EQ(replica->Compute(batch, 0, {8, 2}).ok(), rank == 0);
    if (rank == 0) {
      EXPECT_NE(Message(replica->Reduce()).find("labels"), std::string::npos);
    }
  });
}

// Without the check, the program would wait forever for a bucket that it completes only later.
TEST(Synchronized, AnOrderThatDiffersFromThePlanIsAnError) {
  BucketPlan plan = PlanBuckets({{.variable = 0, .elements = 3}}, 0);
  AddExchanges({{.name = "early", .elements = 2, .position = 1},
                {.name = "late", .elements = 2, .position = 9}},
               {5}, plan);
  EXPECT_EQ(Describe(plan),
            "exchange of 8 bytes of float32, 1 in 64 bytes of float32, exchange of 8 bytes of "
            "float32");
  GradientBuckets buckets(plan, 1, 1);
  MeetingCommunicator alone(std::make_shared<Meeting>(1), 0);
  ASSERT_TRUE(buckets.Connect(alone).ok());
  std::array<float, 2> two = {1, 2};
  std::array<float, 3> three = {1, 2, 3};
  const auto exchange = [&](int64_t number, auto& values) {
    return buckets.AllReduceMean(number, DType::kFloat32,
                                 std::as_writable_bytes(std::span(values)));
  };
  buckets.Begin({.gradient = 0.5});
  EXPECT_EQ(exchange(0, three).code(), StatusCode::kInternal) << "of another size";
  EXPECT_EQ(exchange(2, two).code(), StatusCode::kInternal) << "beyond the plan";
  EXPECT_EQ(exchange(0, two), OkStatus());
  EXPECT_EQ(two, (std::array<float, 2>{0.5, 1}));
  EXPECT_EQ(exchange(1, two).code(), StatusCode::kInternal) << "before the gradient";
  std::array<double, 1> totals = {1};
  EXPECT_EQ(buckets.Finish(totals).code(), StatusCode::kInternal) << "with missing values";
}

TEST(Synchronized, OnADeviceThatIsNotImmediateIsRefused) {
  StrategyOptions options = Options(Define(kTwoNorms, true, 4));
  options.device = exec::FakeDevice(1);
  const Status status = Replica::Create(std::move(options), 0).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(Message(status).find("batch_normalization/AllReduceMean"), std::string::npos) << status;
  EXPECT_NE(Message(status).find("synchronized: false"), std::string::npos) << status;
}

// A task that trains alone has no other replicas, so it needs no exchange, on any device.
TEST(Synchronized, OneDeviceNeedsNoExchange) {
  StrategyOptions options = Options(Define(kTwoNorms, true, 8));
  options.device = exec::FakeDevice(1);
  const OneDeviceRun run = TrainOneDevice(kTwoNorms, [](int64_t) { return 8; });
  auto one = *MakeOneDevice({.task_type = "worker"}, options);
  ASSERT_TRUE(one->Start().ok());
  MetricTotals totals;
  ASSERT_TRUE(one->Step(Data(0, 8), totals).ok());
  EXPECT_LE(RelativeDistance(run, 0, *one->TakeSnapshot()), 1e-5);
}

// The number of exchanges would depend on the number of steps.
TEST(Synchronized, InTimeDistributedIsRefused) {
  const char* const layers =
      R"([{"Reshape": {"target_shape": [2, 1]}},
          {"TimeDistributed": {"layer": {"BatchNormalization": {"synchronized": SYNC}}}},
          {"Flatten": {}}, {"Dense": {"units": 1}}])";
  ModelDefinition definition = Define(layers, false, 4);
  EXPECT_TRUE(Replica::Create(Options(definition), 0).ok());
  definition.model =
      *model::ReadLayers(JsonField(*ParseJson(With(layers, true), "layers"), "model.layers"));
  const Status status = DefineVariables(definition);
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(Message(status).find("synchronized: true is not supported in TimeDistributed"),
            std::string::npos)
      << status;
  const Json nested = *ParseJson(R"([{"Reshape": {"target_shape": [2, 1]}},
      {"TimeDistributed": {"layer": {"class_name": "Sequential", "config": {"layers": [
        {"class_name": "BatchNormalization", "config": {"synchronized": true}}]}}}}])",
                                 "layers");
  definition.model = *model::ReadLayers(JsonField(nested, "model.layers"));
  EXPECT_NE(Message(DefineVariables(definition)).find("synchronized: true is not supported"),
            std::string::npos);
}

TEST(Synchronized, WithParameterServersIsRefused) {
  EXPECT_EQ(*FirstExchange(Define(kTwoNorms, false, 4)), "");
  const ModelDefinition definition = Define(kTwoNorms, true, 4);
  const Status status = MakeParameterServer({.common = Options(definition),
                                             .parameters = {.state = definition.state}})
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(status).substr(0, 56),
            "the layer with the op batch_normalization/AllReduceMean ");
}

}  // namespace
}  // namespace tfjob::strategy
