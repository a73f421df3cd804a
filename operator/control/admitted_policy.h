// Compares a NetworkPolicy that the server has just written with what the job needs. Pure.
#pragma once

#include <string>

#include "operator/client/client.h"

namespace tfjob::api {
struct TFJob;
}

namespace tfjob::control {

// Returns where the rules of the policy that a create or a patch returned differ from those that
// the job needs, such as "spec.ingress", because a webhook changed them in that call; "" if they
// do not.
std::string DifferenceOfPolicy(const api::TFJob& job, const client::Object& returned);

// Returns the message for such a difference: names the policy and says what to change.
std::string ChangedByWebhookMessage(const std::string& policy, const std::string& difference);

}  // namespace tfjob::control
