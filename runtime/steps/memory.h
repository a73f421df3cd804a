// Holds the variables of the models that steps use, on each device of a task. All devices have the
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
  int threads = 1;  // total over all devices; each device has at least one
};

// Owned by one thread. Variables live as long as the Memory.
class Memory {
 public:
  // Returns Unimplemented if several devices are requested and `device` is not a CPU.
  static StatusOr<std::unique_ptr<Memory>> Create(const MemoryOptions& options);

  struct Place {
    std::unique_ptr<ThreadPool>
        pool;  // null if the device computes on one thread, or with `device`
    exec::Device device;
    std::unique_ptr<variables::VariableStore> store;
    std::unique_ptr<collectives::Communicator> communicator;  // null if there is one device
    Status status;                                            // of the work in progress
  };

  int devices() const { return static_cast<int>(places_.size()); }
  Place& place(int device) { return places_[static_cast<size_t>(device)]; }
  // Calls work(device) for all devices at the same time, each on the device's own thread. Returns
  // the first error in the order of the devices.
  Status OnEveryDevice(absl::FunctionRef<Status(int)> work);

  // Creates the model's variables, with zeros.
  Status AddVariables(const StepModel& model);
  // Creates the slots of the model's optimizer, with their initial values, unless they exist.
  Status AddSlots(const StepModel& model);
  // Sets the variables and those slots that exist. The snapshot belongs to `training`, whose
  // variables are those of the model, under other names.
  Status Load(const StepModel& model, const state::TrainingState& training,
              const state::Snapshot& values);
  // Returns a copy of the variables and slots. Slots that do not exist are taken from `earlier`.
  StatusOr<state::Snapshot> Take(const StepModel& model, const state::TrainingState& training,
                                 const state::Snapshot& earlier, int64_t step) const;

 private:
  Memory() = default;

  std::vector<Place> places_;
  std::unique_ptr<strategy::DeviceThreads> threads_;
};

}  // namespace tfjob::steps
