// Rejects objects that an API server would reject: those with invalid names (including the names of
// a pod's containers and volumes), namespaces, label keys or label values, and pods without
// containers. The messages follow the API server's: "Pod \"x\" is invalid: metadata.name: …".
#pragma once

#include "operator/client/client.h"

namespace tfjob::store {

// Checks a new object. Returns InvalidArgument with the path of the wrong value.
Status ValidateNew(objects::Kind kind, const Json& object, const objects::ObjectMeta& metadata);

// Checks the labels, which are the only part of an update that is checked.
Status ValidateLabels(objects::Kind kind, const objects::ObjectMeta& metadata);

// Returns whether `text` is a subdomain in the sense of RFC 1123: parts of lower-case letters,
// digits and '-', joined by dots, with at most 253 characters in all.
bool IsDnsSubdomain(std::string_view text);
// Returns whether `text` is a label in the sense of RFC 1035: at most 63 lower-case letters, digits
// and '-', starting with a letter and not ending with '-'.
bool IsDnsLabel(std::string_view text);

}  // namespace tfjob::store
