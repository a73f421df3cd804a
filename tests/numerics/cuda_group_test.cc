// Trains a group of tasks whose GPUs exchange gradients with NCCL. Driver, kernels and NCCL are
// simulated, and the tasks are threads; servers, sockets and the group are real. The simulated NCCL
// adds in the order of the tree, so the results equal those of the tasks' own transport, bit for
// bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/collectives/nccl/fake_nccl.h"
#include "runtime/collectives/transport/task_communicator.h"
#include "runtime/data/pipeline.h"
#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/model/keras.h"
#include "runtime/rpc/server.h"
#include "runtime/strategy/multi_worker_mirrored_strategy.h"
#include "runtime/wire/test_address.h"

namespace tfjob::strategy {
namespace {

using collectives::NcclChoice;
using collectives::nccl::FakeNccl;
using collectives::nccl::FakeNcclOptions;
using collectives::nccl::FakeNcclState;
using collectives::nccl::NcclFault;
using testing::AnyOf;
using testing::HasSubstr;

constexpr char kDense[] =
    R"([{"Dense": {"units": 3, "activation": "tanh"}}, {"Dense": {"units": 1}}])";
// The moving statistics are reduced on the host.
constexpr char kNormalized[] =
    R"([{"Dense": {"units": 3}}, {"BatchNormalization": {}}, {"Dense": {"units": 1}}])";

ModelDefinition Define(const char* layers) {
  ModelDefinition definition;
  const Json json = *ParseJson(layers, "layers");
  definition.model = *model::ReadLayers(JsonField(json, "model.layers"));
  definition.build.features = model::Features({2});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.build.clipping = {.kind = optimizer::ClipKind::kGlobalNorm, .limit = 0.5};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.seed = 5;
  definition.build.batch_size = 2;
  EXPECT_EQ(DefineVariables(definition), OkStatus());
  return definition;
}

constexpr int64_t kNever = -1;

struct Job {
  const char* layers = kDense;
  int64_t global_batch = 8;
  int64_t steps = 4;
  NcclChoice nccl = NcclChoice::kAlways;
  config::OnNonFinite on_non_finite = config::OnNonFinite::kSkip;
  int64_t bytes_per_pack = 16;    // several buckets
  std::vector<bool> on_cpu = {};  // by task
  int64_t bad_batch = kNever;     // a batch with NaN
  bool shrinks = false;
  Duration patience{60s};
  const collectives::nccl::NcclApi* library = nullptr;
};

data::Batch BatchOf(const Job& job, int64_t number, int rank, int ranks) {
  const auto [begin, size] = collectives::SliceOf(job.global_batch, rank, ranks);
  Tensor x(DType::kFloat32, {size, 2}), y(DType::kFloat32, {size});
  for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
    const int64_t row = number * job.global_batch + begin + static_cast<int64_t>(i);
    x.data<float>()[2 * i] = static_cast<float>(row * 37 % 101) / 50 - 1;
    x.data<float>()[2 * i + 1] = static_cast<float>(row * 53 % 101) / 50 - 1;
    y.data<float>()[i] = x.data<float>()[2 * i] - 2 * x.data<float>()[2 * i + 1];
  }
  if (number == job.bad_batch && rank == 0) x.data<float>()[0] = NAN;
  return {.tensors = {{"features", std::move(x)}, {model::kLabels, std::move(y)}}, .position = {}};
}

// A process of a task.
class GpuTask {
 public:
  GpuTask(const Job& job, const std::vector<collectives::GroupTask>& tasks, size_t index,
          exec::Device device, const std::atomic<bool>& stop)
      : job_(job), stop_(stop) {
    const rpc::Identity identity{.job_uid = "job",
                                 .attempt = 1,
                                 .task_type = tasks[index].type,
                                 .task_index = tasks[index].index,
                                 .incarnation = 100 + static_cast<int64_t>(index)};
    const rpc::Credentials credentials{.key = *wire::JobKey::Parse(std::string(64, 'a'))};
    collectives::EndpointOptions options{.identity = identity,
                                         .tasks = tasks,
                                         .credentials = credentials,
                                         .make_communicator = FactoryOf(device.runtime)};
    options.shrinks = job.shrinks;
    endpoint_ = std::make_unique<collectives::Endpoint>(std::move(options));
    const auto place = wire::SplitAddress(tasks[index].address);
    server_ = *rpc::Server::Start({.host = place->host,
                                   .port = std::stoi(place->port),
                                   .identity = identity,
                                   .credentials = credentials,
                                   .streams = {{collectives::Endpoint::kService, endpoint_.get()}},
                                   .on_data = endpoint_.get()});
    CreateStrategy(index, std::move(device), tasks.size());
  }
  ~GpuTask() {
    strategy_.reset();
    server_.reset();
  }

  Strategy& strategy() { return *strategy_; }

  // Trains to the last step. Calls after(step) after each step, on this thread.
  StatusOr<state::Snapshot> Train(const std::function<Status(int64_t step)>& after) {
    ASSIGN_OR_RETURN(StepOutcome outcome, strategy_->Start());
    while (outcome.drawn < job_.steps) {
      const data::Batch batch = BatchOf(job_, outcome.drawn, outcome.rank, outcome.ranks);
      ASSIGN_OR_RETURN(outcome, strategy_->Step(batch, totals_));
      if (after) RETURN_IF_ERROR(after(outcome.drawn));
    }
    return strategy_->TakeSnapshot();
  }

 private:
  collectives::CommunicatorFactory FactoryOf(std::shared_ptr<device::DeviceRuntime> device) const {
    return [job = &job_, device](int rank, std::vector<wire::UniqueFd> sockets,
                                 const collectives::Interrupt& interrupt) {
      return collectives::MakeTaskCommunicator({.rank = rank,
                                                .sockets = std::move(sockets),
                                                .interrupt = interrupt,
                                                .nccl = job->nccl,
                                                .device = device,
                                                .nccl_patience = job->patience,
                                                .nccl_library = job->library});
    };
  }

  void CreateStrategy(size_t index, exec::Device device, size_t tasks) {
    ModelDefinition definition = Define(job_.layers);
    definition.build.batch_size =
        collectives::SliceOf(job_.global_batch, static_cast<int>(index), static_cast<int>(tasks))
            .count;
    MultiWorkerMirroredOptions options{
        .common = {.definition = definition,
                   .device = std::move(device),
                   .on_non_finite = job_.on_non_finite,
                   .replica = static_cast<int64_t>(index),
                   .provide_state = [definition](const state::Snapshot*)
                       -> StatusOr<state::Snapshot> { return InitialState(definition); }},
        .group = endpoint_->MakeGroup({.on_event = [](const state::PeerEvent&) {},
                                       .stop_requested = [this] { return stop_.load(); },
                                       .asked_to_end = [] { return false; }}),
        .leader = {"chief", 0},
        .leads = index == 0,
        .shrinks = job_.shrinks,
        .global_batch = job_.global_batch,
        .bytes_per_pack = job_.bytes_per_pack,
        .last_step = job_.steps,
        .claim_run = []() -> StatusOr<RunClaim> { return RunClaim(); },
        .on_event = [](const state::PeerEvent&) {}};
    auto made = MakeMultiWorkerMirrored(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status();
    strategy_ = *std::move(made);
  }

  const Job& job_;
  const std::atomic<bool>& stop_;
  MetricTotals totals_;
  std::unique_ptr<collectives::Endpoint> endpoint_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Strategy> strategy_;
};

// Returns the values of all variables and slots.
std::vector<float> ValuesOf(const state::Snapshot& snapshot) {
  std::vector<float> values;
  const auto add = [&](const Tensor& tensor) {
    values.insert(values.end(), tensor.data<float>().begin(), tensor.data<float>().end());
  };
  for (const state::VariableState& state : snapshot.variables) {
    add(state.value);
    std::ranges::for_each(state.slots, add);
  }
  return values;
}

struct Trained {
  std::vector<Status> errors;              // by task
  std::vector<std::vector<float>> states;  // by task; empty after an error
};

// Calls after(task, step) after each step of each task. An error ends the process of the task.
using AfterStep = std::function<Status(size_t task, int64_t step)>;

Trained Train(Job job, size_t tasks, FakeNcclOptions nccl = {}, const AfterStep& after = nullptr,
              uint64_t seed = 7) {
  job.library = &FakeNccl(std::move(nccl));
  const auto devices = exec::EmulatedCudaDevices(seed, static_cast<int>(tasks));
  job.on_cpu.resize(tasks);
  std::vector<collectives::GroupTask> places = {{"chief", 0, wire::TestAddress()}};
  for (size_t i = 1; i < tasks; ++i)
    places.push_back({"worker", static_cast<int32_t>(i) - 1, wire::TestAddress()});
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<GpuTask>> running;
  for (size_t i = 0; i < tasks; ++i) {
    const exec::Device& device = job.on_cpu[i] ? exec::CpuDevice() : devices[i];
    running.push_back(std::make_unique<GpuTask>(job, places, i, device, stop));
  }
  Trained trained{.errors = std::vector<Status>(tasks),
                  .states = std::vector<std::vector<float>>(tasks)};
  std::vector<Thread> threads;
  Mutex mutex;
  CondVar changed;
  size_t left = tasks;  // tasks that still train
  for (size_t i = 0; i < tasks; ++i) {
    threads.emplace_back("task", [&, i] {
      const auto state =
          running[i]->Train([&](int64_t step) { return after ? after(i, step) : OkStatus(); });
      trained.errors[i] = state.status();
      // No other task has to wait for this one.
      if (absl::IsFailedPrecondition(state.status())) stop = true;
      if (state.ok()) trained.states[i] = ValuesOf(*state);
      // Stay until all have finished, because a task that leaves ends the generation. A task with
      // an error leaves at once.
      if (!state.ok()) running[i].reset();
      {
        MutexLock lock(mutex);
        --left;
        changed.NotifyAll();
        while (left > 0) changed.Wait(mutex);
      }
      running[i].reset();
    });
  }
  for (Thread& thread : threads) thread.Join();
  EXPECT_EQ(FakeNcclState().communicators, 0);
  return trained;
}

void ExpectAllEqual(const Trained& trained, const std::vector<float>& expected) {
  EXPECT_FALSE(expected.empty());
  for (size_t i = 0; i < trained.states.size(); ++i) {
    EXPECT_EQ(trained.errors[i], OkStatus());
    EXPECT_EQ(trained.states[i], expected) << "task " << i;
  }
}

// Expects states that differ by rounding errors.
void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-3) << i;
}

// Returns the state after the same job with gradients that go through the memory of the host.
std::vector<float> Reference(Job job, size_t tasks) {
  job.nccl = NcclChoice::kNever;
  const Trained trained = Train(job, tasks);
  EXPECT_EQ(FakeNcclState().operations, 0);
  ExpectAllEqual(trained, trained.states[0]);
  return trained.states[0];
}

TEST(CudaGroup, AllTasksGetTheBitsOfTheirOwnTransport) {
  for (const auto& [layers, tasks] : {std::pair(kDense, 3), {kNormalized, 2}}) {
    const Job job{.layers = layers};
    const std::vector<float> expected = Reference(job, static_cast<size_t>(tasks));
    ExpectAllEqual(Train(job, static_cast<size_t>(tasks), {.seed = 2}, nullptr, /*seed=*/3),
                   expected);
    EXPECT_GT(FakeNcclState().operations, 0);
  }
}

TEST(CudaGroup, AStepAddsEachBucketOnceOnTheGpus) {
  const auto operations = [](int64_t steps) {
    const Trained trained = Train({.steps = steps, .bytes_per_pack = 1 << 20}, 2);
    ExpectAllEqual(trained, trained.states[0]);
    return FakeNcclState().operations;
  };
  const int64_t once = operations(1);
  EXPECT_EQ(once, 2) << "one bucket of two tasks";
  EXPECT_EQ(operations(4), 4 * once) << "only gradients use NCCL";
}

TEST(CudaGroup, ATaskWithoutExamplesAddsZeros) {
  const Job job{.global_batch = 2};
  ExpectAllEqual(Train(job, 3), Reference(job, 3));
}

TEST(CudaGroup, BatchesThatAreNotFiniteAreSkippedByAllTasks) {
  Job job{.bad_batch = 2};
  const std::vector<float> expected = Reference(job, 2);
  const Trained trained = Train(job, 2);
  ExpectAllEqual(trained, expected);
  for (const float value : expected) EXPECT_TRUE(std::isfinite(value));
  job = {.on_non_finite = config::OnNonFinite::kContinue};
  ExpectAllEqual(Train(job, 2), Reference(job, 2));
}

TEST(CudaGroup, AfterARemoteErrorTheStepIsRepeated) {
  for (const NcclFault kind : {NcclFault::kRemoteError, NcclFault::kLostRank}) {
    const Job job;
    std::atomic<bool> failed = false;
    const auto fault = [&](int rank, int64_t operation) {
      return rank == 1 && operation == 3 && !failed.exchange(true) ? kind : NcclFault::kNone;
    };
    ExpectAllEqual(Train(job, 3, {.fault = fault}), Reference(job, 3));
    EXPECT_TRUE(failed);
  }
}

TEST(CudaGroup, AnExchangeThatHangsEndsAllTasks) {
  for (const NcclFault kind : {NcclFault::kHang, NcclFault::kSlowCall}) {
    const auto fault = [&](int rank, int64_t operation) {
      return rank == 1 && operation == 3 ? kind : NcclFault::kNone;
    };
    const Trained trained = Train({.patience = 1s}, 3, {.fault = fault});
    for (const Status& error : trained.errors) {
      EXPECT_EQ(error.code(), StatusCode::kDeadlineExceeded) << error;
      EXPECT_THAT(std::string(Message(error)), HasSubstr("AllReduce("));
      EXPECT_THAT(std::string(Message(error)),
                  AnyOf(HasSubstr("chief 0"), HasSubstr("worker 0"), HasSubstr("worker 1")));
    }
    EXPECT_EQ(FakeNcclState().aborts, 3);
  }
}

// The others continue with a new communicator, whose parts of a batch are larger.
TEST(CudaGroup, TheOthersContinueWithoutATaskThatDies) {
  const Job job{.steps = 6, .shrinks = true};
  const AfterStep dies = [](size_t task, int64_t step) {
    return task == 2 && step == 3 ? Internal("the process dies") : OkStatus();
  };
  const Trained trained = Train(job, 3, {}, dies);
  EXPECT_EQ(trained.errors[2], Internal("the process dies"));
  for (const size_t task : {0, 1}) {
    EXPECT_EQ(trained.errors[task], OkStatus());
    EXPECT_EQ(trained.states[task], trained.states[0]);
  }
  ExpectNear(trained.states[0], Reference({.steps = 6}, 3));
}

TEST(CudaGroup, ATaskOnACpuIsAnErrorWithNccl) {
  const Trained trained = Train({.on_cpu = {false, true}}, 2);
  int refused = 0;
  for (const Status& error : trained.errors) {
    // A task that learns of the other's error too early joins again, until it is stopped.
    if (absl::IsCancelled(error)) continue;
    ++refused;
    EXPECT_EQ(error.code(), StatusCode::kFailedPrecondition) << error;
    EXPECT_THAT(std::string(Message(error)), HasSubstr("worker 0"));
    EXPECT_THAT(std::string(Message(error)), HasSubstr("it does not compute on an NVIDIA GPU"));
  }
  EXPECT_GE(refused, 1);
}

TEST(CudaGroup, WithAutoAGroupWithATaskOnACpuUsesItsOwnTransport) {
  const Job job{.nccl = NcclChoice::kIfAllCan, .on_cpu = {false, true}};
  const Trained trained = Train(job, 2);
  EXPECT_EQ(FakeNcclState().operations, 0);
  EXPECT_EQ(trained.errors, std::vector<Status>(2));
  ExpectNear(trained.states[0], trained.states[1]);  // a GPU rounds differently than a CPU
  const Job all{.nccl = NcclChoice::kIfAllCan};
  ExpectAllEqual(Train(all, 2), Reference(all, 2));
}

}  // namespace
}  // namespace tfjob::strategy
