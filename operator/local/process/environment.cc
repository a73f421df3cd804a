#include "operator/local/process/environment.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "runtime/base/env.h"

namespace tfjob::process {
namespace {

// Splits the path of a fieldRef: "metadata.labels['x']" becomes {"metadata.labels", "x"}.
std::pair<std::string_view, std::string_view> SplitSubscript(std::string_view path) {
  const size_t open = path.find("['");
  if (open == std::string_view::npos || !path.ends_with("']")) return {path, ""};
  return {path.substr(0, open), path.substr(open + 2, path.size() - open - 4)};
}

StatusOr<std::string> FieldValue(const PodSpec& pod, const EnvVar& variable,
                                 const std::string& pod_ip) {
  const auto [field, subscript] = SplitSubscript(variable.value);
  if (field == "metadata.name") return pod.metadata.name;
  if (field == "metadata.namespace") return pod.metadata.name_space;
  if (field == "metadata.uid") return pod.metadata.uid;
  if (field == "metadata.labels") return std::string(pod.metadata.label(subscript));
  if (field == "metadata.annotations") {
    const auto found = pod.metadata.annotations.find(std::string(subscript));
    return found == pod.metadata.annotations.end() ? std::string() : found->second;
  }
  if (field == "status.podIP" || field == "status.podIPs") return pod_ip;
  if (field == "status.hostIP" || field == "status.hostIPs") return pod_ip;
  if (field == "spec.nodeName") return HostName();
  if (field == "spec.serviceAccountName") return pod.service_account;
  return Unimplemented(variable.path, ": the field \"", variable.value,
                       "\" is not available on this machine");
}

StatusOr<std::string> ConfigMapKeyValue(const EnvVar& variable,
                                        const ConfigMapReader& config_maps) {
  const auto map = config_maps(variable.config_map);
  if (!map.ok()) return Annotate(map.status(), variable.path);
  const auto value = ConfigMapValue(**map, variable.key);
  if (!value.ok())
    return Annotate(value.status(), StrCat(variable.path, ": ConfigMap ", variable.config_map));
  return value;
}

StatusOr<std::string> ValueOf(const PodSpec& pod, const EnvVar& variable, const std::string& pod_ip,
                              const ConfigMapReader& config_maps, const Variables& so_far) {
  switch (variable.source) {
    case EnvVar::Source::kValue:
      return Expand(variable.value, so_far);
    case EnvVar::Source::kField:
      return FieldValue(pod, variable, pod_ip);
    case EnvVar::Source::kConfigMapKey:
      return ConfigMapKeyValue(variable, config_maps);
    case EnvVar::Source::kUnsupported:
      break;
  }
  return Unimplemented(variable.path, ".valueFrom.", variable.value,
                       ": no such source on this machine");
}

Status AddFromMap(const EnvFrom& source, const ConfigMapReader& config_maps, Variables& variables) {
  const auto map = config_maps(source.config_map);
  if (absl::IsNotFound(map.status()) && source.optional) return OkStatus();
  if (!map.ok()) return Annotate(map.status(), "envFrom");
  ASSIGN_OR_RETURN(const auto members, JsonField(**map)["data"].Members());
  for (const auto& [key, value] : members) {
    ASSIGN_OR_RETURN(variables[source.prefix + key], value.String());
  }
  return OkStatus();
}

// Removes the tag and digest: "registry:5000/team/name:tag@sha256:…" becomes
// "registry:5000/team/name".
std::string_view Repository(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':');
  const size_t slash = image.rfind('/');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    image = image.substr(0, colon);
  }
  return image;
}

const LocalImage* FindImage(std::string_view image, const std::vector<LocalImage>& images) {
  const std::string_view repository = Repository(image);
  for (const LocalImage& local : images) {
    if (repository == local.repository || repository.ends_with("/" + local.repository))
      return &local;
  }
  return nullptr;
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> FindPrograms(const std::string& name,
                                      const std::vector<LocalImage>& images,
                                      const Variables& variables) {
  if (name.find('/') != std::string::npos) return {name};
  for (const LocalImage& local : images) {
    if (BaseName(local.program) == name) return {local.program};
  }
  std::vector<std::string> programs;
  const auto path = variables.find("PATH");
  std::string_view rest =
      path == variables.end() ? "/usr/local/bin:/usr/bin:/bin" : std::string_view(path->second);
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    if (!folder.empty()) programs.push_back(StrCat(folder, "/", name));
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return programs;
}

}  // namespace

std::string Expand(std::string_view text, const Variables& variables) {
  std::string out;
  while (!text.empty()) {
    const size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const size_t close = text.starts_with('(') ? text.find(')') : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += '$';
      if (text.starts_with('$')) text.remove_prefix(1);
      continue;
    }
    const auto found = variables.find(std::string(text.substr(1, close - 1)));
    out += found == variables.end() ? StrCat("$", text.substr(0, close + 1)) : found->second;
    text.remove_prefix(close + 1);
  }
  return out;
}

StatusOr<std::string> ConfigMapValue(const Json& config_map, const std::string& key) {
  const JsonField root(config_map);
  if (const JsonField text = root["data"][key]; text.present()) return text.String();
  const JsonField binary = root["binaryData"][key];
  if (!binary.present()) return NotFound("there is no key \"", key, "\"");
  ASSIGN_OR_RETURN(const std::string encoded, binary.String());
  std::string decoded;
  if (!absl::Base64Unescape(encoded, &decoded)) return binary.Mismatch("base64");
  return decoded;
}

StatusOr<Variables> ResolveEnvironment(const PodSpec& pod, const Container& container,
                                       const std::string& pod_ip,
                                       const ConfigMapReader& config_maps, const Variables& base) {
  Variables variables = base;
  variables["HOSTNAME"] = pod.metadata.name;
  for (const EnvFrom& source : container.env_from)
    RETURN_IF_ERROR(AddFromMap(source, config_maps, variables));
  for (const EnvVar& variable : container.env) {
    auto value = ValueOf(pod, variable, pod_ip, config_maps, variables);
    if (!value.ok() && variable.optional) continue;
    ASSIGN_OR_RETURN(variables[variable.name], std::move(value));
  }
  return variables;
}

Status CheckCommand(const Container& container, const std::vector<LocalImage>& images) {
  if (!container.command.empty() || FindImage(container.image, images) != nullptr)
    return OkStatus();
  return FailedPrecondition(
      container.path, ": the image \"", container.image,
      "\" is not a program of this machine and images are not pulled: give the container a "
      "command, or map the image with --image ",
      Repository(container.image), "=PROGRAM");
}

StatusOr<CommandLine> ResolveCommand(const Container& container,
                                     const std::vector<LocalImage>& images,
                                     const Variables& variables) {
  RETURN_IF_ERROR(CheckCommand(container, images));
  CommandLine line;
  for (const std::string& word : container.command)
    line.arguments.push_back(Expand(word, variables));
  if (line.arguments.empty()) {
    line.programs = {FindImage(container.image, images)->program};
    line.arguments = line.programs;
  } else {
    line.programs = FindPrograms(line.arguments[0], images, variables);
  }
  for (const std::string& word : container.args) line.arguments.push_back(Expand(word, variables));
  return line;
}

}  // namespace tfjob::process
