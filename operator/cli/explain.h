// tfjob explain FILE: shows what the operator would do with a manifest, stage by stage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/decision_options.h"
#include "operator/view/console.h"
#include "runtime/base/clock.h"

namespace tfjob::cli {

struct ExplainOptions {
  enum class Stage { kDefaults, kVerdict, kObjects, kPlan };
  enum class Format { kYaml, kJson };
  std::string file;  // "-" for standard input
  Stage stage = Stage::kVerdict;
  Format format = Format::kYaml;
  std::string observed;     // file with the existing pods, services, pod groups, …; "" if none
  std::optional<Time> now;  // the current time if not set
  // The operator's settings.
  std::string cluster_domain;
  policy::DecisionOptions options;
  std::vector<std::string> key_ids;  // ids of the operator's keys, oldest first
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;
};

// Prints the stage and returns the exit code. Reads only the files; creates no objects and contacts
// no cluster. If a job has no UID, uses the UID in the controller reference of the job's observed
// pods or services or, if there is none, a UID of zeros.
int Explain(const ExplainOptions& options, view::Console& console);

}  // namespace tfjob::cli
