// Defines the options of tfjob-operator. They come, in this order of precedence, from flags, the
// environment, and a configuration file whose keys are the names of the flags.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/api/validate.h"
#include "operator/policy/facts/network_policy.h"
#include "operator/serve/bind_address.h"
#include "operator/view/console.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

namespace tfjob::service {

struct OperatorOptions {
  std::string kubeconfig;                // "" for $KUBECONFIG, service account or ~/.kube/config
  std::vector<std::string> name_spaces;  // empty for all namespaces
  std::optional<serve::BindAddress> metrics_address = serve::BindAddress{"", 8080};
  std::optional<serve::BindAddress> health_address = serve::BindAddress{"", 8081};

  bool leader_elect = false;
  // This is the Training Operator's ID, so that the Training Operator and this operator are never
  // active at the same time if both use leader election.
  std::string leader_election_id = "1ca428e5.training-operator.kubeflow.org";
  std::string leader_election_namespace;  // "" for the pod's own namespace
  Duration lease_duration = 15s;
  Duration renew_deadline = 10s;
  Duration retry_period = 2s;

  int controller_threads = 4;
  double kube_api_qps = 300;  // 0 for no limit
  int kube_api_burst = 500;
  std::string gang_scheduler_name;  // "" for none
  bool enforce_gang_scheduler = false;
  policy::NetworkPolicies job_network_policies = policy::NetworkPolicies::kNone;
  std::string cluster_domain;  // if empty, addresses end in ".svc"
  std::string job_keys_dir;    // if "", jobs get no keys
  int32_t max_replicas_per_job = api::kDefaultMaxReplicasPerJob;
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;

  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  std::vector<std::string> warnings;  // to be logged at the start
};

// Requests that the program exit with `code`: help or the version was requested, or a flag or the
// configuration file is invalid. The help, the version or the error has already been printed.
struct OperatorQuit {
  int code = view::kSucceeded;
};

std::variant<OperatorOptions, OperatorQuit> ParseOperatorFlags(int argc, const char* const* argv,
                                                               view::Console& console);

}  // namespace tfjob::service
