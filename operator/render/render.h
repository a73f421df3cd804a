// Turns a verdict into the objects to create, as JSON exactly as sent to the API server. Names,
// labels, owner references and the transformation of templates follow the reference (facts
// 2.1–2.3); services publish the addresses of pods that are not ready, and ports keep their
// order and protocol.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/kind.h"
#include "operator/policy/verdict.h"
#include "operator/render/address.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::render {

// An object to create.
struct DesiredObject {
  objects::Kind kind = objects::Kind::kPod;  // of a pod group: its scheduler's
  policy::Slot slot;                         // of a service or a pod
  std::string name;
  int32_t attempt = 0;  // of a pod
  bool master = false;  // a pod with the label job-role: master

  bool operator==(const DesiredObject&) const = default;
};

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
// until the spec changes, so the caller should use policy::Refuse. Looks only at types of which
// something is to be created.
StatusOr<Desired> Render(const api::TFJob& job, const policy::Verdict& verdict,
                         const AddressScheme& address);

}  // namespace tfjob::render
