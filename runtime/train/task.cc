#include "runtime/train/task.h"

#include <grpcpp/impl/service_type.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "runtime/base/env.h"
#include "runtime/base/thread_pool.h"
#include "runtime/progress/service.h"
#include "runtime/rpc/server.h"
#include "runtime/train/log.h"
#include "runtime/train/run_failure_record.h"

namespace tfjob::train {
namespace {

// The longest time by which the chief may start later than the run's other tasks.
constexpr Duration kChiefStarts = 60s;

rpc::Identity IdentityOf(const TaskOptions& options) {
  return {.job_uid = options.job.uid,
          .attempt = options.job.attempt,
          .task_type = options.tf_config.task.type,
          .task_index = options.tf_config.task.index,
          .incarnation = rpc::NewIncarnation(),
          .run = options.order.number};
}

// Returns the size of the thread pool, which does not include the thread that runs programs.
int HelperThreads(const config::TrainingConfig& config) {
  const int64_t threads = config.threads > 0 ? config.threads : AvailableProcessors();
  return static_cast<int>(std::max<int64_t>(threads - 1, 0));
}

void DeleteService(grpc::Service* service) {
  delete service;
}

// Returns the host and port to listen on. A loopback address in `address` is kept. Otherwise, the
// host is 0.0.0.0, because `address` usually names the pod's service, on which the pod cannot
// listen.
StatusOr<std::pair<std::string, int>> ListeningPlace(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return InvalidArgument("the address '", address, "': expected host:port");
  }
  const std::string host = address.substr(0, colon);
  return std::make_pair(host.starts_with("127.") ? host : std::string("0.0.0.0"), port);
}

}  // namespace

TaskContext::TaskContext(TaskOptions options, const StopSource& stop, Clock& clock)
    : options_(std::move(options)),
      identity_(IdentityOf(options_)),
      stop_(stop),
      clock_(clock),
      start_(clock.Now()),
      board_(cluster::ToString(options_.tf_config.task)),
      progress_(progress::MakeProgressService([this] { return board_.Get(); }).release(),
                DeleteService) {
  const int helpers = HelperThreads(options_.config);
  if (helpers > 0) pool_ = std::make_unique<ThreadPool>("compute", helpers);
  board_.Update([this](progress::Progress& p) { ShowEarlierRuns(p); });
}

TaskContext::~TaskContext() = default;

void TaskContext::ShowEarlierRuns(progress::Progress& progress) const {
  RunMark run{identity_.job_uid, identity_.attempt, {}, 0};
  for (const int64_t step : order().earlier_ends) {
    progress.earlier_runs.push_back({.step = step, .run = RunFingerprint(run), .failure = ""});
    ++run.number;
  }
}

RunMark TaskContext::run() const {
  const bool settled = clock_.Now() - start_ >= kChiefStarts;
  return {identity_.job_uid, identity_.attempt, settled ? Time() : start_, identity_.run};
}

ProfileOptions TaskContext::profile() const {
  ProfileOptions profile = options_.profile;
  if (profile.file.empty()) {
    const cluster::Task& task = options_.tf_config.task;
    profile.file = StrCat(config().model_dir, "/profile/", task.type, "-", task.index, ".json");
  }
  return profile;
}

StatusOr<exec::Device> TaskContext::device() {
  const std::string name =
      options_.device.empty() ? std::string(Name(config().device)) : options_.device;
  const int rank = cluster::TrainingRank(options_.tf_config, options_.tf_config.task);
  StatusOr<exec::Device> device =
      exec::DeviceByName(name, pool(),
                         {.process = std::max(rank, 0),
                          .memory_fraction = config().gpu.memory_fraction,
                          .allow_tf32 = config().gpu.allow_tf32});
  if (!device.ok()) return Annotate(device.status(), "device");
  if (!std::exchange(device_logged_, true)) {
    const std::string reason =
        device->reason.empty() ? StrCat("device: ", name, " was asked for") : device->reason;
    kTrainLog.Info("the device that computes", {{"device", device->name}, {"reason", reason}});
  }
  return device;
}

StatusOr<std::unique_ptr<rpc::Server>> TaskContext::Serve(
    std::vector<std::pair<std::string, rpc::StreamHandler*>> streams, rpc::DataHandler* on_data) {
  const std::string& clustered = options_.tf_config.cluster.address(options_.tf_config.task);
  const std::string& address = clustered.empty() ? options_.lone_address : clustered;
  if (address.empty()) return std::unique_ptr<rpc::Server>();
  ASSIGN_OR_RETURN(auto place, ListeningPlace(address));
  if (!clustered.empty() && !options_.credentials.key) {
    kTrainLog.Warning(
        "TFJOB_KEY is not set: whoever reaches this task's port can take part in the job",
        {{"address", address}});
  }
  return rpc::Server::Start({.host = place.first,
                             .port = place.second,
                             .identity = identity_,
                             .credentials = options_.credentials,
                             .services = {progress_.get()},
                             .streams = std::move(streams),
                             .on_data = on_data});
}

namespace {

void WarnOfProfile(const TaskContext& context) {
  if (context.profile().last > 0)
    kTrainLog.Warning("this task takes no training steps, so it writes no profile");
}

}  // namespace

Status RunTask(TaskContext& context, RunGuest* guest) {
  RETURN_IF_ERROR(RecordedFailure(context));
  switch (cluster::RoleOf(context.tf_config())) {
    case cluster::Role::kParameterServer:
      WarnOfProfile(context);
      return RunParameterServer(context);
    case cluster::Role::kEvaluator:
      WarnOfProfile(context);
      return RunEvaluator(context);
    case cluster::Role::kChief:
    case cluster::Role::kWorker:
      break;
  }
  return RunTraining(context, guest);
}

}  // namespace tfjob::train
