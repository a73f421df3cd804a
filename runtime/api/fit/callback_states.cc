#include "runtime/api/fit/callback_states.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "runtime/api/access.h"
#include "runtime/base/file.h"
#include "runtime/base/file_system.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"

namespace tfjob::api {
namespace {

constexpr Logger kStatesLog("api");
// More than there are checkpoints, so that the oldest checkpoint has its states.
constexpr size_t kKeptStates = 4;

std::string PathOfStates(const std::string& folder, int64_t step) {
  return StrCat(folder, "/", kCallbackStates, step, ".json");
}

// Returns the steps of all files.
StatusOr<std::set<int64_t>> StepsWithStates(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  std::set<int64_t> steps;
  for (const std::string& name : names) {
    int64_t step = 0;
    if (!name.starts_with(kCallbackStates) || !name.ends_with(".json")) continue;
    const size_t begin = std::string_view(kCallbackStates).size();
    if (absl::SimpleAtoi(name.substr(begin, name.size() - begin - 5), &step)) steps.insert(step);
  }
  return steps;
}

tfjob::Status DeleteOthers(const std::string& folder, int64_t step) {
  ASSIGN_OR_RETURN(std::set<int64_t> steps, StepsWithStates(folder));
  for (size_t kept = 0; !steps.empty(); steps.erase(std::prev(steps.end()))) {
    const int64_t newest = *steps.rbegin();
    if (newest <= step && ++kept <= kKeptStates) continue;
    RETURN_IF_ERROR(RealFileSystem().Remove(PathOfStates(folder, newest)));
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> ReadStates(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const Json document, ParseJson(text, path));
  const JsonField root(document);
  ASSIGN_OR_RETURN(const auto fields, root["states"].Elements());
  std::vector<std::string> states;
  for (const JsonField& field : fields) {
    ASSIGN_OR_RETURN(const std::string coded, field.String());
    if (!absl::Base64Unescape(coded, &states.emplace_back())) return field.Mismatch("base64");
  }
  return states;
}

}  // namespace

tfjob::Status WriteCallbackStates(const std::string& folder, int64_t step,
                                  const std::vector<Callback>& callbacks) {
  Json states = Json::array();
  bool any = false;
  for (const Callback& callback : callbacks) {
    const std::string state = callback.hooks().SaveState();
    any = any || !state.empty();
    states.push_back(absl::Base64Escape(state));
  }
  if (!any) return OkStatus();
  RETURN_IF_ERROR(MakeDirectories(folder));
  RETURN_IF_ERROR(WriteFileAtomically(PathOfStates(folder, step),
                                      PrintJson({{"states", std::move(states)}}) + "\n"));
  return DeleteOthers(folder, step);
}

tfjob::Status RestoreCallbackStates(const std::string& folder, int64_t step,
                                    const std::vector<Callback>& callbacks) {
  const StatusOr<std::set<int64_t>> steps = StepsWithStates(folder);
  if (absl::IsNotFound(steps.status())) return OkStatus();
  RETURN_IF_ERROR(steps.status());
  const auto after = steps->upper_bound(step);
  if (after == steps->begin()) return OkStatus();
  const std::string path = PathOfStates(folder, *std::prev(after));
  ASSIGN_OR_RETURN(const std::vector<std::string> states, ReadStates(path));
  if (states.size() != callbacks.size()) {
    kStatesLog.Warning(
        "the states of the callbacks are not restored: the file has another number of states",
        {{"file", path}, {"states", states.size()}, {"callbacks", callbacks.size()}});
    return OkStatus();
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (!states[i].empty())
      RETURN_IF_ERROR(FromPublic(callbacks[i].hooks().RestoreState(states[i])));
  }
  return OkStatus();
}

}  // namespace tfjob::api
