// A container's environment and command line, with references resolved as by a kubelet.
// https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/local/process/pod_spec.h"

namespace tfjob::process {

using Variables = std::map<std::string, std::string>;

// Replaces $(NAME) by the variable's value. $$ becomes $, so that $$(NAME) yields $(NAME). Unknown
// names stay as written.
std::string Expand(std::string_view text, const Variables& variables);

// Returns the ConfigMap of that name in the pod's namespace, as JSON; NotFound if there is none.
using ConfigMapReader =
    std::function<StatusOr<std::shared_ptr<const Json>>(const std::string& name)>;

// Returns the content of a key of `data` or (decoded) `binaryData`; NotFound if the map lacks it.
StatusOr<std::string> ConfigMapValue(const Json& config_map, const std::string& key);

// Returns the variables of `base`, then envFrom, then env in order. Later ones win and may refer to
// earlier ones of env. NotFound for a missing ConfigMap or key that is not optional; Unimplemented
// for sources that this machine does not have (secrets, resources), naming the entry.
StatusOr<Variables> ResolveEnvironment(const PodSpec& pod, const Container& container,
                                       const std::string& pod_ip,
                                       const ConfigMapReader& config_maps, const Variables& base);

// An image that corresponds to a program of this machine.
struct LocalImage {
  std::string repository;  // "tfjob/trainer": matches any registry, tag and digest
  std::string program;     // absolute path
};

struct CommandLine {
  std::vector<std::string> programs;  // candidates to execute, best first
  std::vector<std::string> arguments;
};

// Checks that a container can run here: it specifies a command, or its image is a local one.
// Otherwise FailedPrecondition, naming the image.
Status CheckCommand(const Container& container, const std::vector<LocalImage>& images);

// Expands command and args. A container without a command runs the program of its image. The name
// of a local program ("tfjob-trainer") means that program; other names are looked up in the
// variable PATH.
StatusOr<CommandLine> ResolveCommand(const Container& container,
                                     const std::vector<LocalImage>& images,
                                     const Variables& variables);

}  // namespace tfjob::process
