// Holds a custom resource as received: metadata decoded, the rest as unmodified JSON. TFJobs
// cross the client in this form, so that a job that an older CRD accepted can still be reported
// on (operator/manifest decodes it).
#pragma once

#include <memory>

#include "operator/objects/metadata.h"

namespace tfjob::objects {

struct CustomResource {
  ObjectMeta metadata;
  std::string api_version;
  std::string kind;
  std::shared_ptr<const Json> object;  // the whole object; never null
};

StatusOr<CustomResource> ParseCustomResource(Json object);

}  // namespace tfjob::objects
