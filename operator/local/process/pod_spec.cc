#include "operator/local/process/pod_spec.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "operator/local/process/unsupported.h"
#include "operator/objects/fields.h"

namespace tfjob::process {
namespace {

using objects::Read;

Status ReadFieldRef(const JsonField& source, EnvVar& variable) {
  variable.source = EnvVar::Source::kField;
  ASSIGN_OR_RETURN(variable.value, source["fieldPath"].String());
  return OkStatus();
}

Status ReadConfigMapKey(const JsonField& source, EnvVar& variable) {
  variable.source = EnvVar::Source::kConfigMapKey;
  ASSIGN_OR_RETURN(variable.config_map, source["name"].String());
  ASSIGN_OR_RETURN(variable.key, source["key"].String());
  return Read(source["optional"], variable.optional);
}

StatusOr<EnvVar> ReadEnvVar(const JsonField& field) {
  EnvVar variable;
  variable.path = field.path();
  ASSIGN_OR_RETURN(variable.name, field["name"].String());
  const JsonField from = field["valueFrom"];
  if (!from.present()) {
    RETURN_IF_ERROR(Read(field["value"], variable.value));
    return variable;
  }
  if (from["fieldRef"].present()) {
    RETURN_IF_ERROR(ReadFieldRef(from["fieldRef"], variable));
    return variable;
  }
  if (from["configMapKeyRef"].present()) {
    RETURN_IF_ERROR(ReadConfigMapKey(from["configMapKeyRef"], variable));
    return variable;
  }
  variable.source = EnvVar::Source::kUnsupported;
  ASSIGN_OR_RETURN(const auto members, from.Members());
  if (members.empty()) return from.Mismatch("a source, such as fieldRef");
  variable.value = members.front().first;
  RETURN_IF_ERROR(Read(members.front().second["optional"], variable.optional));
  return variable;
}

Status ReadEnv(const JsonField& field, Container& container) {
  ASSIGN_OR_RETURN(const auto from, field["envFrom"].Elements());
  for (const JsonField& element : from) {
    EnvFrom source;
    source.path = element.path();
    RETURN_IF_ERROR(Read(element["prefix"], source.prefix));
    const JsonField map = element["configMapRef"];
    if (!map.present()) {
      return InvalidArgument(element.path(), ": only configMapRef is supported on this machine");
    }
    ASSIGN_OR_RETURN(source.config_map, map["name"].String());
    RETURN_IF_ERROR(Read(map["optional"], source.optional));
    container.env_from.push_back(std::move(source));
  }
  ASSIGN_OR_RETURN(const auto variables, field["env"].Elements());
  for (const JsonField& element : variables) {
    ASSIGN_OR_RETURN(EnvVar variable, ReadEnvVar(element));
    container.env.push_back(std::move(variable));
  }
  return OkStatus();
}

Status ReadMounts(const JsonField& list, const PodSpec& pod, std::vector<VolumeMount>& mounts) {
  ASSIGN_OR_RETURN(const auto elements, list.Elements());
  for (const JsonField& element : elements) {
    VolumeMount mount;
    mount.path = element.path();
    ASSIGN_OR_RETURN(mount.volume, element["name"].String());
    ASSIGN_OR_RETURN(mount.mount_path, element["mountPath"].String());
    RETURN_IF_ERROR(Read(element["readOnly"], mount.read_only));
    RETURN_IF_ERROR(Read(element["subPath"], mount.sub_path));
    if (element["subPathExpr"].present()) {
      mount.expand_sub_path = true;
      RETURN_IF_ERROR(Read(element["subPathExpr"], mount.sub_path));
    }
    if (pod.volume(mount.volume) == nullptr) {
      return InvalidArgument(element["name"].path(), ": there is no volume \"", mount.volume,
                             "\" in spec.volumes");
    }
    mounts.push_back(std::move(mount));
  }
  return OkStatus();
}

StatusOr<Container> ReadContainer(const JsonField& field, const PodSpec& pod, bool init) {
  Container container;
  container.init = init;
  container.path = field.path();
  ASSIGN_OR_RETURN(container.name, field["name"].String());
  RETURN_IF_ERROR(Read(field["image"], container.image));
  RETURN_IF_ERROR(Read(field["command"], container.command));
  RETURN_IF_ERROR(Read(field["args"], container.args));
  RETURN_IF_ERROR(Read(field["workingDir"], container.working_dir));
  RETURN_IF_ERROR(ReadEnv(field, container));
  RETURN_IF_ERROR(ReadMounts(field["volumeMounts"], pod, container.mounts));
  if (init && field["restartPolicy"].present()) {
    return InvalidArgument(
        field["restartPolicy"].path(),
        ": init containers that keep running are not supported on this machine; make it an "
        "ordinary container");
  }
  return container;
}

Status ReadContainers(const JsonField& list, bool init, PodSpec& pod) {
  ASSIGN_OR_RETURN(const auto elements, list.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(Container container, ReadContainer(element, pod, init));
    for (const Container& other : pod.containers) {
      if (other.name == container.name) {
        return InvalidArgument(element["name"].path(), ": another container has the name \"",
                               other.name, "\"");
      }
    }
    pod.containers.push_back(std::move(container));
  }
  return OkStatus();
}

Status ReadConfigMapVolume(const JsonField& source, Volume& volume) {
  volume.kind = Volume::Kind::kConfigMap;
  ASSIGN_OR_RETURN(volume.source, source["name"].String());
  RETURN_IF_ERROR(Read(source["defaultMode"], volume.default_mode));
  RETURN_IF_ERROR(Read(source["optional"], volume.optional));
  ASSIGN_OR_RETURN(const auto items, source["items"].Elements());
  for (const JsonField& element : items) {
    Volume::Item item;
    ASSIGN_OR_RETURN(item.key, element["key"].String());
    ASSIGN_OR_RETURN(item.path, element["path"].String());
    RETURN_IF_ERROR(Read(element["mode"], item.mode));
    volume.items.push_back(std::move(item));
  }
  return OkStatus();
}

Status ReadVolumeSource(const JsonField& field, Volume& volume) {
  if (const JsonField host = field["hostPath"]; host.present()) {
    volume.kind = Volume::Kind::kHostPath;
    RETURN_IF_ERROR(Read(host["type"], volume.host_type));
    ASSIGN_OR_RETURN(volume.source, host["path"].String());
    return OkStatus();
  }
  if (field["configMap"].present()) return ReadConfigMapVolume(field["configMap"], volume);
  if (const JsonField claim = field["persistentVolumeClaim"]; claim.present()) {
    volume.kind = Volume::Kind::kClaim;
    ASSIGN_OR_RETURN(volume.source, claim["claimName"].String());
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto members, field.Members());
  for (const auto& [key, value] : members) {
    if (key == "name" || key == "emptyDir" || !value.present()) continue;
    volume.kind = Volume::Kind::kUnsupported;
    volume.source = key;
  }
  return OkStatus();
}

Status ReadVolumes(const JsonField& list, PodSpec& pod) {
  ASSIGN_OR_RETURN(const auto elements, list.Elements());
  for (const JsonField& element : elements) {
    Volume volume;
    volume.path = element.path();
    ASSIGN_OR_RETURN(volume.name, element["name"].String());
    RETURN_IF_ERROR(ReadVolumeSource(element, volume));
    if (pod.volume(volume.name) != nullptr) {
      return InvalidArgument(element["name"].path(), ": another volume has the name \"",
                             volume.name, "\"");
    }
    pod.volumes.push_back(std::move(volume));
  }
  return OkStatus();
}

Status ReadRestartPolicy(const JsonField& field, PodRestartPolicy& policy) {
  std::string text = "Always";
  RETURN_IF_ERROR(Read(field, text));
  constexpr std::array<std::pair<std::string_view, PodRestartPolicy>, 3> kPolicies = {
      {{"Always", PodRestartPolicy::kAlways},
       {"OnFailure", PodRestartPolicy::kOnFailure},
       {"Never", PodRestartPolicy::kNever}}};
  for (const auto& [name, value] : kPolicies) {
    if (name != text) continue;
    policy = value;
    return OkStatus();
  }
  return field.Mismatch("Always, OnFailure or Never");
}

}  // namespace

const Volume* PodSpec::volume(const std::string& name) const {
  const auto found =
      std::find_if(volumes.begin(), volumes.end(), [&](const Volume& v) { return v.name == name; });
  return found == volumes.end() ? nullptr : &*found;
}

StatusOr<PodSpec> ParsePodSpec(const Json& object, const std::string& root) {
  const JsonField field(object, root);
  const JsonField spec = field["spec"];
  PodSpec pod;
  ASSIGN_OR_RETURN(pod.metadata, objects::ParseObjectMeta(field["metadata"]));
  RETURN_IF_ERROR(Read(spec["serviceAccountName"], pod.service_account));
  RETURN_IF_ERROR(ReadRestartPolicy(spec["restartPolicy"], pod.restart_policy));
  RETURN_IF_ERROR(Read(spec["terminationGracePeriodSeconds"], pod.grace_period_seconds));
  RETURN_IF_ERROR(ReadVolumes(spec["volumes"], pod));
  RETURN_IF_ERROR(ReadContainers(spec["initContainers"], true, pod));
  RETURN_IF_ERROR(ReadContainers(spec["containers"], false, pod));
  if (pod.containers.empty() || pod.containers.back().init)
    return spec["containers"].Mismatch("at least one container");
  pod.warnings = UnsupportedFields(field);
  return pod;
}

std::vector<ConfigMapReference> RequiredConfigMaps(const PodSpec& pod) {
  std::vector<ConfigMapReference> references;
  for (const Volume& volume : pod.volumes) {
    if (volume.kind == Volume::Kind::kConfigMap && !volume.optional) {
      references.push_back({volume.source, volume.path});
    }
  }
  for (const Container& container : pod.containers) {
    for (const EnvFrom& source : container.env_from) {
      if (!source.optional) references.push_back({source.config_map, source.path});
    }
    for (const EnvVar& variable : container.env) {
      if (variable.source != EnvVar::Source::kConfigMapKey || variable.optional) continue;
      references.push_back({variable.config_map, variable.path});
    }
  }
  return references;
}

}  // namespace tfjob::process
