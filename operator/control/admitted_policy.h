// Compares the rules that the job needs with the NetworkPolicy that the server has just written.
// Pure.
#pragma once

#include <string>

#include "operator/client/client.h"

namespace tfjob::api {
struct TFJob;
}

namespace tfjob::control {

// Compares `returned`, the policy that a create or a patch returned, with the rules that the job
// needs. Returns the path of a field that differs, such as "spec.ingress"; "" if none does. A
// difference means that a webhook changed the policy during that call.
std::string DifferenceOfPolicy(const api::TFJob& job, const client::Object& returned);

// Returns the message about a difference that DifferenceOfPolicy found. The message names the
// policy and says what to change.
std::string ChangedByWebhookMessage(const std::string& policy, const std::string& difference);

}  // namespace tfjob::control
