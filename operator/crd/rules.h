// Defines what the API server refuses by itself: rules in the Common Expression Language, each at
// a place of the schema. Together with types, bounds and words they enforce what api::Validate
// checks, before a job is stored. No webhook is needed.
//
// The server prefixes a message with the path of the place, except at the root. Rules at the
// root accept an object that was stored before (under an older CRD), so that its status can be
// written. Elsewhere the server itself excuses a violation as long as the old value is
// unchanged (ratcheting).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

struct Rule {
  std::string place;       // as in api::SchemaField, or a place inside the pod template
  std::string expression;  // true if the object is accepted
  std::string message;
  std::string message_expression = {};  // the message with the offending names
  std::string field = {};               // ".image": the offending member, relative to the place
  std::string reason = "FieldValueInvalid";
  // Also evaluated at creation, with `oldSelf` as an optional.
  bool optional_old_self = false;
};

// The places of the rules inside a pod template.
inline constexpr char kTemplatePlace[] = "spec.tfReplicaSpecs.template";
inline constexpr char kContainerPlace[] = "spec.tfReplicaSpecs.template.spec.containers[]";

const std::vector<Rule>& Rules();

// Returns x-kubernetes-validations of a place: a list, empty if there are no rules.
Json ValidationsAt(const std::string& place);

}  // namespace tfjob::crd
