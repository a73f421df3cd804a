// Turns a verdict into the objects to create, as the JSON that is sent to the API server. Names,
// labels, owner references and the changes to templates are the same as in Kubeflow's Training
// Operator, with two differences: services publish the addresses of pods that are not ready, and
// ports keep their order and protocol.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/render/address.h"
#include "operator/render/desired_object.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::policy {
struct Verdict;
}

namespace tfjob::render {

// Holds the objects of a verdict. Each is built on request, because the TF_CONFIG of every pod
// lists all tasks. What the objects share is prepared once. A self-contained value that is cheap to
// copy. Const calls are thread-safe.
class Desired {
 public:
  Desired() = default;

  // The objects in this order: the workload, the pod group, services, pods. Services and pods are
  // in slot order.
  const std::vector<DesiredObject>& objects() const { return objects_; }
  // `object` must be one of objects().
  Json Build(const DesiredObject& object) const;
  // Builds all objects.
  std::vector<Json> BuildAll() const;

 private:
  friend StatusOr<Desired> Render(const api::TFJob&, const policy::Verdict&, const AddressScheme&);
  struct Shared;

  std::vector<DesiredObject> objects_;
  std::shared_ptr<const Shared> shared_;
};

// Renders the objects that the verdict creates. Returns InvalidArgument, with the path, if a
// template cannot become a pod (no container `tensorflow`, containers that are not a list, labels
// that are not strings). This is permanent until the spec changes, so the caller should use
// policy::Refuse. Only the templates of types with objects to create are checked.
StatusOr<Desired> Render(const api::TFJob& job, const policy::Verdict& verdict,
                         const AddressScheme& address);

}  // namespace tfjob::render
