#include "runtime/config/strategy_checks.h"

#include "runtime/config/keys.h"

namespace tfjob::config {
namespace {

Status CheckNccl(const StrategyConfig& strategy) {
  if (strategy.transport != CollectiveTransport::kAuto) {
    return InvalidArgument(
        "strategy.transport: expected auto, because strategy.implementation is nccl, which chooses "
        "its own connections, got ",
        kTransportNames[static_cast<size_t>(strategy.transport)], "; remove one of the two");
  }
  if (strategy.compression != Compression::kNone) {
    return InvalidArgument(
        "strategy.compression: expected none, because strategy.implementation is nccl, in which "
        "every task may round the sum again, got ",
        kCompressionNames[static_cast<size_t>(strategy.compression)], "; remove one of the two");
  }
  return OkStatus();
}

Status CheckImplementation(const StrategyConfig& strategy) {
  if (strategy.implementation == CollectiveImplementation::kNccl) return CheckNccl(strategy);
  if (strategy.implementation != CollectiveImplementation::kRing) return OkStatus();
  if (strategy.transport == CollectiveTransport::kSharedMemory) {
    return InvalidArgument(
        "strategy.transport: expected auto or tcp, because strategy.implementation is ring, which "
        "needs a connection between each task and the next one, got shared_memory; remove one of "
        "the two");
  }
  if (strategy.compression != Compression::kNone) {
    return InvalidArgument(
        "strategy.compression: expected none, because strategy.implementation is ring, in which "
        "every task would round the sum again, got ",
        kCompressionNames[static_cast<size_t>(strategy.compression)], "; remove one of the two");
  }
  return OkStatus();
}

}  // namespace

Status CheckStrategy(const StrategyConfig& strategy) {
  const bool servers =
      strategy.kind == StrategyKind::kAuto || strategy.kind == StrategyKind::kParameterServer;
  if (strategy.max_staleness && !servers) {
    return InvalidArgument(
        "strategy.max_staleness: belongs to strategy.name parameter_server, but strategy.name is ",
        kStrategyNames[static_cast<size_t>(strategy.kind)],
        ", where no gradient is stale; remove one of the two");
  }
  return CheckImplementation(strategy);
}

namespace {

Status CheckReplicas(const StrategyConfig& strategy) {
  if (strategy.min_replicas.has_value() != strategy.max_replicas.has_value()) {
    const bool min = strategy.min_replicas.has_value();
    return InvalidArgument("strategy.", min ? "max_replicas" : "min_replicas",
                           ": expected a number, because strategy.",
                           min ? "min_replicas" : "max_replicas", " is set; set both or neither");
  }
  if (!strategy.min_replicas || *strategy.min_replicas <= *strategy.max_replicas) return OkStatus();
  return InvalidArgument("strategy.min_replicas: expected at most strategy.max_replicas, which is ",
                         *strategy.max_replicas, ", got ", *strategy.min_replicas);
}

}  // namespace

Status CheckElastic(const TrainingConfig& config) {
  const StrategyConfig& strategy = config.strategy;
  RETURN_IF_ERROR(CheckReplicas(strategy));
  if (!strategy.IsElastic()) return OkStatus();
  const std::string why =
      StrCat("the number of tasks may change between strategy.min_replicas (",
             *strategy.min_replicas, ") and strategy.max_replicas (", *strategy.max_replicas, ")");
  if (strategy.on_failure != OnFailure::kShrink) {
    return InvalidArgument("strategy.on_failure: expected shrink, because ", why, ", got ",
                           kOnFailureNames[static_cast<size_t>(strategy.on_failure)],
                           "; set on_failure: shrink, or remove these two keys");
  }
  if (!config.global_batch_size) {
    return InvalidArgument("global_batch_size: expected a number, because ", why,
                           config.batch_size ? "; replace batch_size by global_batch_size"
                                             : "; set global_batch_size");
  }
  if (*config.global_batch_size < *strategy.max_replicas) {
    return InvalidArgument(
        "global_batch_size: expected at least one example for each of the "
        "strategy.max_replicas (",
        *strategy.max_replicas, ") tasks, got ", *config.global_batch_size);
  }
  const BucketConfig& buckets = config.data.bucket_by_length;
  if (!buckets.batch_sizes.empty() || buckets.batch_tokens) {
    return InvalidArgument("data.bucket_by_length.",
                           buckets.batch_tokens ? "batch_tokens" : "batch_sizes",
                           ": gives the size of each task's batch, but ", why,
                           "; remove the key: every batch then has global_batch_size examples");
  }
  return OkStatus();
}

}  // namespace tfjob::config
