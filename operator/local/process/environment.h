// A container's environment and command line, with references resolved as a kubelet resolves them.
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

// Replaces $(NAME) by the variable's value; $$ becomes $, so that $$(NAME) gives $(NAME); an
// unknown name stays as written.
std::string Expand(std::string_view text, const Variables& variables);

// The ConfigMap of that name in the pod's namespace, as JSON; NotFound when there is none.
using ConfigMapReader =
    std::function<StatusOr<std::shared_ptr<const Json>>(const std::string& name)>;

// The content of a key of `data` or (decoded) `binaryData`; NotFound when the map lacks it.
StatusOr<std::string> ConfigMapValue(const Json& config_map, const std::string& key);

// The variables of `base`, then envFrom, then env in its order; later ones win and may refer to
// env's earlier ones. NotFound for a ConfigMap or a key that is missing and not optional;
// Unimplemented for sources that this machine has not (secrets, resources), naming the entry.
StatusOr<Variables> ResolveEnvironment(const PodSpec& pod, const Container& container,
                                       const std::string& pod_ip,
                                       const ConfigMapReader& config_maps, const Variables& base);

// An image that is a program of this machine.
struct LocalImage {
  std::string repository;  // "tfjob/trainer": matches any registry, tag and digest
  std::string program;     // absolute path
};

struct CommandLine {
  std::vector<std::string> programs;  // what to execute, by falling preference
  std::vector<std::string> arguments;
};

// Whether a container can run here: it names a command, or its image is a local one.
// FailedPrecondition otherwise, naming the image.
Status CheckCommand(const Container& container, const std::vector<LocalImage>& images);

// command and args, expanded. A container without command gets the program of its image; the name
// of a local program ("tfjob-trainer") stands for that program; other names are looked up in the
// variable PATH.
StatusOr<CommandLine> ResolveCommand(const Container& container,
                                     const std::vector<LocalImage>& images,
                                     const Variables& variables);

}  // namespace tfjob::process
