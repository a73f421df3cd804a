#include "operator/cli/verbs/scale.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/api/replicas.h"
#include "operator/api/validate.h"
#include "operator/cli/verbs/change.h"

namespace tfjob::cli {
namespace {

using Wanted = std::map<api::ReplicaType, int32_t>;

// Returns the type's key as the object spells it: "Worker" or, in older manifests, "worker".
StatusOr<std::string> KeyIn(const StoredJob& job, api::ReplicaType type) {
  ASSIGN_OR_RETURN(const auto specs, JsonField(*job.object)["spec"]["tfReplicaSpecs"].Members());
  std::string present;
  for (const auto& [key, spec] : specs) {
    if (api::ParseReplicaType(key) == type) return key;
    present += (present.empty() ? "" : ", ") + key;
  }
  return FailedPrecondition(job.job.key(), ": it has no replicas of type ", api::Name(type),
                            ", only ", present);
}

// Rejects what admission would reject, with the same messages.
Status CheckScaled(const StoredJob& stored, const Wanted& wanted) {
  api::TFJob job = stored.job;
  for (const auto& [type, count] : wanted) job.spec.replicas[type].replicas = count;
  std::string problems;
  for (const api::FieldIssue& issue : api::Validate(job)) {
    problems += StrCat(problems.empty() ? "" : "\n", job.key(), ": ", api::ToString(issue));
  }
  return problems.empty() ? OkStatus() : InvalidArgument(problems);
}

StatusOr<Json> PatchFor(const StoredJob& job, const Wanted& wanted) {
  RETURN_IF_ERROR(CheckNotEnded(job.job, "scale"));
  Json specs = Json::object();
  for (const auto& [type, count] : wanted) {
    ASSIGN_OR_RETURN(const std::string key, KeyIn(job, type));
    const JsonField now = JsonField(*job.object)["spec"]["tfReplicaSpecs"][key]["replicas"];
    if (now.IntOr(1).value_or(-1) != count) specs[key] = {{"replicas", count}};
  }
  if (specs.empty()) return Json();
  RETURN_IF_ERROR(CheckScaled(job, wanted));
  return Json{{"tfReplicaSpecs", std::move(specs)}};
}

std::string Changes(const StoredJob& job, const Wanted& wanted) {
  std::string text;
  for (const auto& [type, count] : wanted) {
    text += StrCat(text.empty() ? "" : ", ", api::LowerName(type), " ",
                   api::Replicas(job.job, type), " to ", count);
  }
  return text;
}

}  // namespace

StatusOr<Wanted> ParseScale(const std::vector<std::string>& texts) {
  Wanted wanted;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const auto type = equals == std::string::npos ? api::ReplicaType::kWorker
                                                  : api::ParseReplicaType(text.substr(0, equals));
    const char* begin = text.data() + (equals == std::string::npos ? 0 : equals + 1);
    const char* end = text.data() + text.size();
    int32_t count = 0;
    const auto [stopped, error] = std::from_chars(begin, end, count);
    if (!type || error != std::errc() || stopped != end || count < 0) {
      return InvalidArgument(
          "--replicas: expected TYPE=NUMBER such as worker=3 (chief, master, "
          "worker, ps, evaluator), got \"",
          text, "\"");
    }
    if (!wanted.emplace(*type, count).second) {
      return InvalidArgument("--replicas: ", api::LowerName(*type), " is given twice");
    }
  }
  return wanted;
}

int Scale(const ScaleOptions& options, const Surroundings& around) {
  const auto job = GetJob(around.cluster, options.name);
  if (!job.ok()) {
    view::PrintError(around.console, job.status());
    return view::kFailed;
  }
  const auto changed = ChangeSpec(
      around.cluster, *job, [&](const StoredJob& now) { return PatchFor(now, options.replicas); });
  if (!changed.ok()) {
    view::PrintError(around.console, changed.status());
    return absl::IsInvalidArgument(changed.status()) ? view::kBadInput : view::kFailed;
  }
  const std::string name = ResourceName(job->job.metadata.name);
  if (!*changed) {
    around.console.out << name << " unchanged\n";
    return view::kSucceeded;
  }
  around.console.out << name << " scaled: " << Changes(*job, options.replicas) << "\n";
  if (!job->job.spec.enable_dynamic_worker) {
    around.console.err << "tfjob: note: running replicas keep the TF_CONFIG with which they "
                          "started; tfjob restart gives all of them the new one\n";
  }
  return view::kSucceeded;
}

}  // namespace tfjob::cli
