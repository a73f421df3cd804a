#include "runtime/strategy/select.h"

#include <algorithm>
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

bool MakesGlobalBatches(config::StrategyKind kind) {
  return std::ranges::any_of(AllStrategies(), [kind](const StrategyEntry& entry) {
    return entry.kind == kind && entry.global_batches;
  });
}

StatusOr<std::unique_ptr<collectives::Endpoint>> MakeEndpoint(const TrainingTask& task) {
  ASSIGN_OR_RETURN(const StrategyEntry entry, Find(task.config.kind, task.tf_config));
  if (entry.make_endpoint == nullptr) return std::unique_ptr<collectives::Endpoint>();
  return entry.make_endpoint(task);
}

StatusOr<std::unique_ptr<Strategy>> MakeStrategy(TrainingTask task, StrategyOptions options) {
  ASSIGN_OR_RETURN(const StrategyEntry entry, Find(task.config.kind, task.tf_config));
  return entry.make(std::move(task), std::move(options));
}

}  // namespace tfjob::strategy
