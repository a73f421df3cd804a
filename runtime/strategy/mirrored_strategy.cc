#include "runtime/strategy/mirrored_strategy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/collectives/shared/thread_communicator.h"
#include "runtime/strategy/device_threads.h"
#include "runtime/strategy/positions.h"
#include "runtime/strategy/replica.h"
#include "runtime/strategy/strategies.h"

namespace tfjob::strategy {
namespace {

constexpr Logger kMirroredLog("strategy");

// Copies contiguous rows of batches. Each part has separate memory, because the rows of a batch may
// start at an address that kernels do not accept.
class BatchPart {
 public:
  // Returns these rows of the batch. The result is valid until the next call. Allocates memory only
  // if the number of rows or the length of the examples has not occurred before.
  const data::Batch& Of(const data::Batch& batch, const collectives::Slice& rows) {
    size_t bytes = 0;  // of an example, which depends on the length of its bucket
    for (const data::NamedTensor& tensor : batch.tensors)
      bytes += tensor.value.num_bytes() / static_cast<size_t>(batch.size());
    data::Batch& part = parts_[{rows.count, bytes}];
    part.position = batch.position;
    if (part.tensors.empty()) Allocate(batch, rows.count, part);
    for (size_t i = 0; i < batch.tensors.size(); ++i) {
      const Tensor& whole = batch.tensors[i].value;
      const std::span<std::byte> to = part.tensors[i].value.bytes();
      const size_t row = whole.num_bytes() / static_cast<size_t>(batch.size());
      std::ranges::copy(whole.bytes().subspan(static_cast<size_t>(rows.begin) * row, to.size()),
                        to.begin());
    }
    return part;
  }

 private:
  static void Allocate(const data::Batch& batch, int64_t rows, data::Batch& part) {
    for (const data::NamedTensor& tensor : batch.tensors) {
      std::vector<int64_t> dims(tensor.value.shape().dims().begin(),
                                tensor.value.shape().dims().end());
      dims[0] = rows;
      part.tensors.push_back(
          {tensor.name, Tensor(tensor.value.dtype(), Shape(dims), Buffer::Contents::kUndefined)});
    }
  }

  // The key is the number of rows and the number of bytes per row.
  std::map<std::pair<int64_t, size_t>, data::Batch> parts_;
};

// A device of this task. During a step, only the device's own thread uses it.
struct TaskDevice {
  std::unique_ptr<ThreadPool> pool;  // null if the device computes on its thread alone
  // The replica keeps its buckets in the communicator's memory, so the replica is destroyed first.
  std::unique_ptr<collectives::Communicator> communicator;
  std::unique_ptr<Replica> replica;
  BatchPart part;
  MetricTotals ignored;  // all devices get the same totals; device 0 reports them
  Status status;
  bool applied = false;
};

class WithDevices : public Strategy {
 public:
  explicit WithDevices(DevicesOptions options)
      : self_(std::move(options.self)),
        provide_state_(std::move(options.common.provide_state)),
        central_(options.storage == VariableStorage::kCentral),
        devices_(static_cast<size_t>(options.devices)),
        threads_(options.devices) {}

  // Destroys device 0 last, because the other replicas may read its variables.
  ~WithDevices() override {
    while (!devices_.empty()) devices_.pop_back();
  }

  Status Create(const DevicesOptions& options) {
    auto communicators = collectives::MakeThreadCommunicators(options.devices);
    for (size_t i = 0; i < devices_.size(); ++i) {
      TaskDevice& device = devices_[i];
      device.communicator = std::move(communicators[i]);
      StrategyOptions own = OptionsOf(options, static_cast<int>(i));
      ASSIGN_OR_RETURN(device.replica,
                       Holds(device) ? Replica::Create(std::move(own), options.bytes_per_pack)
                                     : Replica::CreateReader(std::move(own), options.bytes_per_pack,
                                                             *devices_[0].replica));
    }
    return OnEveryDevice(
        [](TaskDevice& device) { return device.replica->Connect(*device.communicator); });
  }

  StatusOr<StepOutcome> Start() override {
    const state::Snapshot memory = devices_[0].replica->Memory();
    ASSIGN_OR_RETURN(const state::Snapshot snapshot, provide_state_(&memory));
    for (const TaskDevice& device : devices_) {
      if (!Holds(device)) break;
      RETURN_IF_ERROR(device.replica->Load(snapshot));
    }
    global_step_ = snapshot.global_step;
    drawn_ = OnlyPosition(snapshot.ledger).value_or(global_step_);
    return StepOutcome{.global_step = global_step_, .drawn = drawn_};
  }

  // No device may apply the step until every device has received all reduced contributions.
  StatusOr<StepOutcome> Step(const data::Batch& batch, MetricTotals& totals) override {
    RETURN_IF_ERROR(
        OnEveryDevice([&](TaskDevice& device) { return ComputeAndReduce(device, batch); }));
    RETURN_IF_ERROR(OnEveryDevice([&](TaskDevice& device) -> Status {
      if (!Holds(device)) return OkStatus();
      MetricTotals& reported = &device == devices_.data() ? totals : device.ignored;
      ASSIGN_OR_RETURN(device.applied, device.replica->Apply(global_step_, reported));
      return OkStatus();
    }));
    ++drawn_;
    const bool applied = devices_[0].applied;
    if (applied) ++global_step_;
    return StepOutcome{.global_step = global_step_, .skipped = !applied, .drawn = drawn_};
  }

  StatusOr<state::Snapshot> TakeSnapshot() override {
    ASSIGN_OR_RETURN(const state::SnapshotCopy copy, BeginSnapshot());
    return copy.Finish();
  }

  StatusOr<state::SnapshotCopy> BeginSnapshot() override {
    std::string ledger;
    if (drawn_ != global_step_)
      ledger = PositionRecord({self_.task_type, self_.task_index}, drawn_);
    // Check all devices. A device whose update has failed has no state, and the other devices may
    // then be one step ahead of global_step_.
    for (const TaskDevice& device : devices_) {
      if (Holds(device)) RETURN_IF_ERROR(device.replica->CheckState());
    }
    return devices_[0].replica->BeginSnapshot(global_step_, std::move(ledger));
  }

  Status SetLearningRate(double rate) override {
    for (const TaskDevice& device : devices_) {
      if (Holds(device)) RETURN_IF_ERROR(device.replica->SetLearningRate(rate, global_step_));
    }
    return OkStatus();
  }
  std::optional<state::LearningRate> learning_rate() const override {
    return devices_[0].replica->learning_rate();
  }

  Status Leave() override { return OkStatus(); }
  Status Finish() override { return OkStatus(); }
  Status Fail(const Status&) override { return OkStatus(); }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  // Returns whether the device has its own variables to apply the step to.
  bool Holds(const TaskDevice& device) const { return !central_ || &device == devices_.data(); }

  StrategyOptions OptionsOf(const DevicesOptions& options, int index) {
    StrategyOptions own = options.common;
    own.provide_state = nullptr;
    own.replica = options.common.replica * options.devices + index;
    own.definition.build.batch_size =
        collectives::SliceOf(own.definition.build.batch_size, index, options.devices).count;
    const auto threads = collectives::SliceOf(options.threads, index, options.devices).count;
    TaskDevice& device = devices_[static_cast<size_t>(index)];
    if (threads > 1)  // one of the threads runs the programs
      device.pool = std::make_unique<ThreadPool>("compute", static_cast<int>(threads) - 1);
    own.device.pool = device.pool.get();
    return own;
  }

  // Calls work(device) on the threads of all devices. Returns the error of the first device that
  // has one. If an error aborts the step, all devices have the same error.
  template <typename Work>
  Status OnEveryDevice(const Work& work) {
    threads_.Run([&](int index) {
      TaskDevice& device = devices_[static_cast<size_t>(index)];
      device.status = work(device);
    });
    for (const TaskDevice& device : devices_) RETURN_IF_ERROR(device.status);
    return OkStatus();
  }

  Status ComputeAndReduce(TaskDevice& device, const data::Batch& batch) {
    const collectives::Communicator& communicator = *device.communicator;
    const collectives::Slice rows =
        collectives::SliceOf(batch.size(), communicator.rank(), communicator.size());
    const Shares shares{
        .examples = batch.size(),
        .ranks_with_examples = std::min<int64_t>(batch.size(), communicator.size())};
    RETURN_IF_ERROR(device.replica->Compute(device.part.Of(batch, rows), global_step_, shares));
    return device.replica->Reduce();
  }

  const rpc::Identity self_;
  const std::function<StatusOr<state::Snapshot>(const state::Snapshot*)> provide_state_;
  const bool central_;
  std::vector<TaskDevice> devices_;
  DeviceThreads threads_;
  int64_t global_step_ = 0;
  int64_t drawn_ = 0;  // the number of batches, including skipped ones
};

}  // namespace

StatusOr<std::unique_ptr<Strategy>> MakeWithDevices(DevicesOptions options) {
  if (!options.common.device.runtime->immediate()) {
    return Unimplemented("strategy.devices: only CPUs can be divided into devices, but the task ",
                         "computes on ", options.common.device.name,
                         "; use strategy.name: one_device or, for several GPUs, ",
                         "multi_worker_mirrored with one task per GPU");
  }
  if (options.threads < options.devices) {
    kMirroredLog.Warning("there are more devices than threads: devices share processors",
                         {{"devices", options.devices}, {"threads", options.threads}});
  }
  auto strategy = std::make_unique<WithDevices>(options);
  RETURN_IF_ERROR(strategy->Create(options));
  return std::unique_ptr<Strategy>(std::move(strategy));
}

Status CheckOneTask(config::StrategyKind kind, const cluster::TfConfig& tf_config) {
  const char* const name = config::kStrategyNames[static_cast<size_t>(kind)];
  if (tf_config.cluster.sparse()) {
    return InvalidArgument("strategy.name: ", name, " trains with the devices of a single task, ",
                           "but with enableDynamicWorker, any number of tasks may train: train ",
                           "with one task, without enableDynamicWorker");
  }
  const int tasks = cluster::TrainingTaskCount(tf_config);
  if (tasks > 1 || cluster::RoleOf(tf_config) != cluster::Role::kChief) {
    return InvalidArgument("strategy.name: ", name, " trains with the devices of a single task, ",
                           "but the cluster has ", tasks > 1 ? StrCat(tasks) : "several",
                           " tasks that train: use multi_worker_mirrored, or train with one task");
  }
  return CheckNoServers(kind, tf_config);
}

Status CheckNoServers(config::StrategyKind kind, const cluster::TfConfig& tf_config) {
  const char* const name = config::kStrategyNames[static_cast<size_t>(kind)];
  const int servers = tf_config.cluster.size("ps");
  if (servers == 0) return OkStatus();
  return InvalidArgument("strategy.name: ", name, " uses no parameter servers, but the cluster ",
                         "has ", servers, " ps tasks: remove them, or use parameter_server");
}

StatusOr<std::unique_ptr<Strategy>> MakeDevicesOfTask(VariableStorage storage, TrainingTask task,
                                                      StrategyOptions options) {
  const ThreadPool* const pool = options.device.pool;
  return MakeWithDevices({.self = std::move(task.identity),
                          .common = std::move(options),
                          .storage = storage,
                          .devices = static_cast<int>(task.config.devices),
                          .threads = pool == nullptr ? 1 : pool->threads() + 1,
                          .bytes_per_pack = task.config.bytes_per_pack});
}

StrategyEntry MirroredEntry() {
  return {.kind = config::StrategyKind::kMirrored,
          .suits = [](const cluster::TfConfig&) { return false; },
          .check =
              [](const cluster::TfConfig& tf_config) {
                return CheckOneTask(config::StrategyKind::kMirrored, tf_config);
              },
          .make =
              [](TrainingTask task, StrategyOptions options) {
                return MakeDevicesOfTask(VariableStorage::kMirrored, std::move(task),
                                         std::move(options));
              }};
}

}  // namespace tfjob::strategy
