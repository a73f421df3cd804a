// What the API server refuses by itself: rules in the Common Expression Language, each at a place of the schema. Together
// with types, bounds and words they say what api::Validate says, before a job is stored; no webhook is needed.
//
// The server puts the path of the place before a message, except at the root. Rules at the root pass for an object that
// was stored before (by an older CRD), so that its status can be written; everything else is excused by the server itself
// while the old value stays (ratcheting).
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tfjob::crd {

struct Rule {
  std::string place;       // as in api::SchemaField; or a place inside the pod template
  std::string expression;  // true: accepted
  std::string message;
  std::string message_expression = {};  // the same with the culprits' names
  std::string field = {};               // ".image": the member that is meant, below the place
  std::string reason = "FieldValueInvalid";
  // Runs at creation, too, with `oldSelf` as an optional.
  bool optional_old_self = false;
};

// The places of the rules inside a pod template.
inline constexpr char kTemplatePlace[] = "spec.tfReplicaSpecs.template";
inline constexpr char kContainerPlace[] = "spec.tfReplicaSpecs.template.spec.containers[]";

const std::vector<Rule>& Rules();

// x-kubernetes-validations of a place: a list, empty when there are no rules.
Json ValidationsAt(const std::string& place);

}  // namespace tfjob::crd
