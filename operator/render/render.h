// Turns a verdict into the objects to create, as JSON exactly as sent to the API server. Names,
// labels, owner references and the transformation of templates are those of Kubeflow's Training
// Operator. Two things differ: services publish the addresses of pods that are not ready, and ports
// keep their order and protocol.
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

// Holds the objects of one verdict. Each is built on request, since TF_CONFIG names all tasks in
// each of their pods; what they share is prepared once. A value: cheap to copy, self-contained;
// const calls are thread-safe.
class Desired {
 public:
  Desired() = default;

  // The workload, the pod group, then services, then pods, each in slot order.
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

// Returns InvalidArgument, with the path, for a template that cannot become a pod (no container
// `tensorflow`, containers that are not a list, labels that are not strings). This is permanent
// until the spec changes, so the caller should use policy::Refuse. Only types of which something is
// to be created are considered.
StatusOr<Desired> Render(const api::TFJob& job, const policy::Verdict& verdict,
                         const AddressScheme& address);

}  // namespace tfjob::render
