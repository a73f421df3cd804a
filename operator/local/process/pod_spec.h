// Parses a v1 Pod or a PodTemplateSpec into the parts that the process runner uses.
// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/objects/metadata.h"

namespace tfjob::process {

enum class PodRestartPolicy { kAlways, kOnFailure, kNever };

// Represents an entry of a container's env. `path` is its JSON path, for errors.
struct EnvVar {
  enum class Source { kValue, kField, kConfigMapKey, kUnsupported };
  std::string name;
  Source source = Source::kValue;
  std::string value;  // kValue: the text; kField: the field path; kUnsupported: the kind of source
  std::string config_map;  // kConfigMapKey
  std::string key;
  bool optional = false;
  std::string path;
};

// Represents an entry of a container's envFrom that names a ConfigMap.
struct EnvFrom {
  std::string prefix;
  std::string config_map;
  bool optional = false;
  std::string path;
};

struct VolumeMount {
  std::string volume;
  std::string mount_path;
  std::string sub_path;          // "" for the whole volume
  bool expand_sub_path = false;  // given as subPathExpr
  bool read_only = false;
  std::string path;
};

struct Container {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::string working_dir;  // "" for the runner's
  std::vector<EnvFrom> env_from;
  std::vector<EnvVar> env;
  std::vector<VolumeMount> mounts;
  bool init = false;
  std::string path;
};

struct Volume {
  enum class Kind { kEmptyDir, kHostPath, kConfigMap, kClaim, kUnsupported };
  // Identifies a key of a ConfigMap and the file that contains its value.
  struct Item {
    std::string key;
    std::string path;
    std::optional<int32_t> mode;
  };
  std::string name;
  Kind kind = Kind::kEmptyDir;
  std::string
      source;  // kHostPath: the path; kConfigMap, kClaim: the name; kUnsupported: the volume's kind
  std::string host_type;  // "", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", …
  std::vector<Item> items;
  int32_t default_mode = 0644;
  bool optional = false;
  std::string path;
};

struct PodSpec {
  objects::ObjectMeta metadata;
  std::string service_account;
  PodRestartPolicy restart_policy = PodRestartPolicy::kAlways;
  int64_t grace_period_seconds = 30;
  std::vector<Container> containers;  // init containers first, in order
  std::vector<Volume> volumes;
  // Warnings: one sentence, which contains the path, for each field that a kubelet honours but this
  // runner does not.
  std::vector<std::string> warnings;

  const Volume* volume(const std::string& name) const;
};

// Parses a pod. Returns InvalidArgument, with the path, for wrong types, mounts of volumes that do
// not exist, and duplicate names. `root` is the path of the object itself ("" for a pod,
// "spec.tfReplicaSpecs.Worker.template" for a template).
StatusOr<PodSpec> ParsePodSpec(const Json& pod, const std::string& root = "");

// A ConfigMap without which a pod cannot start, and the path of the reference to it.
struct ConfigMapReference {
  std::string name;
  std::string path;
};
std::vector<ConfigMapReference> RequiredConfigMaps(const PodSpec& pod);

}  // namespace tfjob::process
