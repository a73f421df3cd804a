// A custom resource as it came: metadata decoded, the rest untouched JSON. TFJobs cross the client
// in this form, so that one which an older CRD let through can still be reported on
// (operator/manifest decodes it).
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
