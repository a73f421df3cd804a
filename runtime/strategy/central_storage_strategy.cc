// Defines the entry for the central_storage strategy, in which several devices of one task share
// one copy of the variables (mirrored_strategy.h).
#include <utility>

#include "runtime/strategy/mirrored_strategy.h"

namespace tfjob::strategy {

StrategyEntry CentralStorageEntry() {
  return {.kind = config::StrategyKind::kCentralStorage,
          .suits = [](const cluster::TfConfig&) { return false; },
          .check =
              [](const cluster::TfConfig& tf_config) {
                return CheckOneTask(config::StrategyKind::kCentralStorage, tf_config);
              },
          .make =
              [](TrainingTask task, StrategyOptions options) {
                return MakeDevicesOfTask(VariableStorage::kCentral, std::move(task),
                                         std::move(options));
              }};
}

}  // namespace tfjob::strategy
