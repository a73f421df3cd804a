// Provides the keys of jobs, which render knows neither how to store nor how to derive.
#pragma once

#include <functional>
#include <string>

namespace tfjob::api {
struct TFJob;
}

namespace tfjob::render {

// How a job's key is shown to people.
inline constexpr char kShownKey[] = "(set)";

// Returns the key of the job under the operator's key with the given id: 64 lower-case hex digits
// for the environment variable TFJOB_KEY, or "" if there is no such id. Must be pure.
using KeyScheme = std::function<std::string(const api::TFJob& job, const std::string& key_id)>;

}  // namespace tfjob::render
