#include "operator/cli/verbs/scale.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_join.h"
#include "operator/api/replicas.h"
#include "operator/api/validate.h"
#include "operator/cli/verbs/change.h"
#include "operator/cli/verbs/verbs.h"

namespace tfjob::cli {
namespace {

using Wanted = std::map<api::ReplicaType, int32_t>;

// Returns the type's key as the object spells it: "Worker" or, from older manifests, "worker".
StatusOr<std::string> KeyIn(const StoredJob& job, api::ReplicaType type) {
  ASSIGN_OR_RETURN(const auto specs, JsonField(*job.object)["spec"]["tfReplicaSpecs"].Members());
  std::vector<std::string> present;
  for (const auto& [key, spec] : specs) {
    if (api::ParseReplicaType(key) == type) return key;
    present.push_back(key);
  }
  return FailedPrecondition(job.job.key(), ": it has no replicas of type ", api::Name(type),
                            ", only ", absl::StrJoin(present, ", "));
}

// If admission would reject the scaled job, returns InvalidArgument with the messages of admission.
Status CheckScaled(const StoredJob& stored, const Wanted& wanted) {
  api::TFJob job = stored.job;
  for (const auto& [type, count] : wanted) job.spec.replicas[type].replicas = count;
  std::vector<std::string> problems;
  for (const api::FieldIssue& issue : api::Validate(job)) {
    problems.push_back(StrCat(job.key(), ": ", api::ToString(issue)));
  }
  return problems.empty() ? OkStatus() : InvalidArgument(absl::StrJoin(problems, "\n"));
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
  return absl::StrJoin(wanted, ", ", [&](std::string* out, const auto& entry) {
    const auto& [type, count] = entry;
    *out += StrCat(api::LowerName(type), " ", api::Replicas(job.job, type), " to ", count);
  });
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

int Scale(const ScaleOptions& options, const VerbContext& context) {
  const auto job = GetJob(context.cluster, options.name);
  if (!job.ok()) {
    view::PrintError(context.console, job.status());
    return view::kFailed;
  }
  const auto changed = ChangeSpec(
      context.cluster, *job, [&](const StoredJob& now) { return PatchFor(now, options.replicas); });
  if (!changed.ok()) {
    view::PrintError(context.console, changed.status());
    return absl::IsInvalidArgument(changed.status()) ? view::kBadInput : view::kFailed;
  }
  const std::string name = ResourceName(job->job.metadata.name);
  if (!*changed) {
    context.console.out << name << " unchanged\n";
    return view::kSucceeded;
  }
  context.console.out << name << " scaled: " << Changes(*job, options.replicas) << "\n";
  if (!job->job.spec.enable_dynamic_worker) {
    view::PrintNote(context.console,
                    "running replicas keep the TF_CONFIG with which they started; tfjob restart "
                    "gives all of them the new one");
  }
  return view::kSucceeded;
}

namespace {

class ScaleVerb : public ClusterVerb {
 public:
  ScaleVerb() : ClusterVerb("scale", "Change the replica counts of a TFJob") {}

  void AddFlags(FlagSet& flags) override {
    flags.Repeated("JOB", names_, "Name of a TFJob")
        .Require()
        .Exactly(1)
        .Complete(CompleteWith::kJob);
    const auto read = [this](const std::vector<std::string>& texts) -> Status {
      ASSIGN_OR_RETURN(options_.replicas, ParseScale(texts));
      options_.name = names_.front();
      return OkStatus();
    };
    flags.RepeatedAs("--replicas", read, "TYPE=NUMBER, such as worker=3; may be repeated")
        .Require()
        .CompleteWords({"chief=", "evaluator=", "master=", "ps=", "worker="});
  }
  int RunOn(const VerbContext& context) override { return Scale(options_, context); }

 private:
  std::vector<std::string> names_;  // exactly one
  ScaleOptions options_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeScaleVerb() {
  return std::make_unique<ScaleVerb>();
}

}  // namespace tfjob::cli
