#include "runtime/strategy/exchange_text.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/collectives/plan/plan.h"
#include "runtime/strategy/bucket_plan.h"
#include "runtime/strategy/gradient_rows.h"
#include "runtime/strategy/loss_scaling.h"
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
// dense_1/kernel", or "bucket 0: 64 bytes of float32, exchange batch_normalization/AllReduceMean in
// the program".
std::string BucketText(const ModelDefinition& definition, const BucketPlan& plan, size_t index) {
  const Bucket& bucket = plan.buckets[index];
  if (bucket.exchange >= 0) {
    return StrCat("bucket ", index, ": ", bucket.bytes, " bytes of ", Name(bucket.dtype),
                  ", exchange ", bucket.name, " in the program\n");
  }
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
  // `hosts` may be unknown. `on_gpus`: see DescribeExchange.
  GroupText(const config::StrategyConfig& config, const cluster::TfConfig& tf_config,
            const collectives::Hosts& hosts, bool on_gpus)
      : config_(config),
        hosts_(hosts),
        on_gpus_(on_gpus),
        tasks_(cluster::TrainingTasks(tf_config)),
        rank_(std::max(cluster::TrainingRank(tf_config, tf_config.task), 0)) {}

  std::string Print(const ModelDefinition& definition, const BucketPlan& plan) const {
    std::string text = Ranks() + Transport() + Order() + Compression();
    double predicted = 0;
    for (size_t i = 0; i < plan.buckets.size(); ++i) {
      text += BucketText(definition, plan, i) + Place(definition, plan, i);
      if (!HasPlans()) continue;
      const collectives::Plan steps = PlanOf(plan.buckets[i]);
      predicted += steps.predicted_s;
      text += StrCat("  ", Name(steps.algorithm), ", predicted ", Microseconds(steps.predicted_s),
                     ", fingerprint ", Hex(steps.fingerprint), "\n", Links(steps));
    }
    text += TablesText(plan);
    if (HasPlans()) text += StrCat("all buckets: predicted ", Microseconds(predicted), "\n");
    return text;
  }

 private:
  collectives::Plan PlanOf(const Bucket& bucket) const {
    const auto ranks = static_cast<int>(tasks_.size());
    const collectives::Call call = CallOf(bucket);
    const auto order =
        AddsAroundTheRing() ? collectives::SumOrder::kRing : collectives::SumOrder::kTree;
    return MakePlan(call, rank_, ranks, {}, ChooseAlgorithm(call, ranks, {}, hosts_, order),
                    hosts_);
  }
  bool AddsAroundTheRing() const {
    return config_.implementation == config::CollectiveImplementation::kRing;
  }
  bool UsesNccl() const {
    return config_.implementation == config::CollectiveImplementation::kNccl;
  }
  bool HasPlans() const {
    return tasks_.size() > 1 && !UsesNccl() && (hosts_.machines() != 1 || AddsAroundTheRing()) &&
           config_.transport != config::CollectiveTransport::kSharedMemory;
  }

  // Describes what this task exchanges within its machine, if it shares memory there, and on each
  // link.
  std::string Links(const collectives::Plan& plan) const {
    const bool two_levels = plan.algorithm == collectives::Algorithm::kTwoLevels;
    std::string text;
    if (two_levels) {
      const size_t others = hosts_.RanksOn(hosts_.MachineOf(rank_)).size() - 1;
      text = StrCat("  within the machine: through the memory of ", others, " other ",
                    others == 1 ? "rank" : "ranks", "; links carry only signals\n");
    }
    for (size_t peer = 0; peer < tasks_.size(); ++peer) {
      const auto rank = static_cast<int>(peer);
      const auto is_peer = [&](const collectives::Step& step) { return step.peer == rank; };
      if (rank == rank_ || (two_levels && std::ranges::none_of(plan.steps, is_peer))) continue;
      const bool near = two_levels && hosts_.MachineOf(rank) == hosts_.MachineOf(rank_);
      text += LinkText(plan, rank, NameOf(peer) + (near ? ", same machine" : ""));
    }
    return text;
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
    if (UsesNccl()) {
      return "transport: nccl, between the GPUs of the ranks. Small values on the host, such as "
             "the "
             "totals, use tcp\n";
    }
    if (config_.transport == config::CollectiveTransport::kSharedMemory) {
      return StrCat("transport: shared memory; ", kInPlace);
    }
    if (hosts_.machines() == 1) return StrCat("transport: shared memory; ", kInPlace);
    const collectives::Costs costs;
    const std::string plans = StrCat(
        "costs of tcp: ", Microseconds(costs.round), " per round, ", Microseconds(costs.frame),
        " per frame, ", PerByte(costs.byte), " per byte sent, ", PerByte(costs.reduced_byte),
        " per byte reduced; pieces of ", costs.piece_bytes, " bytes\n");
    if (hosts_.HasTwoLevels() && !AddsAroundTheRing()) {
      return StrCat("transport: shared memory and tcp; ", ToString(hosts_), "\n", plans,
                    "costs of shared memory: ", Microseconds(costs.signal), " per signal, ",
                    PerByte(costs.shared_byte), " per byte of another rank; chunks of ",
                    costs.chunk_bytes, " bytes\n");
    }
    if (hosts_.known() || config_.transport == config::CollectiveTransport::kTcp ||
        AddsAroundTheRing()) {
      return "transport: tcp\n" + plans;
    }
    return StrCat(
        "transport: decided when the group begins. If all tasks run on one machine: "
        "shared memory; ",
        kInPlace,
        "If some of them share a machine: shared memory and tcp (--machines shows the plans). "
        "Otherwise: tcp, as follows\n",
        plans);
  }

  // With a ring or NCCL, warns that the sums depend on more than the number of ranks.
  std::string Order() const {
    if (tasks_.size() < 2) return "";
    if (UsesNccl()) {
      return "order of additions: NCCL's; the order of the tree does not hold. All ranks get equal "
             "bits, which depend on the number of ranks, the buckets, the machines and the version "
             "of NCCL\n";
    }
    if (!AddsAroundTheRing()) return MayUseNccl() ? kMayUseNccl : "";
    return "order of additions: around the ring; the order of the tree does not hold. All ranks "
           "get equal bits, which depend on the number of ranks, the buckets and the position of "
           "a gradient in its bucket\n";
  }

  std::string Compression() const {
    if (config_.compression == config::Compression::kNone) return "";
    return "compression: bfloat16; each rank rounds its gradients, and the sums are computed in "
           "float32 and rounded once\n";
  }

  // With `auto`, GPUs decide when the group begins.
  bool MayUseNccl() const {
    return on_gpus_ && config_.transport == config::CollectiveTransport::kAuto &&
           config_.compression == config::Compression::kNone;
  }
  static constexpr char kMayUseNccl[] =
      "order of additions: that of the tree; but if each rank has a GPU of its own and NCCL, the "
      "ranks use nccl, and its order\n";

  // With NCCL, says where the bucket is.
  std::string Place(const ModelDefinition& definition, const BucketPlan& plan, size_t index) const {
    if (!UsesNccl() || tasks_.size() < 2) return "";
    const bool weighted =
        !ScalesLoss(definition) &&
        std::ranges::all_of(plan.buckets, [](const Bucket& bucket) { return bucket.exchange < 0; });
    return weighted && SuitsDevice(plan, plan.buckets[index])
               ? "  reduced in the memory of the GPUs\n"
               : "  reduced from the memory of the host\n";
  }

  const config::StrategyConfig& config_;
  const collectives::Hosts hosts_;
  const bool on_gpus_;
  const std::vector<cluster::Task> tasks_;
  const int rank_;
};

// Parses --machines.
StatusOr<collectives::Hosts> HostsOf(const std::string& machines, StrategyKind kind,
                                     const config::StrategyConfig& config,
                                     const cluster::TfConfig& tf_config) {
  if (machines.empty()) return collectives::Hosts();
  if (kind != StrategyKind::kMultiWorkerMirrored) {
    return InvalidArgument("expected the strategy multi_worker_mirrored, got ",
                           config::kStrategyNames[static_cast<size_t>(kind)],
                           ": only its tasks exchange gradients with each other");
  }
  if (config.transport != config::CollectiveTransport::kAuto) {
    return InvalidArgument(
        "expected strategy.transport: auto, got ",
        config.transport == config::CollectiveTransport::kTcp ? "tcp" : "shared_memory",
        ", which does not depend on the machines");
  }
  const auto tasks = static_cast<int>(cluster::TrainingTasks(tf_config).size());
  return collectives::ParseHosts(machines, tasks);
}

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
                                       const cluster::TfConfig& tf_config,
                                       const std::string& machines, bool on_gpus) {
  ASSIGN_OR_RETURN(const StrategyKind kind, Select(config.kind, tf_config));
  const auto hosts = HostsOf(machines, kind, config, tf_config);
  if (!hosts.ok()) return Annotate(hosts.status(), "--machines");
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
  ASSIGN_OR_RETURN(const BucketPlan plan,
                   PlanStep(unclipped, config.bytes_per_pack, config.compression));
  const std::string text =
      kind == StrategyKind::kMultiWorkerMirrored
          ? GroupText(config, tf_config, *hosts, on_gpus).Print(unclipped, plan)
          : DeviceText(config, unclipped, plan);
  return StrCat(start, text,
                "each step also exchanges a few numbers, such as the totals of loss and metrics\n");
}

}  // namespace tfjob::strategy
