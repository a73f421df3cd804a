// Resolves a container's environment and command line, including references to variables, as a
// kubelet does.
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

// Replaces $(NAME) with the variable's value. $$ becomes $, so $$(NAME) yields $(NAME). References
// to unknown names remain as written.
std::string Expand(std::string_view text, const Variables& variables);

// Returns the ConfigMap called `name` in the pod's namespace, as JSON, or NotFound if there
// is none.
using ConfigMapReader =
    std::function<StatusOr<std::shared_ptr<const Json>>(const std::string& name)>;

// Returns the value of `key` in `data` or, decoded, in `binaryData`; NotFound if the ConfigMap does
// not contain the key.
StatusOr<std::string> ConfigMapValue(const Json& config_map, const std::string& key);

// Returns the container's variables: `base` and HOSTNAME, then the variables of envFrom, then the
// variables of env. Later variables replace earlier ones. A value in env may refer to any variable
// before it. Returns NotFound if a ConfigMap or key is missing and not optional. For sources that
// do not exist on this machine (secrets, resources), returns Unimplemented with the name of the
// entry.
StatusOr<Variables> ResolveEnvironment(const PodSpec& pod, const Container& container,
                                       const std::string& pod_ip,
                                       const ConfigMapReader& config_maps, const Variables& base);

// Maps an image to a program on this machine.
struct LocalImage {
  std::string repository;  // such as "tfjob/trainer", which matches any registry, tag and digest
  std::string program;     // absolute path
};

struct CommandLine {
  std::vector<std::string> programs;  // candidates to execute, best first
  std::vector<std::string> arguments;
};

// Checks that a container can run on this machine: it must specify a command, or its image must be
// a local one. Otherwise, returns FailedPrecondition with the name of the image.
Status CheckCommand(const Container& container, const std::vector<LocalImage>& images);

// Expands command and args. A container without a command runs the program of its image. A command
// without a slash refers to the local program of that name ("tfjob-trainer") if there is one;
// otherwise, it is looked up in the folders that the variable PATH lists. A command with a slash is
// used unchanged.
StatusOr<CommandLine> ResolveCommand(const Container& container,
                                     const std::vector<LocalImage>& images,
                                     const Variables& variables);

}  // namespace tfjob::process
