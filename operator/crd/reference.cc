#include <nlohmann/json.hpp>

#include "operator/api/schema.h"
#include "operator/crd/crd.h"
#include "operator/crd/rules.h"

namespace tfjob::crd {
namespace {

using api::Field;
using api::FieldType;

constexpr char kHead[] = R"(# The TFJob

<!-- Made from operator/api/schema.cc and operator/crd/rules.cc: bazel run //operator/crd:write -- $PWD -->

`kubeflow.org/v1`, kind `TFJob`, short name `tfj`, namespaced. `kubectl explain tfjob.spec` shows the same descriptions.
Compared with the Training Operator's TFJob, this project adds `spec.runPolicy.restartScope`, the status fields
`attempt`, `ready`, `restarts`, `replicaStatuses.*.restarts`, `.completedIndexes` and `.replacing`, and the
[annotations](#annotations-and-labels).

```yaml
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: mnist
spec:
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 3
  tfReplicaSpecs:
    Chief:
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - name: tensorflow
              image: registry.invalid/tfjob/trainer:latest
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template:
        spec:
          containers:
            - name: tensorflow
              image: registry.invalid/tfjob/trainer:latest
```
)";

constexpr char kTail[] = R"(
## Scale

`kubectl scale tfjob NAME --replicas=N` and autoscalers change `spec.tfReplicaSpecs.Worker.replicas`. The key must be
spelled `Worker` and have `replicas` in the manifest. Workers that are added get the next indexes; if the number is
reduced, the highest indexes are removed first. Running replicas keep the `TF_CONFIG` that they started with.

## Columns

| column | meaning |
|---|---|
| State | the type of the last condition |
| Ready | the numbers of active and of all replicas, over all types |
| Restarts | restarts after failures, over all types |
| Age | time since the job was created |
| Started, Ended, Message | with `-o wide`: time since the start, time since the end, message of the last condition |

## Annotations and labels

| on the TFJob | meaning |
|---|---|
| annotation `tfjob.dev/gang-scheduler` | `volcano`, `scheduler-plugins`, `native` (Kubernetes' own) or `none`: this job's gang scheduler, overriding the operator's flag |
| annotation `tfjob.dev/network-policy` | `"true"` or `"false"`: whether a NetworkPolicy lets only this job's own pods reach its port, overriding the operator's flag |
| annotation `tfjob.dev/force-delete-lost-pods` | `"true"`: force-deletes pods that cannot terminate because their node is lost |
| label `kueue.x-k8s.io/queue-name` | the Kueue queue that suspends and resumes the job |

| on its pods and services | value |
|---|---|
| label `training.kubeflow.org/operator-name` | `tfjob-controller` |
| label `training.kubeflow.org/job-name` | the job's name |
| label `training.kubeflow.org/replica-type` | `chief`, `evaluator`, `master`, `ps`, `worker` |
| label `training.kubeflow.org/replica-index` | from `0` |
| label `training.kubeflow.org/job-role` | pods: `master` on every chief and master, or on worker 0 if there is neither |
| label `tfjob.dev/attempt` | pods: `status.attempt` |
| annotation `tfjob.dev/key-id` | pods: the id of the operator's key from which [the job's key](operator.md#job-keys) was derived; missing if the pod has no key |
)";

std::string TypeName(const Field& field) {
  switch (field.type) {
    case FieldType::kString:
      return "string";
    case FieldType::kInt32:
    case FieldType::kInt64:
      return "integer";
    case FieldType::kBool:
      return "boolean";
    case FieldType::kTime:
      return "time";
    case FieldType::kQuantities:
      return "map of quantities";
    case FieldType::kStrings:
      return "list of strings";
    case FieldType::kObject:
      return "object";
    case FieldType::kObjects:
      return "list of objects";
    case FieldType::kObjectMap:
      return "map of objects";
    case FieldType::kPodTemplate:
      return "v1 PodTemplateSpec";
    case FieldType::kMetadata:
      return "v1 ObjectMeta";
  }
  return "";
}

std::string Values(const Field& field) {
  std::string text;
  for (const std::string& word : field.words) {
    text += StrCat(text.empty() ? ": " : ", ", word.empty() ? "`\"\"`" : StrCat("`", word, "`"));
  }
  if (field.minimum && field.maximum) {
    text = StrCat(", ", *field.minimum, " to ", *field.maximum);
  } else if (field.minimum) {
    text = StrCat(", ", *field.minimum, " or more");
  }
  return text;
}

std::string DefaultOf(const Field& field) {
  if (field.required) return "required";
  if (!field.stored_default.empty()) return StrCat("`", field.stored_default, "` (stored)");
  return field.when_absent;
}

void AppendTable(const Field& field, const std::string& place, std::string& text) {
  const std::string star = field.type == FieldType::kObjectMap ? ".*" : "";
  const std::string below = field.type == FieldType::kObjects ? "[]" : star;
  text += StrCat("\n## ", place, below, "\n\n", field.description, "\n\n");
  text += "| field | type | default | meaning |\n|---|---|---|---|\n";
  for (const Field& member : field.fields) {
    text += StrCat("| `", member.name, "` | ", TypeName(member), Values(member), " | ",
                   DefaultOf(member), " | ", member.description, " |\n");
  }
  for (const Field& member : field.fields) {
    if (!member.fields.empty()) AppendTable(member, StrCat(place, below, ".", member.name), text);
  }
}

// Returns the path that the API server prints in the rule's errors.
std::string PathOf(const Rule& rule) {
  if (rule.place.empty()) return rule.field.empty() ? "metadata.name" : rule.field.substr(1);
  if (rule.place == kContainerPlace) {
    return "spec.tfReplicaSpecs[TYPE].template.spec.containers[N]" + rule.field;
  }
  std::string path = rule.place;
  if (const size_t map = path.find("[]"); map != std::string::npos) path.replace(map, 2, "[TYPE]");
  return path + rule.field;
}

void AppendRules(std::string& text) {
  text +=
      "\n## What is refused\n\nIn addition to the types, words and bounds in the tables above, the "
      "API server enforces the rules below. They are part of the CRD, so there is no webhook. "
      "Objects stored under older rules stay readable, and their status can be written.\n\n| field "
      "| message |\n|---|---|\n";
  for (const Rule& rule : Rules()) {
    text += StrCat("| `", PathOf(rule), "` | ", rule.message, " |\n");
  }
  text +=
      "\n`tfjob validate FILE` reports the same errors without a cluster. It also reports "
      "misspelled fields, and values that are accepted but probably wrong.\n";
}

}  // namespace

std::string ApiReference() {
  std::string text = kHead;
  for (const char* part : {"spec", "status"}) AppendTable(api::SchemaField(part), part, text);
  AppendRules(text);
  return text + kTail;
}

}  // namespace tfjob::crd
