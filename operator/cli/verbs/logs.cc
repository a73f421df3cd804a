#include "operator/cli/verbs/logs.h"

#include <csignal>
#include <list>
#include <ostream>
#include <set>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/cli/verbs/job_flags.h"
#include "operator/cli/verbs/log_stream.h"
#include "operator/cli/verbs/stored_job.h"
#include "operator/cli/verbs/verbs.h"
#include "operator/objects/pod.h"
#include "operator/view/object_cache.h"

namespace tfjob::cli {
namespace {

using objects::ContainerStatus;
using objects::Pod;
using PodPointer = std::shared_ptr<const Pod>;

constexpr size_t kMaximumStreams = 100;

LogRequest RequestFor(const LogsOptions& options, const Pod& pod) {
  LogRequest request;
  request.name_space = pod.metadata.name_space;
  request.pod = pod.metadata.name;
  request.container = options.container;
  request.previous = options.previous;
  request.timestamps = options.timestamps;
  request.tail_lines = options.tail_lines;
  request.since = options.since;
  return request;
}

bool IsChosen(const LogsOptions& options, const Pod& pod, const api::TFJob& job) {
  return IsPodOf(pod, job) && options.replicas.Contains(*api::ReplicaIdOf(pod.metadata.labels));
}

// --- One after another -------------------------------------------------------------------------

Status PrintLog(const VerbContext& context, const LogRequest& request, const std::string& prefix,
                LogPrinter& printer) {
  LineCutter cutter([&](std::string_view line) { return printer.Print(prefix, line); });
  const Status status = context.cluster.logs().Read(
      request, context.stop, [&](std::string_view bytes) { return cutter.Add(bytes); });
  cutter.Finish();
  return status;
}

// Explains an error from reading a log. The server fetches the log from the pod's node, so an error
// does not mean that the server itself is unavailable, as Explain() would report. Therefore,
// Explain() is used only for missing permissions.
Status ExplainLog(const Status& status, const Cluster& cluster, const std::string& pod) {
  const std::string what = StrCat("the log of Pod ", pod);
  if (absl::IsPermissionDenied(status)) return Explain(status, cluster, what);
  return Annotate(status, StrCat(what, " on ", cluster.server()));
}

Status PrintLogs(const LogsOptions& options, const VerbContext& context, const api::TFJob& job) {
  ASSIGN_OR_RETURN(std::vector<PodPointer> pods, PodsOf(context.cluster, job));
  std::erase_if(pods, [&](const PodPointer& pod) { return !IsChosen(options, *pod, job); });
  LogPrinter printer(context.console);
  size_t printed = 0;
  for (const PodPointer& pod : pods) {
    if (printer.broken() || context.stop.requested()) return OkStatus();
    const std::string& name = pod->metadata.name;
    const Status status =
        PrintLog(context, RequestFor(options, *pod), pods.size() > 1 ? name : "", printer);
    if (status.ok()) {
      ++printed;
      continue;
    }
    view::PrintError(context.console, ExplainLog(status, context.cluster, name));
  }
  if (pods.empty()) {
    return FailedPrecondition(job.key(), ": it has no pods, so no logs; tfjob describe ",
                              job.metadata.name, " shows why");
  }
  return printed > 0 ? OkStatus() : FailedPrecondition(job.key(), ": there is no log yet");
}

// --- Together ----------------------------------------------------------------------------------

class Follower {
 public:
  Follower(const LogsOptions& options, const VerbContext& context, const api::TFJob& job)
      : options_(options), context_(context), job_(job), printer_(context.console) {}
  ~Follower() {
    stop_.Request(SIGTERM);  // ends the streams, whose destructors join their threads
  }

  // Prints the logs until the job and all its logs have ended. Returns errors worded for users.
  Status Run();

 private:
  Status Subscribe();
  // Returns whether the job has ended or is gone. Reads the job instead of watching it, so that
  // users do not need permission to watch all jobs of the namespace.
  StatusOr<bool> Finished();
  bool Started(const Pod& pod) const;
  // Returns the state of the container's run after `restarts` restarts.
  RunState StateOf(const PodPointer& pod, int32_t restarts);
  Status FollowNew();
  std::string Prefix(const Pod& pod) const;
  PodPointer Newest(const PodPointer& pod);

  const LogsOptions& options_;
  const VerbContext& context_;
  const api::TFJob& job_;
  LogPrinter printer_;
  StopSource stop_;
  std::unique_ptr<view::ObjectCache> pods_;
  std::set<std::pair<std::string, int32_t>> followed_;  // pod UID, restarts
  bool listed_ = false;           // the containers of the initial list are being followed
  bool several_ = false;          // more than one replica is selected
  std::list<LogStream> streams_;  // declared last, so it is destroyed before what it uses
};

StatusOr<bool> Follower::Finished() {
  const client::Key key{objects::Kind::kTFJob, job_.metadata.name_space, job_.metadata.name};
  const auto object = context_.cluster.client().Get(key);
  if (absl::IsNotFound(object.status())) return true;
  if (absl::IsPermissionDenied(object.status()) || absl::IsUnauthenticated(object.status())) {
    return Explain(object.status(), context_.cluster, client::ToString(key));
  }
  if (!object.ok()) return false;
  const StoredJob now = ReadStoredJob(*object);
  return now.job.metadata.uid != job_.metadata.uid || api::IsFinished(now.job.status);
}

PodPointer Follower::Newest(const PodPointer& pod) {
  const auto found =
      pods_->Find({objects::Kind::kPod, pod->metadata.name_space, pod->metadata.name});
  if (!found) return nullptr;
  const auto& now = std::get<PodPointer>(*found);
  return now->metadata.uid == pod->metadata.uid ? now : nullptr;
}

bool Follower::Started(const Pod& pod) const {
  const ContainerStatus* container = pod.container(options_.container);
  return container != nullptr && container->state != ContainerStatus::State::kWaiting;
}

RunState Follower::StateOf(const PodPointer& pod, int32_t restarts) {
  const PodPointer now = Newest(pod);
  if (now == nullptr) return RunState::kGone;
  const ContainerStatus* container = now->container(options_.container);
  if (container == nullptr) return RunState::kEnded;
  if (container->restart_count == restarts) {
    const bool running = container->state == ContainerStatus::State::kRunning;
    return running ? RunState::kRunning : RunState::kEnded;
  }
  return container->restart_count == restarts + 1 ? RunState::kReplaced : RunState::kGone;
}

std::string Follower::Prefix(const Pod& pod) const {
  return several_ ? pod.metadata.name : "";
}

Status Follower::FollowNew() {
  for (const auto& [key, object] : pods_->Objects()) {
    const auto& pod = std::get<PodPointer>(object);
    if (!IsChosen(options_, *pod, job_) || !Started(*pod)) continue;
    const int32_t restarts = pod->container(options_.container)->restart_count;
    if (!followed_.insert({pod->metadata.uid, restarts}).second) continue;
    if (streams_.size() >= kMaximumStreams) {
      return ResourceExhausted("at most ", kMaximumStreams,
                               " logs are followed at once; choose some with --replica");
    }
    LogRequest request = RequestFor(options_, *pod);
    if (listed_) {  // the container started after the initial list, so all of its log is new
      request.tail_lines.reset();
      request.since.reset();
    }
    streams_.emplace_back(
        context_.cluster.logs(), std::move(request), Prefix(*pod), printer_,
        [this, pod, restarts] { return StateOf(pod, restarts); }, stop_);
  }
  return OkStatus();
}

Status Follower::Subscribe() {
  // A watch keeps retrying a list that the server refuses. List once here to get the error.
  RETURN_IF_ERROR(PodsOf(context_.cluster, job_).status());
  auto pods = view::ObjectCache::Create(context_.cluster.client(), objects::Kind::kPod,
                                        job_.metadata.name_space,
                                        {{api::kJobNameLabel, job_.metadata.name}});
  if (!pods.ok()) return Explain(pods.status(), context_.cluster, "the pods");
  pods_ = *std::move(pods);
  return OkStatus();
}

Status Follower::Run() {
  // How often to read the job, in units of kPollInterval.
  constexpr int kPollsPerRead = 5;
  RETURN_IF_ERROR(Subscribe());
  int64_t chosen = 0;
  for (const auto& [type, spec] : job_.spec.replicas) {
    for (int32_t i = 0; i < spec.replicas.value_or(1); ++i) {
      chosen += options_.replicas.Contains({type, i}) ? 1 : 0;
    }
  }
  several_ = chosen > 1;
  int polls = 0;
  bool finished = false;
  do {
    if (printer_.broken()) return OkStatus();
    if (!pods_->AwaitList(kPollInterval)) continue;
    pods_->TakeChanges();  // only the latest states matter
    // The watch of the pods may lag behind the job that was read. Once the job has finished,
    // continue for as long as between two reads of the job, so that the watch can report the job's
    // last pods.
    const bool ending = finished;
    const bool reads = polls++ % kPollsPerRead == 0;
    if (reads && !finished) {
      ASSIGN_OR_RETURN(finished, Finished());
    }
    RETURN_IF_ERROR(FollowNew());
    listed_ = true;
    std::erase_if(streams_, [](const LogStream& stream) { return stream.done(); });
    if (ending && reads && streams_.empty()) return OkStatus();
  } while (!context_.stop.WaitFor(kPollInterval));
  return OkStatus();
}

}  // namespace

int Logs(const LogsOptions& options, const VerbContext& context) {
  const auto job = GetJob(context.cluster, options.name);
  Status status = job.status();
  if (status.ok() && job->readable.ok()) status = options.replicas.CheckAgainst(job->job);
  if (status.ok() && options.follow) {
    status = Follower(options, context, job->job).Run();
  } else if (status.ok()) {
    status = PrintLogs(options, context, job->job);
  }
  if (status.ok()) return view::kSucceeded;
  view::PrintError(context.console, status);
  return view::kFailed;
}

namespace {

class LogsVerb : public ClusterVerb {
 public:
  LogsVerb() : ClusterVerb("logs", "Print the logs of a TFJob's replicas") {}

  void AddFlags(FlagSet& flags) override {
    AddJobName(flags, options_.name);
    const Flag& follow =
        flags.Switch("-f,--follow", options_.follow, "Follow the logs until the TFJob has ended");
    AddReplicaChoice(flags, options_.replicas);
    flags.Text("-c,--container", options_.container, "Container whose logs are printed")
        .ShowDefault();
    flags
        .Switch("-p,--previous", options_.previous, "Logs from before the containers' last restart")
        .Exclude(follow);
    flags.Switch("--timestamps", options_.timestamps, "Print the timestamp of each line");
    flags.Integer("--tail", options_.tail_lines, "Only this many last lines of each log")
        .AtLeast(0);
    flags.TimeSpan("--since", options_.since, "Only lines newer than this duration, such as 10m");
  }
  int RunOn(const VerbContext& context) override { return Logs(options_, context); }

 private:
  LogsOptions options_;
};

}  // namespace

std::unique_ptr<ClusterVerb> MakeLogsVerb() {
  return std::make_unique<LogsVerb>();
}

}  // namespace tfjob::cli
