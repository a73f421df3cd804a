// Stores the variables of the models that steps use, on each device of a task. All devices have the
// same values.
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
    std::unique_ptr<collectives::Communicator> communicator;  // null if there is only one device
    Status status;                                            // status of the current work
  };

  int devices() const { return static_cast<int>(places_.size()); }
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

  std::vector<Place> places_;
  std::unique_ptr<strategy::DeviceThreads> threads_;
};

}  // namespace tfjob::steps
