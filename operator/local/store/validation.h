// What an API server refuses before it stores an object: names, namespaces, label keys and values,
// pods without containers. The messages follow the API server's: "Pod \"x\" is invalid:
// metadata.name: …".
#pragma once

#include "operator/client/client.h"

namespace tfjob::store {

// InvalidArgument with the path of the value.
Status ValidateNew(client::Kind kind, const Json& object, const objects::ObjectMeta& metadata);

// Labels only, as for updates.
Status ValidateLabels(client::Kind kind, const objects::ObjectMeta& metadata);

// RFC 1123 labels joined by dots, at most 253 characters.
bool IsDnsSubdomain(std::string_view text);
// RFC 1035 label: lower case, digits and '-', starts with a letter, at most 63 characters.
bool IsDnsLabel(std::string_view text);

}  // namespace tfjob::store
