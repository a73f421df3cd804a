// Defines the validation rules that the API server itself evaluates, without a webhook. The rules
// are written in the Common Expression Language (CEL), and each rule is attached to a place in the
// schema. Together with the schema's types, bounds and enums, they reject whatever api::Validate
// would reject, before the job is stored.
//
// The server prefixes a rule's message with the path of the rule's place, except at the root. A
// rule at the root accepts an update of a stored object that already violates the rule (because of
// an older CRD), so that the object's status can still be written. At other places, the server
// itself tolerates a violation as long as the value does not change (ratcheting).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

struct Rule {
  std::string place;       // a path as in api::SchemaField, or inside the pod template
  std::string expression;  // true if the object is accepted
  std::string message;
  std::string message_expression = {};  // CEL for a message with the offending names
  std::string field = {};               // the offending member relative to the place: ".image"
  std::string reason = "FieldValueInvalid";
  // If true, the rule is also evaluated when the object is created; `oldSelf` is a CEL optional.
  bool optional_old_self = false;
};

// Places in the schema: a replica's pod template, and a container in it.
inline constexpr char kContainerPlace[] = "spec.tfReplicaSpecs.template.spec.containers[]";

const std::vector<Rule>& Rules();

// Returns the x-kubernetes-validations list for `place`; empty if no rule is attached to the place.
Json ValidationsAt(const std::string& place);

}  // namespace tfjob::crd
