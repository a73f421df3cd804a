// Reads a manifest file: YAML or JSON text with any number of documents, including `kind: List`,
// that contain TFJobs and other objects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/tfjob.h"
#include "runtime/base/json.h"

namespace tfjob::manifest {

struct ManifestObject {
  std::string where;  // `job.yaml, document 2 (TFJob "mnist")`, for messages
  std::string kind;
  std::shared_ptr<const Json> object;  // as received; never null
  std::optional<api::TFJob> job;       // for kind TFJob: decoded, without defaults
};

// Returns all objects in the order of the text, with Lists expanded. `what` names the text in
// messages (a path, "standard input"). InvalidArgument lists every error of every document, one
// per line: `where: path: message`. Namespaces are kept as given, even if empty.
StatusOr<std::vector<ManifestObject>> ParseManifest(std::string_view text, std::string_view what);

// The result that `tfjob validate` prints and `tfjob run` starts from.
struct ManifestReport {
  std::vector<ManifestObject> objects;  // those that could be decoded
  std::vector<std::string> errors;      // `where: path: message`; parse errors and api::Validate
  std::vector<std::string> warnings;    // unknown fields and api::Warnings

  bool ok() const { return errors.empty(); }
};
ManifestReport CheckManifest(std::string_view text, std::string_view what);

// Prints one line per error and warning ("error: …", "warning: …") and finally "job.yaml: valid,
// 1 TFJob" or "job.yaml: 2 errors".
std::string Print(const ManifestReport& report, std::string_view what);

}  // namespace tfjob::manifest
