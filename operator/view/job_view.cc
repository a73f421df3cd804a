#include "operator/view/job_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "operator/api/names.h"
#include "operator/objects/last_line.h"
#include "operator/view/printable.h"

namespace tfjob::view {
namespace {

using objects::ContainerStatus;

// Formats a number with `digits` significant digits.
std::string Number(double value, int digits) {
  char text[40];
  snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}

// Rounds to whole seconds. A trainer may report any finite number, so limits the result to the
// range from 0 to a hundred years.
Duration Seconds(double seconds) {
  constexpr double kHundredYears = 100.0 * 366 * 24 * 3600;
  return std::chrono::seconds(std::llround(std::clamp(seconds, 0.0, kHundredYears)));
}

void Append(std::string& text, std::string_view separator, std::string_view part) {
  if (part.empty()) return;
  if (!text.empty()) text += separator;
  text += part;
}

ReplicaCounts& Count(ReplicaCounts& counts, const objects::Pod& pod) {
  using objects::PodPhase;
  int& count = pod.phase == PodPhase::kSucceeded ? counts.succeeded
               : pod.phase == PodPhase::kFailed  ? counts.failed
               : pod.metadata.terminating()      ? counts.terminating
               : pod.phase == PodPhase::kRunning ? counts.running
                                                 : counts.pending;
  ++count;
  return counts;
}

std::string StepText(const progress::Progress& progress) {
  if (progress.max_steps > 0) return StrCat("step ", progress.step, "/", progress.max_steps);
  return StrCat("step ", progress.step);
}

std::string MetricsText(const progress::Progress& progress) {
  std::string text;
  for (const auto& [name, value] : progress.metrics) {
    if (name != "loss") Append(text, ", ", StrCat(name, " ", Number(value, 4)));
  }
  return text;
}

}  // namespace

std::string StateOf(const api::TFJobStatus& status) {
  std::string state;
  for (const api::Condition& condition : status.conditions) {
    if (condition.status) state = api::Name(condition.type);
  }
  return state;
}

JobView MakeView(const api::TFJob& job,
                 const std::vector<std::shared_ptr<const objects::Pod>>& pods) {
  JobView view;
  view.name = job.metadata.name;
  view.state = StateOf(job.status);
  for (const auto& pod : pods) {
    const objects::OwnerReference* owner = pod->metadata.controller();
    const auto replica = api::ReplicaIdOf(pod->metadata.labels);
    if (owner == nullptr || owner->uid != job.metadata.uid || !replica) continue;
    Count(view.replicas[replica->type], *pod);
  }
  return view;
}

std::string ReplicasText(const JobView& view) {
  std::string text;
  for (const auto& [type, counts] : view.replicas) {
    std::string part;
    const auto add = [&part](int count, std::string_view state) {
      if (count > 0) Append(part, " ", StrCat(count, " ", state));
    };
    add(counts.running, "running");
    add(counts.pending, "pending");
    add(counts.succeeded, "succeeded");
    add(counts.failed, "failed");
    add(counts.terminating, "terminating");
    Append(text, ", ", StrCat(api::LowerName(type), " ", part));
  }
  return text;
}

std::string ProgressText(const JobView& view) {
  std::string text;
  if (view.training) {
    const progress::Progress& training = *view.training;
    if (training.state == progress::State::kWaiting) {
      Append(text, ", ", StrCat("waiting for ", training.waiting_for));
    }
    if (training.step > 0) Append(text, ", ", StepText(training));
    if (training.steps_per_s > 0) Append(text, ", ", Number(training.steps_per_s, 4) + " steps/s");
    if (training.loss) Append(text, ", ", "loss " + Number(*training.loss, 4));
    Append(text, ", ", MetricsText(training));
    if (training.seconds_left) {
      Append(text, ", ", FormatDuration(Seconds(*training.seconds_left)) + " left");
    }
  }
  if (view.evaluation && !view.evaluation->metrics.empty()) {
    Append(text, ", ", StrCat("test ", MetricsText(*view.evaluation)));
  }
  if (!Problems(view).empty()) Append(text, ", ", "with problems");
  return text;
}

std::vector<std::string> Problems(const JobView& view) {
  std::vector<std::string> problems;
  for (const auto* progress : {&view.training, &view.evaluation}) {
    if (!*progress) continue;
    for (const auto& [what, problem] : (*progress)->problems) problems.push_back(problem);
  }
  return problems;
}

std::string LiveLine(const JobView& view, size_t width) {
  std::string line = view.name;
  Append(line, "  ", view.state);
  Append(line, "  ", ProgressText(view));
  Append(line, "  ", ReplicasText(view));
  return std::string(CutText(line, width));
}

std::vector<std::string> PodReporter::Report(const objects::Pod& pod) {
  std::vector<std::string> lines;
  for (const ContainerStatus& container : pod.containers) {
    Seen& seen = seen_[pod.metadata.uid + "/" + container.name];
    const std::string who = StrCat(pod.metadata.name, ": ", container.name, " ");
    const std::string message = objects::LastLine(container.message);
    const std::string why =
        message.empty() ? container.reason : StrCat(container.reason, ": ", message);
    std::string text;
    if (container.state == ContainerStatus::State::kTerminated && container.exit_code != 0 &&
        !pod.metadata.terminating()) {
      text = StrCat(who, "exited with code ", container.exit_code, " (", why, ")");
    } else if (container.state == ContainerStatus::State::kWaiting &&
               container.reason != "PodInitializing") {
      text = StrCat(who, "is waiting (", why, ")");
    } else if (container.state == ContainerStatus::State::kRunning &&
               container.restart_count > seen.restarts) {
      text = StrCat(who, "restarted, ", container.restart_count, " so far");
    }
    if (!text.empty() && text != seen.text) lines.push_back(text);
    seen = {container.state, text, container.restart_count};
  }
  return lines;
}

std::vector<std::string> NewConditions(const api::TFJobStatus& before,
                                       const api::TFJobStatus& now) {
  std::vector<std::string> lines;
  for (const api::Condition& condition : now.conditions) {
    const bool known =
        std::any_of(before.conditions.begin(), before.conditions.end(), [&](const auto& old) {
          return old.type == condition.type && old.status == condition.status &&
                 old.reason == condition.reason;
        });
    if (known || !condition.status) continue;
    lines.push_back(StrCat(api::Name(condition.type), ": ", condition.message));
  }
  return lines;
}

}  // namespace tfjob::view
