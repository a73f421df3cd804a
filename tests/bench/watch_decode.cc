// Simulates watching a large cluster: a streaming list of very many pods, followed by an update of
// every pod, passes through the reflector to the cache of the control loop. Measures how fast
// events are decoded, and how much memory the pods need.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <string>

#include "operator/control/cache/cache.h"
#include "operator/kube/client/kube_client.h"
#include "runtime/base/log.h"
#include "runtime/base/mutex.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

constexpr int kPodsPerJob = 6;
constexpr size_t kPieceBytes = 64 << 10;

// Generates events about pods in the form of Kubernetes 1.36, including managed fields. An event
// has about 5 KB.
class PodEvents {
 public:
  std::string Make(std::string_view type, int pod, int version, std::string_view phase) const {
    const std::string job = StrCat("mnist-", pod / kPodsPerJob);
    const std::string index = StrCat(pod % kPodsPerJob);
    const std::string name = StrCat(job, "-worker-", index);
    const std::string condition = StrCat(
        R"("status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-21T09:30:02Z"})");
    return StrCat(
        R"({"type":")", type, R"(","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":")",
        name, R"(","namespace":"team-a","uid":"7f0c5d4e-38a2-4b6f-9d1e-)", 100000000000 + pod,
        R"(","resourceVersion":")", version,
        R"(","generation":1,"creationTimestamp":"2026-11-21T09:30:00Z","labels":{)",
        R"("training.kubeflow.org/job-name":")", job,
        R"(","training.kubeflow.org/job-role":"worker",)",
        R"("training.kubeflow.org/operator-name":"tfjob-controller",)",
        R"("training.kubeflow.org/replica-index":")", index,
        R"(","training.kubeflow.org/replica-type":"worker","tfjob.dev/attempt":"0"},)",
        R"("ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":")", job,
        R"(","uid":"c2f1a7b0-5d1c-4a57-8f4e-)", 100000000000 + pod / kPodsPerJob,
        R"(","controller":true,"blockOwnerDeletion":true}],"managedFields":[)", managed_, "]},",
        spec_, R"("status":{"phase":")", phase, R"(","conditions":[)",
        R"({"type":"PodReadyToStartContainers",)", condition, R"(,{"type":"Initialized",)",
        condition, R"(,{"type":"Ready",)", condition, R"(,{"type":"ContainersReady",)", condition,
        R"(,{"type":"PodScheduled",)", condition,
        R"(],"hostIP":"10.0.0.7","hostIPs":[{"ip":"10.0.0.7"}],"podIP":"10.244.17.9",)",
        R"("podIPs":[{"ip":"10.244.17.9"}],"startTime":"2026-11-21T09:30:01Z",)",
        R"("containerStatuses":[{"name":"tensorflow","state":{"running":{"startedAt":)",
        R"("2026-11-21T09:30:02Z"}},"lastState":{},"ready":true,"restartCount":0,"image":)",
        R"("example.com/models/mnist:1.0","imageID":"example.com/models/mnist@sha256:)",
        std::string(64, 'a'), R"(","containerID":"containerd://)", std::string(64, 'b'),
        R"(","started":true}],"qosClass":"BestEffort"}}})", "\n");
  }

 private:
  static std::string Fields(int count) {
    std::string fields;
    for (int i = 0; i < count; ++i) {
      fields +=
          StrCat(i == 0 ? "" : ",", R"("f:field-of-the-spec-)", i, R"(":{".":{},"f:name":{}})");
    }
    return fields;
  }
  const std::string managed_ =
      StrCat(R"({"manager":"tfjob-operator","operation":"Update","apiVersion":"v1","time":)",
             R"("2026-11-21T09:30:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{)",
             Fields(12), "},\"f:spec\":{", Fields(18),
             R"(}}},{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":)",
             R"("2026-11-21T09:30:02Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{)",
             Fields(10), R"(}},"subresource":"status"})");
  const std::string spec_ = StrCat(
      R"("spec":{"volumes":[{"name":"kube-api-access","projected":{"sources":[{)",
      R"("serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}],"defaultMode":420}}],)",
      R"("containers":[{"name":"tensorflow","image":"example.com/models/mnist:1.0","command":[)",
      R"("python","/opt/model/train.py","--data_dir=/data","--batch_size=128"],"ports":[{"name":)",
      R"("tfjob-port","containerPort":2222,"protocol":"TCP"}],"env":[{"name":"TF_CONFIG","value":")",
      std::string(600, 'x'),
      R"("}],"resources":{"limits":{"cpu":"2","memory":"4Gi"}},"terminationMessagePath":)",
      R"("/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}],)",
      R"("restartPolicy":"OnFailure","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)",
      R"("serviceAccountName":"default","nodeName":"node-17","securityContext":{},"schedulerName":)",
      R"("default-scheduler","priority":0,"enableServiceLinks":true,"preemptionPolicy":)",
      R"("PreemptLowerPriority"},)");
};

std::string Bookmark(int version) {
  return StrCat(R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":")",
                version, R"(","annotations":{"k8s.io/initial-events-end":"true"}}}})", "\n");
}

// Delivers the list, followed by an update of every pod, and then no more events.
class EventStream : public kube::HttpStream {
 public:
  explicit EventStream(int pods) : pods_(pods) {}

  StatusOr<kube::HttpResponse> Head(Duration) override {
    kube::HttpResponse head;
    head.code = 200;
    return head;
  }
  StatusOr<std::string> Read(Duration timeout) override {
    if (next_ > 2 * pods_) return Silence(timeout);
    std::string piece;
    piece.reserve(kPieceBytes + 16384);
    while (piece.size() < kPieceBytes && next_ <= 2 * pods_) {
      piece += next_ == pods_ ? Bookmark(pods_) : Event(next_);
      ++next_;
    }
    return piece;
  }
  void Cancel() override {
    MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }

 private:
  std::string Event(int number) const {
    if (number < pods_) return events_.Make("ADDED", number, number + 1, "Pending");
    return events_.Make("MODIFIED", number - pods_ - 1, number, "Running");
  }
  StatusOr<std::string> Silence(Duration timeout) {
    MutexLock lock(mutex_);
    if (!cancelled_) changed_.WaitFor(mutex_, timeout);
    if (cancelled_) return Cancelled("cancelled");
    return DeadlineExceeded("silent");
  }

  const int pods_;
  const PodEvents events_;
  int next_ = 0;
  Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

class EventServer : public kube::Transport {
 public:
  explicit EventServer(int pods) : pods_(pods) {}
  StatusOr<kube::HttpResponse> Send(kube::HttpRequest, const kube::RequestCredentials&,
                                    Duration) override {
    return Unimplemented("only streams");
  }
  StatusOr<std::unique_ptr<kube::HttpStream>> Open(kube::HttpRequest,
                                                   const kube::RequestCredentials&) override {
    return std::unique_ptr<kube::HttpStream>(new EventStream(pods_));
  }
  void Stop() override {}

 private:
  const int pods_;
};

class Nobody : public kube::Credentials {
 public:
  StatusOr<kube::RequestCredentials> Get() override { return kube::RequestCredentials(); }
  void Unauthorized(const kube::RequestCredentials&) override {}
};

// Passes events on to the cache, and allows the caller to wait until all events have arrived.
class CountingSink : public client::WatchSink {
 public:
  explicit CountingSink(client::WatchSink& inner) : inner_(inner) {}

  void OnReplaced(std::vector<client::Object> objects) override {
    inner_.OnReplaced(std::move(objects));
    MutexLock lock(mutex_);
    listed_ = true;
    changed_.NotifyAll();
  }
  void OnUpserted(client::Object object) override {
    inner_.OnUpserted(std::move(object));
    MutexLock lock(mutex_);
    ++changes_;
    changed_.NotifyAll();
  }
  void OnDeleted(client::Object object) override { inner_.OnDeleted(std::move(object)); }

  void AwaitList() {
    MutexLock lock(mutex_);
    while (!listed_) changed_.Wait(mutex_);
  }
  void AwaitChanges(int count) {
    MutexLock lock(mutex_);
    while (changes_ < count) changed_.Wait(mutex_);
  }

 private:
  client::WatchSink& inner_;
  Mutex mutex_;
  CondVar changed_;
  bool listed_ ABSL_GUARDED_BY(mutex_) = false;
  int changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096 / (1 << 20);
}

// Returns the time that it takes to generate the events. This time is subtracted from the
// measurement.
Times Generation(int pods) {
  const Stopwatch stopwatch;
  EventStream stream(pods);
  for (StatusOr<std::string> piece = stream.Read(Duration(0)); piece.ok();) {
    piece = stream.Read(Duration(0));
  }
  return stopwatch.Elapsed();
}

int Run(int pods) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  mallopt(M_ARENA_MAX, 2);  // like the operator
  const size_t event_bytes = PodEvents().Make("MODIFIED", pods / 2, pods, "Running").size();
  const Times generation = Generation(pods);
  const double start_mb = ResidentMegabytes();
  kube::KubeClient client(std::make_unique<EventServer>(pods), std::make_shared<Nobody>(), {});
  control::Cache cache(RealClock(), [](const std::string&, control::Urgency) {});
  CountingSink sink(cache.AddScope("").pods);

  const Stopwatch stopwatch;
  const auto subscription = client.Subscribe(objects::Kind::kPod, "", {}, sink);
  if (!subscription.ok()) return 1;
  sink.AwaitList();
  const double list_s = stopwatch.Elapsed().wall_s;
  sink.AwaitChanges(pods);
  Times times = stopwatch.Elapsed();
  const double resident_mb = ResidentMegabytes();
  times.wall_s -= generation.wall_s;
  times.cpu_s -= generation.cpu_s;

  const double events = 2.0 * pods;
  Report report("watch-decode");
  report.Add("pods", pods).Add("event_bytes", event_bytes);
  report.Add("events_per_cpu_s", events / times.cpu_s);
  report.Add("mb_per_cpu_s", events * static_cast<double>(event_bytes) / (1 << 20) / times.cpu_s);
  report.Add("list_s", list_s).Add("start_mb", start_mb).Add("resident_mb", resident_mb);
  report.Add("bytes_a_pod", (resident_mb - start_mb) * (1 << 20) / pods);
  report.Print(times);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  int pods = 50000;
  CLI::App app("Decodes a watch of very many pods");
  app.add_option("--pods", pods, "how many")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return tfjob::bench::Run(pods);
}
