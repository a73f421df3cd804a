#include "runtime/api/strategy.h"

#include <utility>

#include "runtime/api/access.h"
#include "runtime/base/env.h"
#include "runtime/wire/job_key.h"

namespace tfjob::api {
namespace {

// Takes the job's key from the environment once, because it is then erased there.
const StatusOr<std::optional<wire::JobKey>>& JobKeyOfProcess() {
  static const auto* const kKey = new StatusOr<std::optional<wire::JobKey>>(wire::TakeJobKey());
  return *kKey;
}

// Returns Unimplemented if the process has a role in which programs do not run yet.
tfjob::Status CheckRole(const cluster::TfConfig& tf_config) {
  const std::string task = cluster::ToString(tf_config.task);
  if (tf_config.cluster.size("ps") > 0) {
    return Unimplemented("TF_CONFIG: this process is ", task, " of a job with parameter servers, ",
                         "which programs of the C++ API do not support yet; train with ",
                         "tfjob-trainer, or remove the PS replicas");
  }
  if (cluster::RoleOf(tf_config) == cluster::Role::kEvaluator) {
    return Unimplemented("TF_CONFIG: this process is ", task, ", but programs of the C++ API have ",
                         "no evaluators yet; use FitOptions::validation, or tfjob-trainer");
  }
  if (tf_config.cluster.sparse()) {
    return Unimplemented(
        "TF_CONFIG: the number of tasks is unknown with enableDynamicWorker, which ",
        "programs of the C++ API do not support yet; remove it from the TFJob");
  }
  return OkStatus();
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
  data.status = ToPublic(CheckRole(data.tf_config));
  return data;
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
  StatusOr<StrategyData> read = ReadEnvironment();
  if (read.ok()) return Access::MakeStrategy(*std::move(read));
  StrategyData invalid;
  invalid.status = ToPublic(read.status());
  return Access::MakeStrategy(std::move(invalid));
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

bool Strategy::is_chief() const {
  return cluster::RoleOf(data_->tf_config) == cluster::Role::kChief;
}

}  // namespace tfjob::api
