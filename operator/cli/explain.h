// tfjob explain FILE: shows what the operator would do with a manifest, stage by stage.
#pragma once

#include <optional>
#include <string>

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
  std::string observed;     // a v1 List of the existing pods, services and pod groups; "" if none
  std::optional<Time> now;  // the current time if not set
  // The operator's settings.
  std::string cluster_domain;
  policy::DecisionOptions options;
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;
};

// Prints the stage and returns the exit code. It only reads the files: it creates nothing and
// contacts no cluster. If a job has no UID, it gets the UID by which observed pods or services name
// it as their controller, or else zeros.
int Explain(const ExplainOptions& options, view::Console& console);

}  // namespace tfjob::cli
