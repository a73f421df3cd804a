#include "operator/cli/verbs/job_facts.h"

#include <nlohmann/json.hpp>

#include "operator/objects/pod.h"

namespace tfjob::cli {
namespace {

// Reads lastState from the full object, because objects::Pod omits it.
std::optional<LastExit> ReadLastExit(const Json& pod) {
  const auto containers = JsonField(pod)["status"]["containerStatuses"].Elements();
  if (!containers.ok()) return std::nullopt;
  for (const JsonField& container : *containers) {
    if (container["name"].StringOr("").value_or("") != api::kContainerName) continue;
    const JsonField end = container["lastState"]["terminated"];
    if (!end.present()) return std::nullopt;
    LastExit exit;
    exit.code = end["exitCode"].IntOr(0).value_or(0);
    exit.reason = end["reason"].StringOr("").value_or("");
    exit.at = ParseTime(end["finishedAt"].StringOr("").value_or("")).value_or(Time());
    return exit;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LastExit> JobFacts::ExitOf(const objects::Pod& pod) const {
  const objects::ContainerStatus* container = pod.container(api::kContainerName);
  if (container != nullptr && container->state == objects::ContainerStatus::State::kTerminated) {
    return LastExit{container->exit_code, container->reason, container->finished_at};
  }
  const auto last = last_exits.find(pod.metadata.name);
  if (last == last_exits.end()) return std::nullopt;
  return last->second;
}

StatusOr<JobFacts> CollectFacts(const VerbContext& context, const StoredJob& job) {
  constexpr size_t kMaximumAsked = 20;
  JobFacts facts;
  facts.stored = job;
  facts.now = context.clock.Now();
  ASSIGN_OR_RETURN(facts.pods, PodsOf(context.cluster, job.job));
  std::set<std::string> uids = {job.job.metadata.uid};
  size_t asked = 0;
  for (const auto& pod : facts.pods) {
    const objects::ObjectMeta& metadata = pod->metadata;
    uids.insert(metadata.uid);
    if (pod->restart_count() == 0 || ++asked > kMaximumAsked) continue;
    const auto whole =
        context.cluster.client().GetJson({objects::Kind::kPod, metadata.name_space, metadata.name});
    const auto last = whole.ok() ? ReadLastExit(*whole) : std::nullopt;
    if (last) facts.last_exits[metadata.name] = *last;
  }
  auto events = EventsAbout(context.cluster, job.job.metadata.name_space, uids);
  if (events.ok()) {
    facts.events = *std::move(events);
  } else {
    facts.no_events = Message(events.status());
  }
  return facts;
}

}  // namespace tfjob::cli
