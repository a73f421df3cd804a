// Holds a TFJob between two reconciles as JSON text, which takes a fifth of the memory of the
// parsed tree.
#pragma once

#include <memory>
#include <string>

#include "operator/objects/custom_resource.h"

namespace tfjob::control {

// Immutable.
class PackedJob {
 public:
  explicit PackedJob(const objects::CustomResource& job);

  const objects::ObjectMeta& metadata() const { return metadata_; }
  // The type of the newest condition that is True; "Pending" if there is none.
  const std::string& state() const { return state_; }
  // Parses the text into a new tree.
  std::shared_ptr<const objects::CustomResource> Unpack() const;

 private:
  const objects::ObjectMeta metadata_;
  const std::string api_version_;
  const std::string kind_;
  const std::string state_;
  const std::string text_;
};

}  // namespace tfjob::control
