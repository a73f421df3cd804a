// Runs TFJobs on the in-memory store, where a fake kubelet immediately sets each pod to Running.
// Measures the time until all jobs are Running, and the resident memory minus the bytes of the
// store. The remaining memory is that of the control loop with its caches and queues, the fake
// kubelet, the libraries and the allocator.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "operator/control/manager.h"
#include "operator/local/store/store.h"
#include "operator/objects/pod.h"
#include "runtime/base/log.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using objects::Kind;

constexpr auto kDeadline = 120s;

struct Load {
  int jobs = 1000;
  int workers = 4;
  int parameter_servers = 2;
};

// Sets every pod to Running as soon as it is Pending.
class FakeKubelet : public client::WatchSink {
 public:
  explicit FakeKubelet(client::Client& client) : client_(client), thread_([this] { Serve(); }) {}
  ~FakeKubelet() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }

  void OnReplaced(std::vector<client::Object> objects) override {
    for (client::Object& object : objects) OnUpserted(std::move(object));
  }
  void OnUpserted(client::Object object) override {
    auto pod = std::get<std::shared_ptr<const objects::Pod>>(std::move(object));
    if (pod->phase != objects::PodPhase::kPending) return;
    MutexLock lock(mutex_);
    pending_.push_back(std::move(pod));
    changed_.NotifyAll();
  }
  void OnDeleted(client::Object) override {}

 private:
  void Serve() {
    while (true) {
      std::shared_ptr<const objects::Pod> pod;
      {
        MutexLock lock(mutex_);
        while (pending_.empty() && !stopping_) changed_.Wait(mutex_);
        if (stopping_) return;
        pod = std::move(pending_.front());
        pending_.pop_front();
      }
      Start(*pod);
    }
  }

  void Start(const objects::Pod& pending) {
    objects::Pod pod;
    pod.phase = objects::PodPhase::kRunning;
    pod.start_time = TruncateToSeconds(RealClock().Now());
    pod.pod_ip = "10.0.0.1";
    pod.host_ip = "10.0.0.2";
    objects::ContainerStatus& container = pod.containers.emplace_back();
    container.name = "tensorflow";
    container.state = objects::ContainerStatus::State::kRunning;
    container.ready = true;
    container.started_at = pod.start_time;
    Json status = objects::StatusToJson(pod);
    status["metadata"] = {{"name", pending.metadata.name},
                          {"namespace", pending.metadata.name_space}};
    client_.UpdateStatus(Kind::kPod, status).IgnoreError();
  }

  client::Client& client_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<const objects::Pod>> pending_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

bool IsRunning(const Json& job) {
  const auto conditions = JsonField(job)["status"]["conditions"].Elements();
  if (!conditions.ok() || conditions->empty()) return false;
  return conditions->back()["type"].StringOr("").value_or("") == "Running";
}

// Waits until a given number of jobs are running.
class JobWatch : public client::WatchSink {
 public:
  void OnReplaced(std::vector<client::Object> objects) override {
    for (client::Object& object : objects) OnUpserted(std::move(object));
  }
  void OnUpserted(client::Object object) override {
    const auto job = std::get<std::shared_ptr<const objects::CustomResource>>(std::move(object));
    if (!IsRunning(*job->object)) return;
    MutexLock lock(mutex_);
    running_.insert(job->metadata.name);
    changed_.NotifyAll();
  }
  void OnDeleted(client::Object) override {}

  bool Await(size_t count) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (running_.size() < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::string> running_ ABSL_GUARDED_BY(mutex_);
};

Json PodTemplate() {
  const Json command = {"python", "/opt/model/train.py", "--data_dir=/data", "--batch_size=128"};
  const Json resources = {{"limits", {{"cpu", "2"}, {"memory", "4Gi"}}}};
  const Json mount = {{"name", "data"}, {"mountPath", "/data"}};
  const Json container = {{"name", "tensorflow"},
                          {"image", "example.com/models/mnist:1.0"},
                          {"command", command},
                          {"resources", resources},
                          {"volumeMounts", Json::array({mount})}};
  const Json volume = {{"name", "data"}, {"emptyDir", Json::object()}};
  return {{"spec", {{"containers", Json::array({container})}, {"volumes", Json::array({volume})}}}};
}

Json Job(const Load& load, int index) {
  const auto replicas = [](int count) -> Json {
    return {{"replicas", count}, {"restartPolicy", "OnFailure"}, {"template", PodTemplate()}};
  };
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"name", StrCat("mnist-", index)}, {"namespace", "bench"}}},
          {"spec",
           {{"tfReplicaSpecs",
             {{"PS", replicas(load.parameter_servers)}, {"Worker", replicas(load.workers)}}}}}};
}

// Returns a value of /proc/self/status, such as "VmRSS: 1234 kB", in megabytes.
double StatusMegabytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    double kilobytes = 0;
    if (word == name + ":" && file >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

int Run(const Load& load) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  mallopt(M_ARENA_MAX, 2);  // as in the operator; one heap per thread would use a third more memory
  const double resident_at_start = StatusMegabytes("VmRSS");
  store::StoreOptions store_options;
  store_options.node_name = "node-1";
  store::Store store(store_options);
  FakeKubelet kubelet(store);
  JobWatch watch;
  const auto pod_watch = store.Subscribe(Kind::kPod, "", {}, kubelet);
  const auto job_watch = store.Subscribe(Kind::kTFJob, "", {}, watch);
  control::ManagerOptions options;
  options.workers = 2;
  options.parallel_writes = 0;
  options.settings.address = render::ClusterDns("");
  auto manager = control::Manager::Start(store, options);
  if (!manager.ok() || !pod_watch.ok() || !job_watch.ok()) return 1;

  const Stopwatch stopwatch;
  for (int i = 0; i < load.jobs; ++i) {
    if (!store.Create(Kind::kTFJob, Job(load, i)).ok()) return 1;
  }
  const bool all_running = watch.Await(static_cast<size_t>(load.jobs));
  const Times times = stopwatch.Elapsed();
  const double resident = StatusMegabytes("VmRSS");
  const double held = static_cast<double>(store.Bytes()) / (1 << 20);
  const int pods = load.jobs * (load.workers + load.parameter_servers);
  Report report("control-loop");
  report.Add("jobs", load.jobs).Add("pods", pods).Add("all_running", all_running ? "yes" : "no");
  report.Add("objects_per_s", 2.0 * pods / times.wall_s);  // pods and services
  report.Add("start_mb", resident_at_start).Add("resident_mb", resident);
  report.Add("store_mb", held).Add("beyond_store_mb", resident - held);
  report.Print(times);
  return all_running ? 0 : 1;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  tfjob::bench::Load load;
  CLI::App app("Runs TFJobs on the in-memory store");
  app.add_option("--jobs", load.jobs, "how many TFJobs")->check(CLI::PositiveNumber);
  app.add_option("--workers", load.workers, "of each job")->check(CLI::PositiveNumber);
  app.add_option("--ps", load.parameter_servers, "of each job")->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  return tfjob::bench::Run(load);
}
