// Contains a custom resource as received: decoded metadata, and the whole object as unmodified
// JSON. The client delivers TFJobs in this form, and operator/manifest decodes them. If a job
// cannot be decoded, for example because an older CRD accepted it, the operator can still report on
// the job.
#pragma once

#include <memory>

#include "operator/objects/metadata.h"

namespace tfjob::objects {

struct CustomResource {
  ObjectMeta metadata;
  std::string api_version;
  std::string kind;
  std::shared_ptr<const Json> object;  // the whole object; never null
  // OK, or InvalidArgument if parts of the server's object cannot be read. `object` then lacks
  // these parts. The message has one line per part, beginning with the part's path. Set only for
  // TFJobs. Do not treat an object with a problem as complete, and do not write it back.
  Status problem;
};

// Parses an object. Returns InvalidArgument, with the path, if the apiVersion, the kind or the
// metadata cannot be read.
StatusOr<CustomResource> ParseCustomResource(Json object);

}  // namespace tfjob::objects
