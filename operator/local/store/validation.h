// Checks what an API server refuses to store: invalid names, namespaces, label keys and values,
// pods without containers. The messages follow the API server's: "Pod \"x\" is invalid:
// metadata.name: …".
#pragma once

#include "operator/client/client.h"

namespace tfjob::store {

// InvalidArgument with the path of the value.
Status ValidateNew(client::Kind kind, const Json& object, const objects::ObjectMeta& metadata);

// Checks labels only, as for updates.
Status ValidateLabels(client::Kind kind, const objects::ObjectMeta& metadata);

// RFC 1123 labels joined by dots, at most 253 characters.
bool IsDnsSubdomain(std::string_view text);
// RFC 1035 label: lower case letters, digits and '-', starts with a letter, at most 63 characters.
bool IsDnsLabel(std::string_view text);

}  // namespace tfjob::store
