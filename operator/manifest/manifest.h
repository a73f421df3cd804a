// Reads a manifest: YAML or JSON text with any number of documents. A document contains a TFJob,
// another object, or a `kind: List` of them.
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
  std::shared_ptr<const Json> object;  // as given; never null
  std::optional<api::TFJob> job;       // for kind TFJob: decoded, without defaults
};

// Returns all objects in the order in which the text contains them, with Lists expanded. `what`
// names the text in messages (a path, "standard input"). If there are errors, returns
// InvalidArgument with a message that lists all of them, one per line: `where: path: message`.
// Keeps namespaces as given, even if empty.
StatusOr<std::vector<ManifestObject>> ParseManifest(std::string_view text, std::string_view what);

// Contains the result of the checks. `tfjob validate` prints it, and `tfjob run` starts from it.
struct ManifestReport {
  std::vector<ManifestObject> objects;  // those that could be decoded
  std::vector<std::string> errors;      // `where: path: message`, from parsing and api::Validate
  std::vector<std::string> warnings;    // for unknown fields, and from api::Warnings

  bool ok() const { return errors.empty(); }
};
ManifestReport CheckManifest(std::string_view text, std::string_view what);

// Prints a line for each error and warning ("error: …", "warning: …"), and then "job.yaml: valid, 1
// TFJob" or "job.yaml: 2 errors".
std::string Print(const ManifestReport& report, std::string_view what);

}  // namespace tfjob::manifest
