// Checks, with arbitrary bytes, how `tfjob run` reads a pod. The first byte of an input selects how
// the remaining bytes are read: as a pod (p), whose member "configMaps" contains the ConfigMaps
// that the pod may refer to, or as a text with references (x).
//   - Reading never crashes, and every error has a message.
//   - A text without "$" has no references; a reference that is appended to it is replaced.
// Nothing is run, and no file is created.
#include <nlohmann/json.hpp>

#include "operator/local/process/environment.h"
#include "operator/local/process/pod_spec.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tfjob::fuzz {
namespace {

void CheckError(const Status& status) {
  ENFORCE(status.ok() || !Message(status).empty(), "an error must say something");
}

void CheckContainer(const process::PodSpec& pod, const process::Container& container,
                    const process::ConfigMapReader& config_maps) {
  const std::vector<process::LocalImage> images = {{"tfjob/trainer", "/bin/tfjob-trainer"}};
  const Status runnable = process::CheckCommand(container, images);
  CheckError(runnable);
  const auto variables =
      process::ResolveEnvironment(pod, container, "127.0.0.1", config_maps, {{"PATH", "/bin"}});
  CheckError(variables.status());
  if (!variables.ok()) return;
  const auto command = process::ResolveCommand(container, images, *variables);
  CheckError(command.status());
  if (!command.ok()) return;
  ENFORCE(!command->programs.empty(), "a command must name a program");
  ENFORCE(!command->arguments.empty(), "a program must get its name");
}

void CheckPod(const Json& json) {
  const StatusOr<process::PodSpec> pod = process::ParsePodSpec(json);
  CheckError(pod.status());
  if (!pod.ok()) return;
  ENFORCE(!pod->containers.empty(), "a pod must have a container");
  const process::ConfigMapReader config_maps =
      [&](const std::string& name) -> StatusOr<std::shared_ptr<const Json>> {
    const JsonField found = JsonField(json)["configMaps"][name];
    if (!found.IsObject()) return NotFound("no ConfigMap");
    return std::make_shared<const Json>(*found.value());
  };
  for (const process::Container& container : pod->containers) {
    CheckContainer(*pod, container, config_maps);
    for (const process::VolumeMount& mount : container.mounts)
      ENFORCE(pod->volume(mount.volume) != nullptr, "a mount must name a volume");
  }
  for (const auto& reference : process::RequiredConfigMaps(*pod))
    ENFORCE(!reference.path.empty(), "a reference must have a path");
}

void CheckReferences(std::string_view text) {
  const process::Variables variables = {{"A", "value"}, {"B", ""}, {"C", "$(A)"}};
  const std::string expanded = process::Expand(text, variables);
  if (text.find('$') == std::string_view::npos) ENFORCE(expanded == text, "nothing to replace");
  if (text.ends_with('$')) return;
  ENFORCE(process::Expand(StrCat(text, "$(A)"), variables).ends_with("value") ||
              text.find('$') != std::string_view::npos,
          "a reference must be replaced");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'x') tfjob::fuzz::CheckReferences(rest);
  if (data[0] != 'p') return 0;
  const tfjob::StatusOr<tfjob::Json> json = tfjob::ParseJson(rest, "fuzz");
  if (json.ok()) tfjob::fuzz::CheckPod(*json);
  return 0;
}
