#include "operator/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "operator/metrics/process.h"
#include "operator/metrics/transitions.h"
#include "runtime/base/mutex.h"

namespace tfjob::metrics {
namespace {

using objects::Kind;
using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

constexpr char kController[] = "tfjob-controller";

// How long the statistics of the control loop are reused.
constexpr Duration kFresh = 1s;

// The same buckets as in controller-runtime.
const Buckets kReconcileBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                                   0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1,    1.25, 1.5,
                                   1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,    7,
                                   8,     9,    10,    15,   20,  25,   30,  40,   50,   60};
// The same buckets as in client-go: 10 ns to 10 s.
const Buckets kQueueBuckets = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};
// The same buckets as in client-go.
const Buckets kRequestBuckets = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
const Buckets kSizeBuckets = {64,    256,    512,     1024,    4096,    16384,
                              65536, 262144, 1048576, 4194304, 16777216};
const Buckets kPhaseBuckets = {1,   2,    5,    10,   20,    30,    60,    120,    300,
                               600, 1800, 3600, 7200, 14400, 43200, 86400, 259200, 604800};

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string CodeText(int code) {
  return code == 0 ? "<error>" : StrCat(code);
}

}  // namespace

struct Metrics::Families {
  explicit Families(Clock& that) : clock(that) {}

  // Registers a family with a single series, which has the constant labels `labels`.
  Counter& OneCounter(const char* name, const char* help, const prometheus::Labels& labels = {}) {
    return BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
  }
  Gauge& OneGauge(const char* name, const char* help, const prometheus::Labels& labels = {}) {
    return BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }
  Histogram& OneHistogram(const char* name, const char* help, const prometheus::Labels& labels,
                          const Buckets& buckets) {
    return BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
  }
  Family<Counter>& JobCounter(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help).Register(registry);
  }
  Counter* ResultCounter(const char* result) {
    return &reconciles.Add({{"controller", kController}, {"result", result}});
  }
  static void Count(Family<Counter>& family, const std::string& name_space) {
    family.Add({{"job_namespace", name_space}, {"framework", "tensorflow"}}).Increment();
  }

  // Contains the series for one HTTP method on one server.
  struct Verb {
    Histogram* time = nullptr;
    Histogram* limiter_time = nullptr;
    Histogram* request_size = nullptr;
    Histogram* response_size = nullptr;
    std::map<int, Counter*> by_code;
  };
  Verb& VerbOf(const std::string& method, const std::string& host)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Counter* EventCounter(const char* result) { return &event_results.Add({{"result", result}}); }

  // Updates the gauges whose values the source provides.
  void Refresh();
  void RefreshEvents();
  void RefreshProcess();
  void Show(const control::Numbers& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Clock& clock;
  prometheus::Registry registry;

  Family<Counter>& created = JobCounter("training_operator_jobs_created_total", "TFJobs created");
  Family<Counter>& deleted = JobCounter("training_operator_jobs_deleted_total",
                                        "TFJobs deleted because their time to live was over");
  Family<Counter>& successful =
      JobCounter("training_operator_jobs_successful_total", "TFJobs that succeeded");
  Family<Counter>& failed = JobCounter("training_operator_jobs_failed_total", "TFJobs that failed");
  Family<Counter>& restarted =
      JobCounter("training_operator_jobs_restarted_total", "Restarts of replicas of TFJobs");

  Counter& created_pods = OneCounter("created_pods_total", "Pods created");
  Counter& deleted_pods = OneCounter("deleted_pods_total", "Pods deleted");
  Counter& failed_pods = OneCounter("failed_pods_total", "Pods that failed");
  Counter& created_services = OneCounter("succeeded_service_creation_total", "Services created");
  Counter& failed_services =
      OneCounter("failed_service_creation_total", "Services that could not be created");
  Counter& created_pod_groups = OneCounter("created_pod_groups_total", "Pod groups created");
  Counter& deleted_pod_groups = OneCounter("deleted_pod_groups_total", "Pod groups deleted");

  Family<Gauge>& jobs =
      BuildGauge().Name("tfjob_jobs").Help("TFJobs by newest true condition").Register(registry);
  Gauge& cached_pods = OneGauge("tfjob_cached_objects", "Cached objects", {{"kind", "Pod"}});
  Gauge& cached_services =
      OneGauge("tfjob_cached_objects", "Cached objects", {{"kind", "Service"}});
  Histogram& pending = OneHistogram("tfjob_job_phase_duration_seconds",
                                    "Duration of job phases: pending, from creation or resumption "
                                    "to Running; running, from startTime to the end",
                                    {{"phase", "pending"}}, kPhaseBuckets);
  Histogram& running =
      OneHistogram("tfjob_job_phase_duration_seconds", "", {{"phase", "running"}}, kPhaseBuckets);

  Family<Counter>& event_results = BuildCounter()
                                       .Name("tfjob_events_total")
                                       .Help("Events that the operator recorded, by result")
                                       .Register(registry);
  Gauge& events_waiting = OneGauge("tfjob_events_waiting", "Events waiting to be sent");
  const std::vector<std::pair<Counter*, int64_t events::Counters::*>> by_fate = {
      {EventCounter("sent"), &events::Counters::sent},
      {EventCounter("merged"), &events::Counters::merged},
      {EventCounter("filtered"), &events::Counters::filtered},
      {EventCounter("dropped"), &events::Counters::dropped},
      {EventCounter("dropped_routine"), &events::Counters::dropped_routine},
      {EventCounter("refused"), &events::Counters::refused},
      {EventCounter("expired"), &events::Counters::expired},
      {EventCounter("retried"), &events::Counters::retried}};

  Family<Counter>& reconciles = BuildCounter()
                                    .Name("controller_runtime_reconcile_total")
                                    .Help("Reconciles, by result")
                                    .Register(registry);
  // One counter per result, indexed by control::Result.
  std::array<Counter*, 4> by_result = {ResultCounter("success"), ResultCounter("error"),
                                       ResultCounter("requeue"), ResultCounter("requeue_after")};
  Counter& reconcile_errors =
      OneCounter("controller_runtime_reconcile_errors_total", "Reconciles that ended with an error",
                 {{"controller", kController}});
  // These series exist for dashboards of controller-runtime, and are always 0: every error is
  // retried, no reconcile throws an exception, and reconciles have no time limit.
  Counter& terminal_errors =
      OneCounter("controller_runtime_terminal_reconcile_errors_total",
                 "Errors that are not retried: always 0", {{"controller", kController}});
  Counter& panics = OneCounter("controller_runtime_reconcile_panics_total", "Panics: always 0",
                               {{"controller", kController}});
  Counter& timeouts = OneCounter("controller_runtime_reconcile_timeouts_total",
                                 "Timed out reconciles: always 0", {{"controller", kController}});
  Histogram& reconcile_time =
      OneHistogram("controller_runtime_reconcile_time_seconds", "Duration of reconciles",
                   {{"controller", kController}}, kReconcileBuckets);
  Gauge& workers = OneGauge("controller_runtime_max_concurrent_reconciles", "Reconcile threads",
                            {{"controller", kController}});
  Gauge& active_workers = OneGauge("controller_runtime_active_workers", "Reconcile threads at work",
                                   {{"controller", kController}});

  const prometheus::Labels queue = {{"controller", kController}, {"name", kController}};
  Gauge& depth = OneGauge("workqueue_depth", "Keys waiting", queue);
  Counter& adds = OneCounter("workqueue_adds_total", "Keys added", queue);
  Counter& retries = OneCounter("workqueue_retries_total", "Keys added after a failure", queue);
  Histogram& waited = OneHistogram("workqueue_queue_duration_seconds", "Time that keys waited",
                                   queue, kQueueBuckets);
  Histogram& worked = OneHistogram("workqueue_work_duration_seconds",
                                   "Time that keys were worked on", queue, kQueueBuckets);
  Gauge& unfinished = OneGauge("workqueue_unfinished_work_seconds",
                               "Total time spent so far on the keys in work", queue);
  Gauge& longest = OneGauge("workqueue_longest_running_processor_seconds",
                            "Longest time spent so far on a key in work", queue);

  Family<Counter>& requests = BuildCounter()
                                  .Name("rest_client_requests_total")
                                  .Help("Calls to the API server, by method, code and host")
                                  .Register(registry);
  Family<Counter>& request_retries = BuildCounter()
                                         .Name("rest_client_request_retries_total")
                                         .Help("Calls that were retried")
                                         .Register(registry);
  Family<Histogram>& request_time = BuildHistogram()
                                        .Name("rest_client_request_duration_seconds")
                                        .Help("Duration of calls")
                                        .Register(registry);
  Family<Histogram>& limiter_time = BuildHistogram()
                                        .Name("rest_client_rate_limiter_duration_seconds")
                                        .Help("Time that calls waited for flow control")
                                        .Register(registry);
  Family<Histogram>& request_size = BuildHistogram()
                                        .Name("rest_client_request_size_bytes")
                                        .Help("Size of request bodies")
                                        .Register(registry);
  Family<Histogram>& response_size = BuildHistogram()
                                         .Name("rest_client_response_size_bytes")
                                         .Help("Size of response bodies")
                                         .Register(registry);

  Family<Gauge>& leader = BuildGauge()
                              .Name("leader_election_master_status")
                              .Help("1 while this process holds the lease")
                              .Register(registry);
  Family<Counter>& slow_renewals = BuildCounter()
                                       .Name("leader_election_slowpath_total")
                                       .Help("Renewals of the lease that had to read it first")
                                       .Register(registry);

  Counter& cpu = OneCounter("process_cpu_seconds_total", "User and system time");
  Gauge& resident = OneGauge("process_resident_memory_bytes", "Resident memory");
  Gauge& virtual_memory = OneGauge("process_virtual_memory_bytes", "Virtual memory");
  Gauge& start_time = OneGauge("process_start_time_seconds", "Start time of the process");
  Gauge& threads = OneGauge("process_threads", "Threads");
  Gauge& open_files = OneGauge("process_open_fds", "Open files");
  Gauge& max_files = OneGauge("process_max_fds", "Maximum number of open files");

  Mutex refreshing;  // taken before `mutex`
  Mutex mutex;
  std::function<control::Numbers()> source ABSL_GUARDED_BY(mutex);
  std::optional<Duration> asked_at ABSL_GUARDED_BY(mutex);  // when `source` was last called
  std::function<events::Counters()> event_source ABSL_GUARDED_BY(mutex);
  std::map<std::pair<std::string, std::string>, Gauge*> states ABSL_GUARDED_BY(mutex);
  std::map<std::pair<std::string, std::string>, Verb> verbs ABSL_GUARDED_BY(mutex);
};

Metrics::Families::Verb& Metrics::Families::VerbOf(const std::string& method,
                                                   const std::string& host) {
  Verb& verb = verbs[{method, host}];
  if (verb.time != nullptr) return verb;
  const prometheus::Labels labels = {{"verb", method}, {"host", host}};
  verb.time = &request_time.Add(labels, kRequestBuckets);
  verb.limiter_time = &limiter_time.Add(labels, kRequestBuckets);
  verb.request_size = &request_size.Add(labels, kSizeBuckets);
  verb.response_size = &response_size.Add(labels, kSizeBuckets);
  return verb;
}

Metrics::Metrics(const std::string& version, Clock& clock)
    : families_(std::make_unique<Families>(clock)) {
  families_->OneGauge("tfjob_operator_build_info", "1", {{"version", version}}).Set(1);
}

Metrics::~Metrics() = default;

void Metrics::OnStatus(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                       const api::TFJobStatus& after) {
  const Transitions found = Compare(job, before, after);
  Families& all = *families_;
  if (found.created) Families::Count(all.created, job.name_space);
  if (found.restarted) Families::Count(all.restarted, job.name_space);
  if (found.succeeded) Families::Count(all.successful, job.name_space);
  if (found.failed) Families::Count(all.failed, job.name_space);
  if (found.failed_pods > 0) all.failed_pods.Increment(found.failed_pods);
  if (found.pending) all.pending.Observe(Seconds(*found.pending));
  if (found.running) all.running.Observe(Seconds(*found.running));
}

void Metrics::OnCreated(Kind kind, const std::string&) {
  if (kind == Kind::kPod) families_->created_pods.Increment();
  if (kind == Kind::kService) families_->created_services.Increment();
  if (objects::IsPodGroup(kind)) families_->created_pod_groups.Increment();
}

void Metrics::OnCreateFailed(Kind kind, const std::string&) {
  if (kind == Kind::kService) families_->failed_services.Increment();
}

void Metrics::OnDeleted(Kind kind, const std::string& name_space) {
  if (kind == Kind::kPod) families_->deleted_pods.Increment();
  if (kind == Kind::kTFJob) Families::Count(families_->deleted, name_space);
  if (objects::IsPodGroup(kind)) families_->deleted_pod_groups.Increment();
}

void Metrics::OnReconciled(control::Result result, Duration took) {
  families_->by_result[static_cast<size_t>(result)]->Increment();
  if (result == control::Result::kError) families_->reconcile_errors.Increment();
  families_->reconcile_time.Observe(Seconds(took));
}

void Metrics::OnQueueAdd() {
  families_->adds.Increment();
}
void Metrics::OnQueueGet(Duration waited) {
  families_->waited.Observe(Seconds(waited));
}
void Metrics::OnQueueDone(Duration worked) {
  families_->worked.Observe(Seconds(worked));
}
void Metrics::OnQueueRetry() {
  families_->retries.Increment();
}

// Caches the series, because finding a series in its family costs more than incrementing it, and
// calls are frequent.
void Metrics::OnCall(const kube::RestCall& call) {
  Families& all = *families_;
  const std::string method(call.method);
  const std::string host(call.host);
  Families::Verb* verb;
  Counter* requests;
  {
    MutexLock lock(all.mutex);
    verb = &all.VerbOf(method, host);
    Counter*& counted = verb->by_code[call.code];
    if (counted == nullptr) {
      counted =
          &all.requests.Add({{"code", CodeText(call.code)}, {"method", method}, {"host", host}});
    }
    requests = counted;
  }
  requests->Increment();
  if (call.retry) {
    all.request_retries.Add({{"code", CodeText(call.code)}, {"verb", method}, {"host", host}})
        .Increment();
  }
  verb->time->Observe(Seconds(call.duration));
  verb->limiter_time->Observe(Seconds(call.limiter_wait));
  verb->request_size->Observe(static_cast<double>(call.request_bytes));
  verb->response_size->Observe(static_cast<double>(call.response_bytes));
}

void Metrics::SetLeader(const std::string& lease, bool leads) {
  families_->leader.Add({{"name", lease}}).Set(leads ? 1 : 0);
  families_->slow_renewals.Add({{"name", lease}});
}

void Metrics::OnSlowRenewal(const std::string& lease) {
  families_->slow_renewals.Add({{"name", lease}}).Increment();
}

void Metrics::SetWorkers(int workers) {
  families_->workers.Set(workers);
}

void Metrics::SetSource(std::function<control::Numbers()> source) {
  MutexLock lock(families_->mutex);
  families_->source = std::move(source);
  families_->asked_at.reset();
}

void Metrics::SetEventSource(std::function<events::Counters()> source) {
  MutexLock lock(families_->mutex);
  families_->event_source = std::move(source);
}

void Metrics::Families::Refresh() {
  // Concurrent reads wait here until the first one has queried the source.
  MutexLock alone(refreshing);
  std::function<control::Numbers()> ask;
  {
    MutexLock lock(mutex);
    const Duration now = clock.Monotonic();
    if (asked_at && now - *asked_at < kFresh) return;
    asked_at = now;
    ask = source;
  }
  // Do not hold `mutex` here: the source waits for the caches and walks through them, and OnCall
  // must not have to wait for this.
  const control::Numbers now = ask ? ask() : control::Numbers();
  MutexLock lock(mutex);
  Show(now);
}

void Metrics::Families::Show(const control::Numbers& now) {
  cached_pods.Set(static_cast<double>(now.cache.pods));
  cached_services.Set(static_cast<double>(now.cache.services));
  depth.Set(static_cast<double>(now.queue.depth));
  active_workers.Set(static_cast<double>(now.queue.working));
  unfinished.Set(Seconds(now.queue.unfinished));
  longest.Set(Seconds(now.queue.longest));
  // If a state no longer has any jobs, set its gauge to 0 now and remove the gauge at the next
  // read.
  std::erase_if(states, [&](const auto& state) {
    if (now.cache.jobs.contains(state.first)) return false;
    const bool shown_as_none = state.second->Value() == 0;
    state.second->Set(0);
    if (shown_as_none) jobs.Remove(state.second);
    return shown_as_none;
  });
  for (const auto& [state, count] : now.cache.jobs) {
    Gauge*& gauge = states[state];
    if (gauge == nullptr) {
      gauge = &jobs.Add({{"job_namespace", state.first}, {"state", state.second}});
    }
    gauge->Set(static_cast<double>(count));
  }
}

void Metrics::Families::RefreshEvents() {
  std::function<events::Counters()> ask;
  {
    MutexLock lock(mutex);
    ask = event_source;
  }
  if (!ask) return;
  const events::Counters now = ask();
  MutexLock lock(mutex);
  for (const auto& [counter, member] : by_fate) {
    counter->Increment(std::max(0.0, static_cast<double>(now.*member) - counter->Value()));
  }
  events_waiting.Set(static_cast<double>(now.waiting));
}

void Metrics::Families::RefreshProcess() {
  const ProcessNumbers now = ReadProcess();
  cpu.Increment(std::max(0.0, now.cpu_seconds - cpu.Value()));
  resident.Set(now.resident_bytes);
  virtual_memory.Set(now.virtual_bytes);
  start_time.Set(now.start_time_seconds);
  threads.Set(now.threads);
  open_files.Set(now.open_files);
  max_files.Set(now.max_files);
}

std::string Metrics::Text() {
  families_->Refresh();
  families_->RefreshEvents();
  families_->RefreshProcess();
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families_->registry.Collect());
  return std::move(text).str();
}

}  // namespace tfjob::metrics
