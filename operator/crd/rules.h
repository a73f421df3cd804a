// Defines the validation rules that the API server evaluates itself, without a webhook. They are
// written in the Common Expression Language, and each belongs to a place of the schema. Together
// with the schema's types, bounds and words, they refuse what api::Validate would refuse, before
// the job is stored.
//
// The server prefixes a rule's message with the path of its place, except at the root. Rules at the
// root accept any object that was already stored (under an older CRD), so that its status can still
// be written. At other places, the server itself tolerates a violation as long as the value does
// not change (ratcheting).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

struct Rule {
  std::string place;       // a path as in api::SchemaField, or inside the pod template
  std::string expression;  // true if the object is accepted
  std::string message;
  std::string message_expression = {};  // the message with the offending names
  std::string field = {};               // the offending member relative to the place: ".image"
  std::string reason = "FieldValueInvalid";
  // The rule is also evaluated when the object is created; `oldSelf` is an optional.
  bool optional_old_self = false;
};

// Places inside a pod template that have rules.
inline constexpr char kTemplatePlace[] = "spec.tfReplicaSpecs.template";
inline constexpr char kContainerPlace[] = "spec.tfReplicaSpecs.template.spec.containers[]";

const std::vector<Rule>& Rules();

// Returns the x-kubernetes-validations list for `place`; empty if it has no rules.
Json ValidationsAt(const std::string& place);

}  // namespace tfjob::crd
