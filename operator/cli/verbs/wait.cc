#include "operator/cli/verbs/wait.h"

#include <strings.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "operator/api/conditions.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/view/human.h"
#include "operator/view/job_view.h"
#include "operator/view/object_cache.h"

namespace tfjob::cli {
namespace {

using api::ConditionType;

bool Same(std::string_view text, std::string_view word) {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

std::optional<ConditionType> ConditionOf(std::string_view text) {
  for (const ConditionType type :
       {ConditionType::kCreated, ConditionType::kRunning, ConditionType::kRestarting,
        ConditionType::kSucceeded, ConditionType::kFailed, ConditionType::kSuspended}) {
    if (Same(text, api::Name(type))) return type;
  }
  return std::nullopt;
}

// Returns whether the job's conditions can still change. After its end they stay as they are.
bool IsOpen(const api::TFJob& job) {
  return !api::IsFinished(job.status);
}

std::string Goals(const std::vector<WaitGoal>& goals) {
  std::string text;
  for (const WaitGoal& goal : goals) text += StrCat(text.empty() ? "" : " or ", goal.ToString());
  return text;
}

bool AwaitsDeletion(const std::vector<WaitGoal>& goals) {
  return std::any_of(goals.begin(), goals.end(),
                     [](const WaitGoal& goal) { return goal.deletion; });
}

class Waiter {
 public:
  Waiter(const WaitOptions& options, const Surroundings& around)
      : options_(options), around_(around) {}

  // Waits until every job is settled or the timeout expires. Returns whether all of them reached a
  // goal; errors are those of the server.
  StatusOr<bool> Run();

 private:
  Status Begin();
  Status Watch();
  void Look(const client::Object& object);
  void LookAtDeleted(const std::string& name);
  // Reports the outcome of a job and stops waiting for it.
  void Settle(const std::string& name, const Status& status);
  void GiveUp();

  const WaitOptions& options_;
  const Surroundings& around_;
  std::set<std::string> open_;  // names of jobs still waited for
  bool failed_ = false;
};

void Waiter::Settle(const std::string& name, const Status& status) {
  open_.erase(name);
  failed_ |= !status.ok();
  if (!status.ok()) return view::PrintError(around_.console, status);
  around_.console.out << ResourceName(name) << " condition met\n" << std::flush;
}

void Waiter::Look(const client::Object& object) {
  const api::TFJob job = ReadStoredJob(object).job;
  if (!open_.contains(job.metadata.name)) return;
  const auto reached = Reached(job, options_.goals);
  if (!reached.ok() || *reached) Settle(job.metadata.name, reached.status());
}

void Waiter::LookAtDeleted(const std::string& name) {
  if (AwaitsDeletion(options_.goals)) return Settle(name, OkStatus());
  Settle(name, FailedPrecondition(around_.cluster.name_space(), "/", name,
                                  ": it was deleted before it was ", Goals(options_.goals)));
}

Status Waiter::Begin() {
  for (const std::string& text : options_.names) {
    const client::Key key{client::Kind::kTFJob, around_.cluster.name_space(), JobName(text)};
    const auto object = around_.cluster.client().Get(key);
    if (absl::IsNotFound(object.status()) && AwaitsDeletion(options_.goals)) {
      Settle(key.name, OkStatus());
    } else if (absl::IsNotFound(object.status())) {
      Settle(key.name, Explain(object.status(), around_.cluster, client::ToString(key)));
    } else if (!object.ok()) {
      return Explain(object.status(), around_.cluster, client::ToString(key));
    } else {
      open_.insert(key.name);
      Look(*object);
    }
  }
  return OkStatus();
}

Status Waiter::Watch() {
  Cluster& cluster = around_.cluster;
  const auto cache =
      view::ObjectCache::Create(cluster.client(), client::Kind::kTFJob, cluster.name_space());
  if (!cache.ok()) return Explain(cache.status(), cluster, "TFJobs");
  const Duration begun = around_.clock.Monotonic();
  while (!open_.empty() && !around_.stop.requested()) {
    if (options_.timeout && around_.clock.Monotonic() - begun >= *options_.timeout) break;
    (*cache)->AwaitChange(kPollInterval);
    for (const view::ObjectCache::Change& change : (*cache)->TakeChanges()) Look(change.object);
    if (!(*cache)->AwaitList(Duration::zero())) continue;
    const auto objects = (*cache)->Objects();
    for (const std::string& name : std::set(open_)) {
      const client::Key key{client::Kind::kTFJob, cluster.name_space(), name};
      if (!objects.contains(key)) LookAtDeleted(name);
    }
  }
  return OkStatus();
}

void Waiter::GiveUp() {
  const std::string why =
      around_.stop.requested()
          ? ", and the wait was stopped"
          : StrCat(" after ", view::HumanDuration(options_.timeout.value_or(0s)));
  for (const std::string& name : std::set(open_)) {
    Settle(name,
           DeadlineExceeded(around_.cluster.name_space(), "/", name, ": it is not ",
                            Goals(options_.goals), why, "; tfjob describe ", name, " shows why"));
  }
}

StatusOr<bool> Waiter::Run() {
  RETURN_IF_ERROR(Begin());
  if (!open_.empty()) RETURN_IF_ERROR(Watch());
  GiveUp();
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
  if (Same(text, "delete")) {
    goal.deletion = true;
    return goal;
  }
  std::string_view name = text;
  if (Same(name.substr(0, kCondition.size()), kCondition)) {
    name.remove_prefix(kCondition.size());
    const size_t equals = name.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? "true" : name.substr(equals + 1);
    if (!Same(value, "true") && !Same(value, "false")) return wrong();
    goal.value = Same(value, "true");
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
                            Goals(goals), ": ", job.status.conditions.back().message);
}

int Wait(const WaitOptions& options, const Surroundings& around) {
  const auto reached = Waiter(options, around).Run();
  if (!reached.ok()) view::PrintError(around.console, reached.status());
  return reached.ok() && *reached ? view::kSucceeded : view::kFailed;
}

}  // namespace tfjob::cli
