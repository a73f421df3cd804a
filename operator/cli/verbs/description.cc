#include "operator/cli/verbs/description.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "operator/api/replicas.h"
#include "operator/cli/verbs/job_row.h"
#include "operator/cli/verbs/why.h"
#include "operator/policy/facts/decision_options.h"
#include "operator/policy/last_words.h"
#include "operator/view/human.h"
#include "operator/view/job_view.h"
#include "operator/view/printable.h"
#include "operator/view/table.h"

namespace tfjob::cli {
namespace {

constexpr size_t kPodsShown = 100;
constexpr size_t kEventsShown = 20;

void AddLine(std::string& text, std::string_view name, std::string_view value) {
  constexpr size_t kColumn = 13;
  if (value.empty()) return;
  std::string label = StrCat(name, ":");
  label.resize(std::max(kColumn, label.size() + 1), ' ');
  text += StrCat(label, view::PrintableLine(value), "\n");
}

std::string TimeText(const std::optional<Time>& time, Time now) {
  if (!time || *time == Time()) return "";
  return StrCat(FormatTime(*time), " (", view::HumanAge(*time, now), " ago)");
}

std::string Pairs(const std::map<std::string, std::string>& pairs) {
  return absl::StrJoin(pairs, ", ", absl::PairFormatter("="));
}

std::string DeadlineText(const api::TFJob& job, Time now) {
  const auto& seconds = job.spec.run_policy.active_deadline_seconds;
  if (!seconds) return "";
  std::string text = StrCat(*seconds, " s after its start");
  if (job.status.start_time && !job.status.completion_time) {
    const Time end = *job.status.start_time + policy::Seconds(*seconds);
    text += end > now ? StrCat(" (", view::HumanDuration(end - now), " left)") : " (over)";
  }
  return text;
}

std::string BackoffText(const api::TFJob& job) {
  const auto& limit = job.spec.run_policy.backoff_limit;
  return limit ? StrCat(Restarts(job.status), " of ", *limit, " restarts used") : "";
}

std::string HeadLines(const JobFacts& facts) {
  const api::TFJob& job = facts.job();
  const api::TFJobStatus& status = job.status;
  const api::RunPolicy& policy = job.spec.run_policy;
  std::string text;
  AddLine(text, "Name", job.metadata.name);
  AddLine(text, "Namespace", job.metadata.name_space);
  AddLine(text, "Labels", Pairs(job.metadata.labels));
  AddLine(text, "State", view::StateOf(status).empty() ? "<none>" : view::StateOf(status));
  AddLine(text, "Waits", WhyItWaits(facts));
  AddLine(text, "Created", TimeText(job.metadata.creation_timestamp, facts.now));
  AddLine(text, "Started", TimeText(status.start_time, facts.now));
  AddLine(text, "Completed", TimeText(status.completion_time, facts.now));
  AddLine(text, "Suspended", policy.suspend ? "true" : "");
  AddLine(text, "Attempt", status.attempt > 0 ? StrCat(status.attempt) : "");
  AddLine(text, "Backoff", BackoffText(job));
  AddLine(text, "Deadline", DeadlineText(job, facts.now));
  return text;
}

std::string ReplicasTable(const api::TFJob& job) {
  view::Table table(
      {"TYPE", "WANTED", "ACTIVE", "SUCCEEDED", "FAILED", "RESTARTS", "POLICY", "COMPLETED"}, "  ");
  for (const auto& [type, spec] : job.spec.replicas) {
    const auto found = job.status.replica_statuses.find(type);
    const api::ReplicaStatus status =
        found == job.status.replica_statuses.end() ? api::ReplicaStatus() : found->second;
    table.Add({std::string(api::Name(type)), StrCat(api::Replicas(job, type)),
               StrCat(status.active), StrCat(status.succeeded), StrCat(status.failed),
               StrCat(status.restarts), std::string(api::Name(api::EffectiveRestartPolicy(spec))),
               status.completed_indexes});
  }
  return table.empty() ? "" : "Replicas:\n" + table.Take();
}

// Returns why a container is waiting or how it ended, with the end of its message. If no container
// is waiting or has failed, returns the reason in the pod's status or the reason why the pod is not
// scheduled; "" if there is none.
std::string Detail(const objects::Pod& pod) {
  using State = objects::ContainerStatus::State;
  for (const objects::ContainerStatus& container : pod.containers) {
    if (container.state == State::kRunning || container.reason.empty()) continue;
    if (container.state == State::kTerminated && container.exit_code == 0) continue;
    const std::string words = policy::LastWords(container);
    return words.empty() ? container.reason : StrCat(container.reason, ": ", words);
  }
  if (!pod.reason.empty()) return pod.reason;
  const objects::PodCondition* scheduled = pod.condition("PodScheduled");
  return scheduled != nullptr && scheduled->status == "False" ? scheduled->reason : "";
}

std::string PodsTable(const JobFacts& facts) {
  view::Table table({"NAME", "PHASE", "RESTARTS", "EXIT CODE", "NODE", "AGE", "DETAIL"}, "  ");
  const size_t shown = std::min(facts.pods.size(), kPodsShown);
  for (size_t i = 0; i < shown; ++i) {
    const objects::Pod& pod = *facts.pods[i];
    const auto exit = facts.ExitOf(pod);
    table.Add({pod.metadata.name,
               pod.metadata.terminating() ? "Terminating" : std::string(Name(pod.phase)),
               StrCat(pod.restart_count()), exit ? StrCat(exit->code) : "", pod.node_name,
               view::HumanAge(pod.metadata.creation_timestamp, facts.now), Detail(pod)});
  }
  if (table.empty()) return "Pods:        <none>\n";
  std::string text = "Pods:\n" + table.Take();
  if (facts.pods.size() > shown) text += StrCat("  and ", facts.pods.size() - shown, " more\n");
  return text;
}

std::string ConditionsTable(const JobFacts& facts) {
  view::Table table({"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}, "  ");
  for (const api::Condition& condition : facts.job().status.conditions) {
    table.Add({std::string(api::Name(condition.type)), condition.status ? "True" : "False",
               condition.reason, view::HumanAge(condition.last_transition_time, facts.now),
               condition.message});
  }
  return table.empty() ? "Conditions:  <none>\n" : "Conditions:\n" + table.Take();
}

std::string EventsTable(const JobFacts& facts) {
  if (!facts.no_events.empty()) {
    return StrCat("Events:      <unknown> (", view::PrintableLine(facts.no_events), ")\n");
  }
  view::Table table({"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}, "  ");
  const size_t all = facts.events.size();
  const size_t first = all > kEventsShown ? all - kEventsShown : 0;
  for (size_t i = first; i < all; ++i) {
    const EventLine& event = facts.events[i];
    std::string age = view::HumanAge(event.last, facts.now);
    if (event.count > 1) age += StrCat(" (x", event.count, ")");
    table.Add(
        {age, event.warning ? "Warning" : "Normal", event.reason, event.object, event.message});
  }
  if (table.empty()) return "Events:      <none>\n";
  const std::string earlier = first > 0 ? StrCat("  and ", first, " earlier\n") : "";
  return "Events:\n" + table.Take() + earlier;
}

}  // namespace

std::string Describe(const JobFacts& facts) {
  return StrCat(HeadLines(facts), ReplicasTable(facts.job()), PodsTable(facts),
                ConditionsTable(facts), EventsTable(facts));
}

}  // namespace tfjob::cli
