// Turns a verdict into the objects to create, as the JSON that is sent to the API server. Names,
// labels, owner references and the changes to templates are the same as in Kubeflow's Training
// Operator. There are two differences: services publish the addresses of pods that are not ready,
// and ports keep their order and protocol.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/render/address.h"
#include "operator/render/desired_object.h"
#include "operator/render/key_scheme.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::policy {
struct Verdict;
}

namespace tfjob::render {

// Describes the objects that a verdict creates. The TF_CONFIG of every pod lists all tasks, so the
// objects together are large. Therefore, each object is built only on request, from parts that are
// prepared once and shared. Desired is a self-contained value that is cheap to copy. Const calls
// are thread-safe.
class Desired {
 public:
  Desired() = default;

  // Returns the objects in this order: the workload, the pod group, the NetworkPolicy, services,
  // pods. Services and pods are in slot order.
  const std::vector<DesiredObject>& objects() const { return objects_; }
  // Returns the JSON of `object`, which must be one of objects().
  Json Build(const DesiredObject& object) const;
  // Builds all objects for people to read, with "(set)" as the value of every TFJOB_KEY.
  std::vector<Json> ShowAll() const;

 private:
  friend StatusOr<Desired> Render(const api::TFJob&, const policy::Verdict&, const AddressScheme&,
                                  const KeyScheme&);
  struct Shared;

  std::vector<DesiredObject> objects_;
  std::shared_ptr<const Shared> shared_;
};

// Renders the objects that the verdict creates. Returns InvalidArgument, with the path of the
// invalid field, if TF_CONFIG would be too long (tf_config_size.h) or a template cannot become a
// pod: it has no container `tensorflow`, its containers are not a list, or its labels are not
// strings. The error recurs until the spec changes, so the caller should use policy::Refuse. Checks
// only the templates of types with services or pods to create.
//
// Pods get the job's key, derived from the operator's key that the verdict names, and an annotation
// with the id of the operator's key. They get neither of these if the verdict names no key, or if
// `key` is empty or returns "" for the id.
StatusOr<Desired> Render(const api::TFJob& job, const policy::Verdict& verdict,
                         const AddressScheme& address, const KeyScheme& key = {});

}  // namespace tfjob::render
