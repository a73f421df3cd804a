// Stores the variables of the models that steps use, on each device of a task. All devices of all
// tasks have the same values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/base/thread_pool.h"
#include "runtime/collectives/communicator.h"
#include "runtime/exec/device.h"
#include "runtime/state/snapshot.h"
#include "runtime/steps/definition.h"
#include "runtime/strategy/device_threads.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::steps {

struct MemoryOptions {
  exec::Device device;
  int devices = 1;
  int threads = 1;  // total for all devices; each device has at least one thread
  // If steps are taken together with other tasks, this task's rank and the number of tasks. Each
  // task then has one device.
  int task = 0;
  int tasks = 1;
};

// Stores the variables and slots on each device. Variables exist as long as the Memory. Not
// thread-safe: only one thread may use a Memory.
class Memory {
 public:
  // Returns Unimplemented if there is more than one device and `device` is not a CPU.
  static StatusOr<std::unique_ptr<Memory>> Create(const MemoryOptions& options);

  struct Place {
    // The device's own pool. Null if the device has only one thread, or if it is the only device
    // and therefore uses the pool of MemoryOptions::device.
    std::unique_ptr<ThreadPool> pool;
    exec::Device device;
    std::unique_ptr<variables::VariableStore> store;
    // Connects the devices of this task; null if there is only one.
    std::unique_ptr<collectives::Communicator> communicator;
    Status status;  // status of the current work
  };

  // Connects this task to the others. All tasks must call Connect before they run a step together.
  // The communicator must outlive the memory.
  void Connect(collectives::Communicator& tasks) { between_tasks_ = &tasks; }

  int devices() const { return static_cast<int>(places_.size()); }
  int tasks() const { return tasks_; }
  // Returns the number of devices in all tasks.
  int replicas() const { return devices() * tasks_; }
  // Returns the index of a device of this task among the devices of all tasks.
  int replica(int device) const { return task_ * devices() + device; }
  // Returns the communicator that connects the device with all others. Requires several replicas,
  // and Connect if there are several tasks.
  collectives::Communicator& communicator(int device) {
    return tasks_ > 1 ? *between_tasks_ : *place(device).communicator;
  }
  Place& place(int device) { return places_[static_cast<size_t>(device)]; }
  // Calls work(device) for all devices concurrently, each on a thread of the device. If several
  // calls fail, returns the error of the first device in order.
  Status OnEveryDevice(absl::FunctionRef<Status(int)> work);

  // Creates the model's variables, filled with zeros.
  Status AddVariables(const StepModel& model);
  // Creates the slots of the model's optimizer with their initial values, unless the slots already
  // exist.
  Status AddSlots(const StepModel& model);
  // Sets the variables and the existing slots from a snapshot. The snapshot belongs to `training`,
  // which describes the same variables as the model, but with different names.
  Status Load(const StepModel& model, const state::TrainingState& training,
              const state::Snapshot& values);
  // Returns a copy of the variables and slots. The values of slots that do not exist are copied
  // from `earlier`.
  StatusOr<state::Snapshot> Take(const StepModel& model, const state::TrainingState& training,
                                 const state::Snapshot& earlier, int64_t step) const;

 private:
  Memory() = default;

  int task_ = 0, tasks_ = 1;
  collectives::Communicator* between_tasks_ = nullptr;
  std::vector<Place> places_;
  std::unique_ptr<strategy::DeviceThreads> threads_;
};

}  // namespace tfjob::steps
