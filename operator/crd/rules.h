// Defines the validation rules that the API server itself evaluates, without a webhook. They are
// written in the Common Expression Language (CEL), and each is attached to a place in the schema.
// Together with the schema's types, bounds and enums, they reject what api::Validate would reject,
// before the job is stored.
//
// The server prefixes a rule's message with the path of the rule's place, except at the root. A
// rule at the root accepts an object that already violated it when it was stored (under an older
// CRD), so that its status can still be written. At other places, the server itself tolerates a
// violation while the value does not change (ratcheting).
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

// Returns the x-kubernetes-validations list for `place`; empty if it has no rules.
Json ValidationsAt(const std::string& place);

}  // namespace tfjob::crd
