// Creates the strategies that train with several devices of one task. Each step splits the batch
// into one contiguous part per device. The sizes of the parts are as equal as possible
// (collectives::SliceOf). The devices compute at the same time, and their gradients are summed in
// the order of collectives/reduction.h.
//
// With kMirrored, each device has its own copy of the variables and applies the optimizer to this
// copy; all copies stay bit-identical. With kCentral, there is a single copy of the variables,
// which all devices read, and the optimizer is applied once. The results of both strategies are
// bit-identical.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/rpc/identity.h"
#include "runtime/strategy/strategies.h"
#include "runtime/strategy/strategy.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

enum class VariableStorage { kMirrored, kCentral };

struct DevicesOptions {
  rpc::Identity self;  // the task named in a snapshot that records a position in the data
  StrategyOptions common;
  VariableStorage storage = VariableStorage::kMirrored;
  int devices = 1;
  int threads = 1;             // total over all devices; each device has at least one
  int64_t bytes_per_pack = 0;  // see PlanBuckets
};

// Returns Unimplemented, with a message that says what to change, if the model, the optimizer or
// the device cannot be used (Replica::Create).
StatusOr<std::unique_ptr<Strategy>> MakeWithDevices(DevicesOptions options);

// Returns an error if other tasks of the cluster train, or if the cluster has parameter servers.
Status CheckOneTask(config::StrategyKind kind, const cluster::TfConfig& tf_config);
// Returns an error if the cluster has parameter servers.
Status CheckNoServers(config::StrategyKind kind, const cluster::TfConfig& tf_config);
// Creates the strategy for a task. The task's threads are split among its devices.
StatusOr<std::unique_ptr<Strategy>> MakeDevicesOfTask(VariableStorage storage, TrainingTask task,
                                                      StrategyOptions options);

}  // namespace tfjob::strategy
