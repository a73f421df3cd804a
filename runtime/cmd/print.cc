#include "runtime/cmd/print.h"

#include "runtime/cmd/config_file.h"
#include "runtime/graph/graph_def/graph_def.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/ps/placement.h"
#include "runtime/state/training_state.h"
#include "runtime/strategy/exchange_text.h"
#include "runtime/strategy/model/model_program.h"
#include "runtime/strategy/parameter_server_strategy.h"
#include "runtime/train/job/batch_source.h"
#include "runtime/train/job/data_text.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::cmd {
namespace {

// Returns whether the graph applies the updates itself. With parameter servers, the graph only
// computes the gradients.
bool AppliesUpdates(const cluster::TfConfig& tf_config) {
  return tf_config.cluster.size("ps") == 0;
}

StatusOr<std::string> PrintProgram(const strategy::ModelDefinition& definition, bool with_updates) {
  const exec::Device device = exec::CpuDevice();
  variables::VariableStore store(device.row_stride, device.runtime);
  RETURN_IF_ERROR(strategy::CreateVariables(definition, store));
  ASSIGN_OR_RETURN(auto program, strategy::ModelProgram::Compile(definition, model::Mode::kTrain,
                                                                 definition.build.batch_size,
                                                                 with_updates, store, device));
  return program->program().ToString();
}

}  // namespace

std::string PrintPlacement(const ps::Definition& definition, int servers) {
  const std::vector<ps::Shard> shards = ps::Place(definition, servers);
  const auto slots = static_cast<int64_t>(optimizer::Slots(definition.state.optimizer).size());
  std::vector<int64_t> held(static_cast<size_t>(servers)), count(static_cast<size_t>(servers));
  std::string text = "shard  server  bytes  of\n";
  for (size_t i = 0; i < shards.size(); ++i) {
    const ps::Shard& shard = shards[i];
    const state::Variable& variable =
        definition.state.variables[static_cast<size_t>(shard.variable)];
    const auto server = static_cast<size_t>(shard.server);
    const int64_t copies = variable.update == state::Update::kGradient ? 1 + slots : 1;
    held[server] += shard.size * copies;
    ++count[server];
    text += StrCat(i, "  ps ", shard.server, "  ", shard.size, "  ", variable.name, "  bytes ",
                   shard.offset, " to ", shard.offset + shard.size, "\n");
  }
  for (size_t server = 0; server < held.size(); ++server) {
    text += StrCat("ps ", server, " holds ", count[server], " shards, ", held[server],
                   " bytes with ", slots, " optimizer slots\n");
  }
  return text;
}

std::string PrintCluster(const cluster::TfConfig& config) {
  if (config.cluster.empty()) return "no cluster: this task trains alone\n";
  std::string text;
  for (const cluster::Job& job : config.cluster.jobs) {
    for (const auto& [index, address] : job.addresses) {
      cluster::TfConfig one = config;
      one.task = {job.name, index};
      text += StrCat(one.task == config.task ? "-> " : "   ", cluster::ToString(one.task), "  ",
                     address, "  ", cluster::Name(cluster::RoleOf(one)), "\n");
    }
  }
  return text;
}

StatusOr<std::string> PrintStage(const std::string& stage, const config::TrainingConfig& config,
                                 const cluster::TfConfig& tf_config, const std::string& machines) {
  if (!machines.empty() && stage != "collectives") {
    return InvalidArgument("--machines: expected --print=collectives, got --print=", stage);
  }
  if (stage == "config") return config::PrintTrainingConfig(config);
  if (stage == "data") return train::DescribeData(config, tf_config);
  const int tasks = cluster::TrainingTaskCount(tf_config);
  ASSIGN_OR_RETURN(const model::Model model, train::ReadModel(config.model));
  ASSIGN_OR_RETURN(auto dataset,
                   train::LoadDataset(WithoutCaches(config), train::Split::kTrain, model));
  ASSIGN_OR_RETURN(dataset, train::AugmentedSource(config, train::Split::kTrain, model, dataset));
  ASSIGN_OR_RETURN(auto definition,
                   train::DefineModel(config, train::Split::kTrain, *dataset, tasks, model));
  if (stage == "model") return model::Summary(definition.model, definition.build.features);
  if (stage == "placement") {
    const int servers = tf_config.cluster.size("ps");
    if (servers == 0) {
      return InvalidArgument(
          "--print=placement: TF_CONFIG has no ps tasks, so this task holds all variables");
    }
    return PrintPlacement(strategy::DefineParameters(config.strategy, definition.state, tasks),
                          servers);
  }
  if (stage == "collectives") {
    return strategy::DescribeExchange(definition, config.strategy, tf_config, machines,
                                      config.device == config::DeviceKind::kCuda);
  }
  // In a synchronous step, the servers, not the graph, clip the mean of the gradients.
  if (!AppliesUpdates(tf_config) && config.strategy.mode == config::PsMode::kSync) {
    definition.build.clipping = {};
  }
  if (stage == "program") return PrintProgram(definition, AppliesUpdates(tf_config));
  ASSIGN_OR_RETURN(model::BuiltGraph built,
                   strategy::BuildGraph(definition, model::Mode::kTrain,
                                        definition.build.batch_size, AppliesUpdates(tf_config)));
  return stage == "graph_def" ? graph::PrintGraphDef(built.graph) : built.graph.ToString();
}

}  // namespace tfjob::cmd
