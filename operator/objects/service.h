// Contains the part of a service that the operator observes: only its metadata, because decisions
// need no other part.
#pragma once

#include "operator/objects/metadata.h"
#include "runtime/base/json_view.h"

namespace tfjob::objects {

struct Service {
  ObjectMeta metadata;

  bool operator==(const Service&) const = default;
};

// Parse a v1 Service. Return InvalidArgument if its metadata cannot be read.
StatusOr<Service> ParseService(const Json& object);
StatusOr<Service> ParseService(const JsonView& object);

}  // namespace tfjob::objects
