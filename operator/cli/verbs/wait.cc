#include "operator/cli/verbs/wait.h"

#include <strings.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "absl/strings/str_join.h"
#include "operator/api/conditions.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/verbs.h"
#include "operator/view/human.h"
#include "operator/view/job_view.h"
#include "operator/view/object_cache.h"

namespace tfjob::cli {
namespace {

using api::ConditionType;

bool EqualsIgnoringCase(std::string_view text, std::string_view word) {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

std::optional<ConditionType> ConditionOf(std::string_view text) {
  for (const ConditionType type :
       {ConditionType::kCreated, ConditionType::kRunning, ConditionType::kRestarting,
        ConditionType::kSucceeded, ConditionType::kFailed, ConditionType::kSuspended}) {
    if (EqualsIgnoringCase(text, api::Name(type))) return type;
  }
  return std::nullopt;
}

// Returns whether the job has not ended yet, that is, whether its conditions can still change.
bool IsOpen(const api::TFJob& job) {
  return !api::IsFinished(job.status);
}

std::string GoalsText(const std::vector<WaitGoal>& goals) {
  return absl::StrJoin(goals, " or ", [](std::string* out, const WaitGoal& goal) {
    *out += StrCat(goal.ToString());
  });
}

bool AwaitsDeletion(const std::vector<WaitGoal>& goals) {
  return std::any_of(goals.begin(), goals.end(),
                     [](const WaitGoal& goal) { return goal.deletion; });
}

class Waiter {
 public:
  Waiter(const WaitOptions& options, const VerbContext& context)
      : options_(options), context_(context) {}

  // Waits until every job has reached a goal or can no longer reach one, the timeout expires, or a
  // stop is requested. Returns whether all jobs reached a goal, or an error from the server.
  StatusOr<bool> Run();

 private:
  Status ReadJobs();
  Status Watch();
  // Processes the changes that the watch has reported since the last call.
  Status CheckChanges(view::ObjectCache& cache);
  void CheckJob(const client::Object& object);
  // Reads jobs directly, because a watch may start with an old list. Settles jobs that are gone.
  Status Reread(const std::set<std::string>& names);
  void HandleDeletion(const std::string& name);
  // Reports whether the job reached a goal, and no longer waits for it.
  void SettleJob(const std::string& name, const Status& status);
  void FailOpenJobs();

  const WaitOptions& options_;
  const VerbContext& context_;
  // The UIDs of the jobs that have not reached a goal yet, by name. A job of the same name with
  // another UID is a different job.
  std::map<std::string, std::string> open_;
  bool failed_ = false;
};

void Waiter::SettleJob(const std::string& name, const Status& status) {
  open_.erase(name);
  failed_ |= !status.ok();
  if (!status.ok()) return view::PrintError(context_.console, status);
  context_.console.out << ResourceName(name) << " condition met\n" << std::flush;
}

void Waiter::CheckJob(const client::Object& object) {
  const api::TFJob job = ReadStoredJob(object).job;
  const auto known = open_.find(job.metadata.name);
  if (known == open_.end() || known->second != job.metadata.uid) return;
  const auto reached = Reached(job, options_.goals);
  if (!reached.ok() || *reached) SettleJob(job.metadata.name, reached.status());
}

void Waiter::HandleDeletion(const std::string& name) {
  if (AwaitsDeletion(options_.goals)) return SettleJob(name, OkStatus());
  SettleJob(name, FailedPrecondition(context_.cluster.name_space(), "/", name,
                                     ": it was deleted before it was ", GoalsText(options_.goals)));
}

Status Waiter::ReadJobs() {
  for (const std::string& text : options_.names) {
    const client::Key key{objects::Kind::kTFJob, context_.cluster.name_space(), JobName(text)};
    const auto object = context_.cluster.client().Get(key);
    if (absl::IsNotFound(object.status()) && AwaitsDeletion(options_.goals)) {
      SettleJob(key.name, OkStatus());
    } else if (absl::IsNotFound(object.status())) {
      SettleJob(key.name, Explain(object.status(), context_.cluster, client::ToString(key)));
    } else if (!object.ok()) {
      return Explain(object.status(), context_.cluster, client::ToString(key));
    } else {
      open_.emplace(key.name, client::MetadataOf(*object).uid);
      CheckJob(*object);
    }
  }
  return OkStatus();
}

Status Waiter::Reread(const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const client::Key key{objects::Kind::kTFJob, context_.cluster.name_space(), name};
    const auto object = context_.cluster.client().Get(key);
    const bool away =
        absl::IsUnavailable(object.status()) || absl::IsDeadlineExceeded(object.status());
    if (away) return OkStatus();  // read again later
    if (!object.ok() && !absl::IsNotFound(object.status())) {
      return Explain(object.status(), context_.cluster, client::ToString(key));
    }
    if (object.ok() && client::MetadataOf(*object).uid == open_[name]) {
      CheckJob(*object);
    } else {
      HandleDeletion(name);
    }
  }
  return OkStatus();
}

Status Waiter::CheckChanges(view::ObjectCache& cache) {
  for (const view::ObjectCache::Change& change : cache.TakeChanges()) CheckJob(change.object);
  const auto objects = cache.Objects();
  std::set<std::string> gone;
  for (const auto& [name, uid] : open_) {
    const auto found = objects.find({objects::Kind::kTFJob, context_.cluster.name_space(), name});
    if (found == objects.end() || client::MetadataOf(found->second).uid != uid) gone.insert(name);
  }
  return Reread(gone);
}

Status Waiter::Watch() {
  // How often to read the jobs while the watch has no list, in units of kPollInterval.
  constexpr int kPollsPerRead = 5;
  Cluster& cluster = context_.cluster;
  const auto cache =
      view::ObjectCache::Create(cluster.client(), objects::Kind::kTFJob, cluster.name_space());
  if (!cache.ok()) return Explain(cache.status(), cluster, "TFJobs");
  const Duration begun = context_.clock.Monotonic();
  for (int polls = 1; !open_.empty() && !context_.stop.requested(); ++polls) {
    if (options_.timeout && context_.clock.Monotonic() - begun >= *options_.timeout) break;
    (*cache)->AwaitChange(kPollInterval);
    if ((*cache)->AwaitList(Duration::zero())) {
      RETURN_IF_ERROR(CheckChanges(**cache));
    } else if (polls % kPollsPerRead == 0) {
      // Read the jobs directly: the user may be allowed to get them, but not to list or watch them.
      std::set<std::string> names;
      for (const auto& [name, uid] : open_) names.insert(name);
      RETURN_IF_ERROR(Reread(names));
    }
  }
  return OkStatus();
}

void Waiter::FailOpenJobs() {
  const std::string why =
      context_.stop.requested()
          ? ", and the wait was stopped"
          : StrCat(" after ", view::HumanDuration(options_.timeout.value_or(0s)));
  for (const auto& [name, uid] : std::map(open_)) {
    SettleJob(name, DeadlineExceeded(context_.cluster.name_space(), "/", name, ": it is not ",
                                     GoalsText(options_.goals), why, "; tfjob describe ", name,
                                     " shows why"));
  }
}

StatusOr<bool> Waiter::Run() {
  RETURN_IF_ERROR(ReadJobs());
  if (!open_.empty()) RETURN_IF_ERROR(Watch());
  FailOpenJobs();
  return !failed_;
}

}  // namespace

StatusOr<WaitGoal> WaitGoal::Parse(std::string_view text) {
  constexpr std::string_view kCondition = "condition=";
  const auto wrong = [text] {
    return InvalidArgument(
        "--for: expected Created, Running, Restarting, Suspended, Succeeded, "
        "Failed, condition=NAME[=true|false] or delete, got \"",
        text, "\"");
  };
  WaitGoal goal;
  if (EqualsIgnoringCase(text, "delete")) {
    goal.deletion = true;
    return goal;
  }
  std::string_view name = text;
  if (EqualsIgnoringCase(name.substr(0, kCondition.size()), kCondition)) {
    name.remove_prefix(kCondition.size());
    const size_t equals = name.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? "true" : name.substr(equals + 1);
    if (!EqualsIgnoringCase(value, "true") && !EqualsIgnoringCase(value, "false")) return wrong();
    goal.value = EqualsIgnoringCase(value, "true");
    name = name.substr(0, equals);
  }
  const auto condition = ConditionOf(name);
  if (!condition) return wrong();
  goal.condition = *condition;
  return goal;
}

std::string WaitGoal::ToString() const {
  if (deletion) return "deleted";
  return StrCat(value ? "" : "not ", api::Name(condition));
}

StatusOr<bool> Reached(const api::TFJob& job, const std::vector<WaitGoal>& goals) {
  for (const WaitGoal& goal : goals) {
    if (goal.deletion) continue;
    const api::Condition* condition = api::Find(job.status, goal.condition);
    if (condition != nullptr && condition->status == goal.value) return true;
  }
  if (IsOpen(job) || AwaitsDeletion(goals)) return false;
  return FailedPrecondition(job.key(), ": it is ", view::StateOf(job.status), " and will never be ",
                            GoalsText(goals), ": ", job.status.conditions.back().message);
}

int Wait(const WaitOptions& options, const VerbContext& context) {
  const auto reached = Waiter(options, context).Run();
  if (!reached.ok()) view::PrintError(context.console, reached.status());
  return reached.ok() && *reached ? view::kSucceeded : view::kFailed;
}

namespace {

class WaitVerb : public ClusterVerb {
 public:
  WaitVerb() : ClusterVerb("wait", "Wait until TFJobs reach a state") {}

  void AddFlags(FlagSet& flags) override {
    AddJobNames(flags, options_.names);
    const auto read = [this](const std::vector<std::string>& texts) -> Status {
      for (const std::string& text : texts) {
        ASSIGN_OR_RETURN(const WaitGoal goal, WaitGoal::Parse(text));
        options_.goals.push_back(goal);
      }
      return OkStatus();
    };
    flags
        .RepeatedAs("--for", read,
                    "Created, Running, Restarting, Suspended, Succeeded, Failed, "
                    "condition=NAME[=false] or delete; if repeated, any of them suffices")
        .Require()
        .CompleteWords(
            {"Created", "Failed", "Restarting", "Running", "Succeeded", "Suspended", "delete"});
    flags.TimeSpan("--timeout", options_.timeout, "Time limit, such as 30s (default: no limit)");
  }
  int RunOn(const VerbContext& context) override { return Wait(options_, context); }

 private:
  WaitOptions options_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeWaitVerb() {
  return std::make_unique<WaitVerb>();
}

}  // namespace tfjob::cli
