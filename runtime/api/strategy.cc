#include "runtime/api/strategy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/base/env.h"
#include "runtime/wire/job_key.h"

namespace tfjob::api {
namespace {

// Returns the job's key from the environment. Reads the key only once, because reading removes it
// from the environment.
const StatusOr<std::optional<wire::JobKey>>& JobKeyOfProcess() {
  static const auto* const kKey = new StatusOr<std::optional<wire::JobKey>>(wire::TakeJobKey());
  return *kKey;
}

StatusOr<StrategyData> ReadEnvironment() {
  StrategyData data;
  data.lone_address = GetEnv("TFJOB_ADDRESS").value_or("");
  data.device = GetEnv("TFJOB_DEVICE").value_or("");
  RETURN_IF_ERROR(JobKeyOfProcess().status());
  data.credentials.key = *JobKeyOfProcess();
  ASSIGN_OR_RETURN(data.tf_config, cluster::TfConfigFromEnvironment());
  ASSIGN_OR_RETURN(data.job, cluster::JobIdentityFromEnvironment());
  ASSIGN_OR_RETURN(data.grace_period, cluster::GracePeriodFromEnvironment());
  return data;
}

// Reads the environment, and sets these keys of the `strategy` section.
StatusOr<StrategyData> WithKeys(const Json& keys) {
  ASSIGN_OR_RETURN(StrategyData data, ReadEnvironment());
  Json document = Json::object();
  document["strategy"] = keys;
  config::TrainingConfig config;
  RETURN_IF_ERROR(config::SetOpenKeys(config, document));
  data.config = config.strategy;
  return data;
}

Strategy OrInvalid(StatusOr<StrategyData> data) {
  if (data.ok()) return Access::MakeStrategy(*std::move(data));
  StrategyData invalid;
  invalid.status = ToPublic(data.status());
  return Access::MakeStrategy(std::move(invalid));
}

StrategyData OnDevices(config::StrategyKind kind, int devices) {
  StrategyData data;
  data.config.kind = kind;
  data.config.devices = devices;
  if (devices < 1 || devices > config::kMostDevices) {
    data.status = ToPublic(
        InvalidArgument("a strategy needs 1 to ", config::kMostDevices, " devices, got ", devices));
  }
  return data;
}

}  // namespace

Strategy Access::MakeStrategy(StrategyData data) {
  return Strategy(std::make_shared<const StrategyData>(std::move(data)));
}

Strategy Strategy::FromEnvironment() {
  return OrInvalid(ReadEnvironment());
}

Strategy Strategy::MultiWorkerMirrored(const MultiWorkerMirroredOptions& options) {
  Json keys = {{"name", "multi_worker_mirrored"},
               {"bytes_per_pack", options.bytes_per_pack},
               {"timeout_seconds", options.timeout_seconds},
               {"implementation", options.implementation},
               {"transport", options.transport},
               {"on_failure", options.on_failure},
               {"compression", options.compression}};
  return OrInvalid(WithKeys(keys));
}

Strategy Strategy::ParameterServer(const ParameterServerOptions& options) {
  Json keys = {{"name", "parameter_server"},
               {"mode", options.mode},
               {"replicas_to_aggregate", options.replicas_to_aggregate},
               {"placement", options.placement},
               {"shard_bytes", options.shard_bytes},
               {"table_bytes", options.table_bytes},
               {"step_lease_factor", options.step_lease_factor},
               {"step_lease_secs", options.step_lease_secs},
               {"start_timeout_secs", options.start_timeout_secs}};
  if (options.max_staleness) keys["max_staleness"] = *options.max_staleness;
  return OrInvalid(WithKeys(keys));
}

Strategy Strategy::OneDevice() {
  return Access::MakeStrategy(OnDevices(config::StrategyKind::kOneDevice, 1));
}

Strategy Strategy::Mirrored(int devices) {
  return Access::MakeStrategy(OnDevices(config::StrategyKind::kMirrored, devices));
}

Strategy Strategy::CentralStorage(int devices) {
  return Access::MakeStrategy(OnDevices(config::StrategyKind::kCentralStorage, devices));
}

const Status& Strategy::status() const& {
  return data_->status;
}

std::string Strategy::name() const {
  return config::kStrategyNames[static_cast<size_t>(data_->config.kind)];
}

std::string Strategy::task_type() const {
  return data_->tf_config.task.type;
}

int Strategy::task_index() const {
  return data_->tf_config.task.index;
}

bool Strategy::is_chief() const {
  return cluster::RoleOf(data_->tf_config) == cluster::Role::kChief;
}

}  // namespace tfjob::api
