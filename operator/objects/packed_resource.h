// Stores a custom resource as text, which needs a fifth of the memory of the JSON tree. A packer
// (operator/control/cache/pack_job.h) decides which parts of the resource to keep.
#pragma once

#include <memory>
#include <string>

#include "operator/objects/metadata.h"
#include "runtime/base/status.h"

namespace tfjob::objects {

struct CustomResource;

// Contains the decoded metadata and the text. Immutable once shared.
struct PackedResource {
  ObjectMeta metadata;
  std::string api_version;
  std::string kind;
  std::string state;  // a word that sums up the status, such as "Running"
  std::string text;   // the object as JSON, without apiVersion, kind and metadata
  Status problem;     // see CustomResource

  // Parses the text into a new tree.
  std::shared_ptr<const CustomResource> Unpack() const;
};

}  // namespace tfjob::objects
