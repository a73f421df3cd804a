// Provides the keys of jobs, so that this package does not depend on how they are stored or
// derived.
#pragma once

#include <functional>
#include <string>

namespace tfjob::api {
struct TFJob;
}

namespace tfjob::render {

// The text that replaces a job's key in output for people.
inline constexpr char kShownKey[] = "(set)";

// Returns the value of TFJOB_KEY for the job: 64 lower-case hex digits, derived from the operator's
// key with the given id. Returns "" if there is no such id. Must be pure.
using KeyScheme = std::function<std::string(const api::TFJob& job, const std::string& key_id)>;

}  // namespace tfjob::render
