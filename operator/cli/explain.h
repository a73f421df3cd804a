// tfjob explain FILE: what the operator makes of a manifest, stage by stage.
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
  std::string observed;  // a v1 List of the pods, services and pod groups that exist; "": none do
  std::optional<Time> now;  // otherwise the clock's
  // The operator's settings.
  std::string cluster_domain;
  policy::Options options;
  api::CleanPodPolicy default_clean_pod_policy = api::CleanPodPolicy::kNone;
};

// Prints the stage. Pure but for reading the files: nothing is created, no cluster is asked. A job
// without a UID gets that of the observed objects which name it as their controller, or else zeros.
int Explain(const ExplainOptions& options, view::Console& console);

}  // namespace tfjob::cli
