// Verdict → the objects to create, as JSON exactly as they are sent to the API server. Rules:
// names, labels, owner references and template transformation of the reference (facts 2.1–2.3),
// with services that publish the addresses of pods that are not ready, and ports that keep their
// order and protocol.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/policy/verdict.h"
#include "operator/render/address.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::render {

enum class Kind { kWorkload, kPodGroup, kService, kPod };
std::string_view Name(Kind kind);  // "Service"

// Settings of the operator that shape objects; none yet beside the address scheme.
struct Options {};

// An object to create.
struct DesiredObject {
  Kind kind = Kind::kPod;
  policy::Slot slot;  // of a service or a pod
  std::string name;
  int32_t attempt = 0;  // of a pod
  bool master = false;  // a pod with the label job-role: master

  bool operator==(const DesiredObject&) const = default;
};

// The objects of one verdict. Each is built when asked for, since TF_CONFIG names all tasks in each
// of their pods; what they share is prepared once. A value: cheap to copy, holds all it needs;
// const calls are thread-safe.
class Desired {
 public:
  Desired() = default;

  // The workload, the pod group, then services, then pods, each in slot order.
  const std::vector<DesiredObject>& objects() const { return objects_; }
  // `object` is one of objects().
  Json Build(const DesiredObject& object) const;
  // All of them.
  std::vector<Json> BuildAll() const;

 private:
  friend StatusOr<Desired> Render(const api::TFJob&, const policy::Verdict&, const AddressScheme&,
                                  const Options&);
  struct Shared;

  std::vector<DesiredObject> objects_;
  std::shared_ptr<const Shared> shared_;
};

// InvalidArgument, with the path, for a template that cannot become a pod (no container
// `tensorflow`, containers that are no list, labels that are no strings): permanent until the spec
// changes, so policy::Refuse is the answer. Only types of which something is to be created are
// looked at.
StatusOr<Desired> Render(const api::TFJob& job, const policy::Verdict& verdict,
                         const AddressScheme& address, const Options& options);

}  // namespace tfjob::render
