#include "runtime/strategy/select.h"

#include <utility>

namespace tfjob::strategy {
namespace {

StatusOr<StrategyEntry> Find(config::StrategyKind wanted, const cluster::TfConfig& tf_config) {
  for (const StrategyEntry& entry : AllStrategies()) {
    const bool taken =
        wanted == config::StrategyKind::kAuto ? entry.suits(tf_config) : entry.kind == wanted;
    if (!taken) continue;
    RETURN_IF_ERROR(entry.check(tf_config));
    return entry;
  }
  return Unimplemented("strategy.name: ", config::kStrategyNames[static_cast<size_t>(wanted)],
                       " is not available in this version");
}

}  // namespace

StatusOr<config::StrategyKind> Select(config::StrategyKind wanted,
                                      const cluster::TfConfig& tf_config) {
  ASSIGN_OR_RETURN(const StrategyEntry entry, Find(wanted, tf_config));
  return entry.kind;
}

StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options) {
  ASSIGN_OR_RETURN(const StrategyEntry entry, Find(task.config.kind, task.tf_config));
  return entry.make(std::move(task), std::move(options));
}

}  // namespace tfjob::strategy
