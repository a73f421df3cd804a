// Holds a custom resource as received: its metadata is decoded, the rest is unmodified JSON. The
// client delivers TFJobs in this form, and operator/manifest decodes them. If that fails, for
// example for a job that an older CRD accepted, the operator can still report on the job.
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
  // TFJobs. An object with a problem must not be acted on as if it were complete, nor be written
  // back.
  Status problem;
};

// Returns InvalidArgument, with the path, if the apiVersion, the kind or the metadata cannot
// be read.
StatusOr<CustomResource> ParseCustomResource(Json object);

}  // namespace tfjob::objects
