// tfjob explain FILE: shows what the operator would do with a manifest, stage by stage.
#pragma once

#include <optional>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/options.h"
#include "operator/view/console.h"
#include "runtime/base/clock.h"

namespace tfjob::cli {

struct ExplainOptions {
  enum class Stage { kDefaults, kVerdict, kObjects, kPlan };
  enum class Format { kYaml, kJson };
  std::string file;  // "-": standard input
  Stage stage = Stage::kVerdict;
  Format format = Format::kYaml;
  std::string observed;     // a v1 List of the pods, services and pod groups that exist; "": none
  std::optional<Time> now;  // default: the clock's
  // The operator's settings.
  std::string cluster_domain;
  policy::Options options;
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;
};

// Prints the stage and returns the exit code. Has no side effects besides reading the files:
// creates nothing and contacts no cluster. A job without a UID gets the UID under which the
// observed objects name it as their controller, or else zeros.
int Explain(const ExplainOptions& options, view::Console& console);

}  // namespace tfjob::cli
