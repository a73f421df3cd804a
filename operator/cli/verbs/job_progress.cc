#include "operator/cli/verbs/job_progress.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/progress_log.h"
#include "operator/view/job_view.h"
#include "operator/view/pod_key.h"
#include "operator/view/training_slot.h"
#include "runtime/progress/client.h"

namespace tfjob::cli {
namespace {

constexpr Duration kAnswerTime = 500ms;
constexpr int kTries = 2;  // unanswered calls until the pod network is considered unreachable
constexpr int64_t kLogLines = 200;
constexpr size_t kLogBytes = 1 << 20;  // lines can be of any length

// Shortens the log to at most kLogBytes by removing bytes from the front. If a line is cut in two,
// also removes the rest of that line.
void KeepEnd(std::string& log) {
  if (log.size() <= kLogBytes) return;
  log.erase(0, log.size() - kLogBytes);
  log.erase(0, std::min(log.find('\n'), log.size()));
}

}  // namespace

FetchProgress AskTrainer() {
  return [](const std::string& address, const std::optional<wire::JobKey>& key) {
    return progress::ProgressClient(address, key).Fetch(kAnswerTime);
  };
}

bool ProgressReader::Unreachable() {
  MutexLock lock(mutex_);
  return unanswered_ >= kTries;
}

StatusOr<progress::Progress> ProgressReader::ReadLog(const objects::Pod& pod) {
  LogRequest request;
  request.name_space = pod.metadata.name_space;
  request.pod = pod.metadata.name;
  request.container = api::kContainerName;
  request.tail_lines = kLogLines;
  std::string log;
  const Status status =
      context_.cluster.logs().Read(request, context_.stop, [&](std::string_view bytes) {
        log += bytes;
        if (log.size() > 2 * kLogBytes) KeepEnd(log);
        return true;
      });
  KeepEnd(log);
  if (!status.ok()) return Annotate(status, StrCat("the log of ", pod.metadata.name));
  const auto progress = ProgressFromLog(log);
  if (progress) return *progress;
  return NotFound("no progress in the last ", kLogLines, " lines of the log of ", pod.metadata.name,
                  " (is its program tfjob-trainer?)");
}

StatusOr<progress::Progress> ProgressReader::Ask(const api::TFJob& job, const objects::Pod& pod,
                                                 api::ReplicaType type) {
  const bool runs = pod.phase == objects::PodPhase::kRunning && !pod.pod_ip.empty();
  if (runs && !Unreachable()) {
    const bool six = pod.pod_ip.find(':') != std::string::npos;
    const auto whole = context_.cluster.client().GetJson(
        {objects::Kind::kPod, pod.metadata.name_space, pod.metadata.name});
    const auto progress =
        fetch_(StrCat(six ? "[" : "", pod.pod_ip, six ? "]" : "", ":", api::TFJobPort(job, type)),
               whole.ok() ? view::KeyOfPod(*whole) : std::nullopt);
    MutexLock lock(mutex_);
    unanswered_ = progress.ok() ? 0 : unanswered_ + 1;
    if (progress.ok()) return progress;
  }
  return ReadLog(pod);
}

std::string ProgressReader::TextOf(const api::TFJob& job) {
  const auto slot = view::TrainingSlot(job);
  if (!slot) return "(the job has no chief, master or worker)";
  const std::string name = api::ReplicaName(job.metadata.name, slot->type, slot->index);
  const auto object =
      context_.cluster.client().Get({objects::Kind::kPod, job.metadata.name_space, name});
  if (absl::IsNotFound(object.status())) return StrCat("(there is no pod ", name, ")");
  if (!object.ok()) return StrCat("(", Message(object.status()), ")");
  const auto& pod = std::get<std::shared_ptr<const objects::Pod>>(*object);
  if (!IsPodOf(*pod, job)) return StrCat("(the pod ", name, " does not belong to the job)");
  if (pod->phase == objects::PodPhase::kPending) return StrCat("(", name, " is Pending)");
  view::JobView view;
  const auto progress = Ask(job, *pod, slot->type);
  if (!progress.ok()) return StrCat("(", Message(progress.status()), ")");
  view.training = *progress;
  const std::string text = view::ProgressText(view);
  return text.empty() ? StrCat("(", name, " is ", progress::Name(progress->state), ")") : text;
}

}  // namespace tfjob::cli
