// Tests the keys of groups whose number of tasks may change, and of NCCL.
#include <gtest/gtest.h>

#include "runtime/config/training_config.h"

namespace tfjob::config {
namespace {

// Parses and validates a training file with these keys. Returns the error, or "accepted".
std::string Parsed(const std::string& keys) {
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(
      StrCat("model: {layers: [{Dense: {units: 1}}]}\nloss: mean_squared_error\n"
             "optimizer: adagrad\ndata: {train: {format: linear}}\nmax_steps: 10\n",
             keys, "\n"),
      "t.yaml");
  if (!config.ok()) return std::string(Message(config.status()));
  const Status valid = Validate(*config);
  return valid.ok() ? "accepted" : std::string(Message(valid));
}

TEST(StrategyKeys, AnElasticGroupNeedsBothLimitsAndAGlobalBatch) {
  const auto with = [](const char* strategy, const char* key = "global_batch_size",
                       const char* value = "8") {
    return Parsed(
        StrCat("strategy: {name: multi_worker_mirrored, ", strategy, "}\n", key, ": ", value));
  };
  EXPECT_EQ(with("min_replicas: 1, max_replicas: 4, on_failure: shrink"), "accepted");
  EXPECT_EQ(with("min_replicas: 3, max_replicas: 3", "batch_size"), "accepted");
  EXPECT_EQ(with("min_replicas: 3, max_replicas: 2, on_failure: shrink"),
            "strategy.min_replicas: expected at most strategy.max_replicas, which is 2, got 3");
  EXPECT_EQ(with("min_replicas: 2"),
            "strategy.max_replicas: expected a number, because strategy.min_replicas is set; set "
            "both or neither");
  EXPECT_EQ(with("max_replicas: 2"),
            "strategy.min_replicas: expected a number, because strategy.max_replicas is set; set "
            "both or neither");
  EXPECT_EQ(Parsed("strategy: {name: multi_worker_mirrored, min_replicas: 0}"),
            "t.yaml: strategy.min_replicas: expected a value from 1 to 1024, got 0");
  EXPECT_EQ(with("min_replicas: 1, max_replicas: 2, on_failure: restart"),
            "strategy.on_failure: expected shrink, because the number of tasks may change between "
            "strategy.min_replicas (1) and strategy.max_replicas (2), got restart; set "
            "on_failure: shrink, or remove these two keys");
  EXPECT_EQ(with("min_replicas: 1, max_replicas: 2, on_failure: shrink", "batch_size"),
            "global_batch_size: expected a number, because the number of tasks may change between "
            "strategy.min_replicas (1) and strategy.max_replicas (2); replace batch_size by "
            "global_batch_size");
  EXPECT_EQ(with("min_replicas: 1, max_replicas: 9, on_failure: shrink"),
            "global_batch_size: expected at least one example for each of the "
            "strategy.max_replicas (9) tasks, got 8");
  EXPECT_EQ(Parsed("strategy: {name: mirrored, min_replicas: 1, max_replicas: 2}"),
            "strategy.min_replicas: belongs to strategy.name multi_worker_mirrored, but "
            "strategy.name is mirrored; remove one of the two");
}

TEST(StrategyKeys, NcclChoosesItsConnectionsAndRoundsOften) {
  const auto with = [](const char* keys) {
    return Parsed(StrCat("strategy: {name: multi_worker_mirrored, implementation: nccl, ", keys,
                         "}\nbatch_size: 8"));
  };
  EXPECT_EQ(with("bytes_per_pack: 1Mi"), "accepted");
  EXPECT_EQ(with("transport: tcp"),
            "strategy.transport: expected auto, because strategy.implementation is nccl, which "
            "chooses its own connections, got tcp; remove one of the two");
  EXPECT_EQ(with("compression: bfloat16"),
            "strategy.compression: expected none, because strategy.implementation is nccl, in "
            "which every task may round the sum again, got bfloat16; remove one of the two");
}

}  // namespace
}  // namespace tfjob::config
