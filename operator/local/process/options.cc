#include "operator/local/process/options.h"

#include <nlohmann/json.hpp>

#include "operator/local/process/pod_spec.h"

namespace tfjob::process {

LocalClaim FindClaim(const RunnerOptions& options, const std::string& name_space,
                     const std::string& claim) {
  const auto given = options.claim_folders.find(StrCat(name_space, "/", claim));
  if (given != options.claim_folders.end()) return {given->second, true};
  return {StrCat(options.claims_dir, "/", name_space, "/", claim), false};
}

std::string LogPath(const RunnerOptions& options, const std::string& name_space,
                    const std::string& pod, const std::string& container) {
  const bool usual = name_space.empty() || name_space == "default";
  return StrCat(options.state_dir, "/logs/", usual ? "" : name_space + ".", pod, "/", container,
                ".log");
}

StatusOr<std::vector<std::string>> CheckTemplate(const RunnerOptions& options,
                                                 const Json& pod_template,
                                                 const std::string& path) {
  ASSIGN_OR_RETURN(PodSpec spec, ParsePodSpec(pod_template, path));
  for (const Container& container : spec.containers)
    RETURN_IF_ERROR(CheckCommand(container, options.images));
  return std::move(spec.warnings);
}

}  // namespace tfjob::process
