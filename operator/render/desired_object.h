// Describes an object to create. Its JSON is built on request (render.h).
#pragma once

#include <cstdint>
#include <string>

#include "operator/objects/kind.h"
#include "operator/policy/facts/slot.h"

namespace tfjob::render {

struct DesiredObject {
  objects::Kind kind = objects::Kind::kPod;  // for a pod group, its scheduler's kind
  policy::Slot slot;                         // for a service or a pod
  std::string name;
  int32_t attempt = 0;  // for a pod
  bool master = false;  // for a pod with the label job-role: master

  bool operator==(const DesiredObject&) const = default;
};

}  // namespace tfjob::render
