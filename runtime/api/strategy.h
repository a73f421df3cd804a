// Defines how the work is distributed.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "status.h"

namespace tfjob::api {

struct StrategyData;

// Immutable and cheap to copy.
class Strategy {
 public:
  // Moves are copies, so that a value can be used after a move.
  Strategy(const Strategy&) = default;
  Strategy& operator=(const Strategy&) = default;
  // Reads TF_CONFIG, which `tfjob run` and the operator of a TFJob set, and the other variables of
  // a task, as tfjob-trainer does. Without TF_CONFIG, the process trains alone on one device. If
  // the variables are invalid, Session::Compile returns InvalidArgument; if they describe a job
  // that this library does not support yet, it returns Unimplemented. The first call takes the
  // job's key from the environment (TFJOB_KEY), so that programs which this one starts do not
  // inherit it; call it before other threads use the environment.
  static Strategy FromEnvironment();
  // Trains on one device, and ignores the environment, like the next two.
  static Strategy OneDevice();
  // Divides the batches, and the process's processors, among several devices of this process.
  static Strategy Mirrored(int devices);
  // The same, with the variables on the first device.
  static Strategy CentralStorage(int devices);

  const Status& status() const&;
  Status status() && { return std::as_const(*this).status(); }
  // Returns the name that the training file uses: "mirrored"; "auto" for FromEnvironment.
  std::string name() const;
  // Returns whether this process is the chief of its job, which alone needs to save what the job
  // produces. True for a process that trains alone.
  bool is_chief() const;

 private:
  friend struct Access;
  explicit Strategy(std::shared_ptr<const StrategyData> data) : data_(std::move(data)) {}

  std::shared_ptr<const StrategyData> data_;
};

}  // namespace tfjob::api
