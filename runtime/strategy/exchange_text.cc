#include "runtime/strategy/exchange_text.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/collectives/plan/plan.h"
#include "runtime/strategy/bucket_plan.h"
#include "runtime/strategy/gradient_rows.h"
#include "runtime/strategy/select.h"

namespace tfjob::strategy {
namespace {

using config::StrategyKind;

std::string Microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

std::string PerByte(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ns", seconds * 1e9);
  return text;
}

std::string Hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Returns a line such as "bucket 0: 52 bytes of float32, 2 contributions: dense_1/bias,
// dense_1/kernel".
std::string BucketText(const ModelDefinition& definition, const BucketPlan& plan, size_t index) {
  const Bucket& bucket = plan.buckets[index];
  std::string names;
  for (size_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
    const auto variable = static_cast<size_t>(plan.items[i].variable);
    names += StrCat(names.empty() ? "" : ", ", definition.variables[variable].name);
  }
  return StrCat("bucket ", index, ": ", bucket.bytes, " bytes of ", Name(bucket.dtype), ", ",
                bucket.count, bucket.count == 1 ? " contribution: " : " contributions: ", names,
                "\n");
}

// Returns lines about the tables, such as "rows of embedding/embeddings, [1000, 64] of float32: …".
std::string TablesText(const BucketPlan& plan) {
  std::string text;
  for (const TableItem& table : plan.tables) {
    const auto row = table.cols * static_cast<int64_t>(SizeOf(table.dtype));
    text += StrCat("rows of ", table.name, ", [", table.rows, ", ", table.cols, "] of ",
                   Name(table.dtype), ": each rank sends those that it has, at most ",
                   table.batch_rows, " of ", row + static_cast<int64_t>(sizeof(int64_t)),
                   " bytes with the index, to each other rank; if all ranks together have more "
                   "than ",
                   MostRowsToSend(table), ", the ranks reduce the whole gradient, ",
                   table.rows * (row + static_cast<int64_t>(SizeOf(table.dtype))), " bytes\n");
  }
  return text;
}

collectives::Call CallOf(const Bucket& bucket) {
  return {.operation = collectives::Operation::kAllReduce,
          .bytes = static_cast<int64_t>(bucket.bytes),
          .element_bytes = static_cast<int64_t>(SizeOf(bucket.dtype)),
          .dtype = bucket.dtype,
          .reduction = collectives::Reduction::kSum};
}

// Returns a line with the bytes and frames that this task sends to a rank and receives from it.
std::string LinkText(const collectives::Plan& plan, int peer, const std::string& name) {
  int64_t bytes[2] = {}, frames[2] = {};
  for (const collectives::Step& step : plan.steps) {
    if (step.peer != peer) continue;
    const int way = step.kind == collectives::StepKind::kSend ? 0 : 1;
    bytes[way] += step.range.bytes;
    ++frames[way];
  }
  return StrCat("  ", name, ": sends ", bytes[0], " bytes in ", frames[0], " frames, receives ",
                bytes[1], " bytes in ", frames[1], " frames\n");
}

class GroupText {
 public:
  GroupText(const config::StrategyConfig& config, const cluster::TfConfig& tf_config)
      : config_(config),
        tasks_(cluster::TrainingTasks(tf_config)),
        rank_(std::max(cluster::TrainingRank(tf_config, tf_config.task), 0)) {}

  std::string Print(const ModelDefinition& definition, const BucketPlan& plan) const {
    std::string text = Ranks() + Transport();
    double predicted = 0;
    for (size_t i = 0; i < plan.buckets.size(); ++i) {
      text += BucketText(definition, plan, i);
      if (!HasPlans()) continue;
      const collectives::Plan steps =
          MakePlan(CallOf(plan.buckets[i]), rank_, static_cast<int>(tasks_.size()), {});
      predicted += steps.predicted_s;
      text += StrCat("  ", Name(steps.algorithm), ", predicted ", Microseconds(steps.predicted_s),
                     ", fingerprint ", Hex(steps.fingerprint), "\n");
      for (size_t peer = 0; peer < tasks_.size(); ++peer) {
        if (static_cast<int>(peer) == rank_) continue;
        text += LinkText(steps, static_cast<int>(peer), NameOf(peer));
      }
    }
    text += TablesText(plan);
    if (HasPlans()) text += StrCat("all buckets: predicted ", Microseconds(predicted), "\n");
    return text;
  }

 private:
  bool HasPlans() const {
    return tasks_.size() > 1 && config_.transport != config::CollectiveTransport::kSharedMemory;
  }
  std::string NameOf(size_t rank) const {
    return StrCat("rank ", rank, " (", tasks_[rank].type, " ", tasks_[rank].index, ")");
  }

  std::string Ranks() const {
    std::string text = StrCat(tasks_.size(), " ranks: ");
    for (size_t rank = 0; rank < tasks_.size(); ++rank) {
      text += StrCat(rank == 0 ? "" : ", ", static_cast<int>(rank) == rank_ ? "-> " : "",
                     tasks_[rank].type, " ", tasks_[rank].index);
    }
    return text + "\n";
  }

  std::string Transport() const {
    constexpr char kInPlace[] =
        "sums are computed in place, each rank reduces a slice, and no bytes travel on links\n";
    if (tasks_.size() < 2) return "transport: none, there is one rank\n";
    if (config_.transport == config::CollectiveTransport::kSharedMemory) {
      return StrCat("transport: shared memory; ", kInPlace);
    }
    const collectives::Costs costs;
    const std::string plans = StrCat(
        "costs of tcp: ", Microseconds(costs.round), " per round, ", Microseconds(costs.frame),
        " per frame, ", PerByte(costs.byte), " per byte sent, ", PerByte(costs.reduced_byte),
        " per byte reduced; pieces of ", costs.piece_bytes, " bytes\n");
    if (config_.transport == config::CollectiveTransport::kTcp) return "transport: tcp\n" + plans;
    return StrCat(
        "transport: decided when the group begins. If all tasks run on one machine: "
        "shared memory; ",
        kInPlace, "Otherwise: tcp, as follows\n", plans);
  }

  const config::StrategyConfig& config_;
  const std::vector<cluster::Task> tasks_;
  const int rank_;
};

std::string DeviceText(const config::StrategyConfig& config, const ModelDefinition& definition,
                       const BucketPlan& plan) {
  std::string text =
      StrCat(config.devices, config.devices == 1 ? " rank" : " ranks",
             ": the devices of this task\ntransport: threads; sums are computed in place, each ",
             "rank reduces a slice, and no bytes travel on links\n");
  for (size_t i = 0; i < plan.buckets.size(); ++i) text += BucketText(definition, plan, i);
  return text + TablesText(plan);
}

}  // namespace

StatusOr<std::string> DescribeExchange(const ModelDefinition& definition,
                                       const config::StrategyConfig& config,
                                       const cluster::TfConfig& tf_config) {
  ASSIGN_OR_RETURN(const StrategyKind kind, Select(config.kind, tf_config));
  const std::string start =
      StrCat("strategy: ", config::kStrategyNames[static_cast<size_t>(kind)], "\n");
  switch (kind) {
    case StrategyKind::kMirrored:
    case StrategyKind::kMultiWorkerMirrored:
    case StrategyKind::kCentralStorage:
      break;
    case StrategyKind::kParameterServer:
      return start +
             "no gradients are exchanged between tasks: each task sends its own to the "
             "parameter servers (--print=placement)\n";
    case StrategyKind::kOneDevice:
      return start + "no gradients are exchanged: this task trains alone with one device\n";
    default:
      return start + "no gradients are exchanged\n";
  }
  ModelDefinition unclipped = definition;
  unclipped.build.clipping = {};
  ASSIGN_OR_RETURN(const BucketPlan plan, PlanStep(unclipped, config.bytes_per_pack));
  const std::string text = kind == StrategyKind::kMultiWorkerMirrored
                               ? GroupText(config, tf_config).Print(unclipped, plan)
                               : DeviceText(config, unclipped, plan);
  return StrCat(start, text,
                "each step also exchanges a few numbers, such as the totals of loss and metrics\n");
}

}  // namespace tfjob::strategy
