#include "operator/metrics/metrics.h"

#include <gtest/gtest.h>

#include <future>

#include "operator/api/conditions.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::metrics {
namespace {

using api::ConditionType;
using objects::Kind;

class MetricsTest : public ::testing::Test {
 protected:
  // Returns whether the text contains exactly this line.
  bool Has(const std::string& line) {
    text_ = "\n" + metrics_.Text();
    return text_.find("\n" + line + "\n") != std::string::npos;
  }

  FakeClock clock_{Time(0s)};
  Metrics metrics_{"1.2.3", clock_};
  std::string text_;
};

TEST_F(MetricsTest, CountsJobsUnderTheReferencesNames) {
  objects::ObjectMeta job;
  job.name_space = "ns";
  api::TFJobStatus created;
  api::SetCondition(created, ConditionType::kCreated, true, "TFJobCreated", "", Time(1s));
  api::TFJobStatus succeeded = created;
  succeeded.start_time = Time(1s);
  succeeded.completion_time = Time(4s);
  api::SetCondition(succeeded, ConditionType::kSucceeded, true, "TFJobSucceeded", "", Time(4s));
  metrics_.OnStatus(job, {}, created);
  metrics_.OnStatus(job, created, succeeded);
  metrics_.OnDeleted(Kind::kTFJob, "ns");
  for (const char* name : {"created", "successful", "deleted"}) {
    EXPECT_TRUE(Has(StrCat("training_operator_jobs_", name,
                           "_total{framework=\"tensorflow\",job_namespace=\"ns\"} 1")) ||
                Has(StrCat("training_operator_jobs_", name,
                           "_total{job_namespace=\"ns\",framework=\"tensorflow\"} 1")))
        << text_;
  }
  EXPECT_TRUE(Has("tfjob_job_phase_duration_seconds_sum{phase=\"running\"} 3")) << text_;
}

TEST_F(MetricsTest, CountsObjects) {
  metrics_.OnCreated(Kind::kPod, "ns");
  metrics_.OnCreated(Kind::kPod, "ns");
  metrics_.OnCreated(Kind::kService, "ns");
  metrics_.OnCreateFailed(Kind::kService, "ns");
  metrics_.OnDeleted(Kind::kPod, "ns");
  EXPECT_TRUE(Has("created_pods_total 2")) << text_;
  EXPECT_TRUE(Has("deleted_pods_total 1")) << text_;
  EXPECT_TRUE(Has("succeeded_service_creation_total 1")) << text_;
  EXPECT_TRUE(Has("failed_service_creation_total 1")) << text_;
}

TEST_F(MetricsTest, ShowsTheStatesOfJobsAndForgetsThoseThatAreEmpty) {
  control::Numbers numbers;
  numbers.cache.jobs[{"ns", "Running"}] = 3;
  numbers.cache.pods = 12;
  numbers.queue.depth = 5;
  metrics_.SetSource([&] { return numbers; });
  EXPECT_TRUE(Has("tfjob_jobs{job_namespace=\"ns\",state=\"Running\"} 3") ||
              Has("tfjob_jobs{state=\"Running\",job_namespace=\"ns\"} 3"))
      << text_;
  EXPECT_TRUE(Has("tfjob_cached_objects{kind=\"Pod\"} 12")) << text_;
  EXPECT_NE(text_.find("workqueue_depth{"), std::string::npos) << text_;
  numbers.cache.jobs.clear();
  clock_.Advance(1s);
  metrics_.Text();
  clock_.Advance(1s);
  EXPECT_EQ(metrics_.Text().find("tfjob_jobs{"), std::string::npos);
  metrics_.SetSource(nullptr);
  EXPECT_TRUE(Has("tfjob_cached_objects{kind=\"Pod\"} 0")) << text_;
}

TEST_F(MetricsTest, WalksThroughTheCachesOnceASecond) {
  int walks = 0;
  metrics_.SetSource([&] {
    control::Numbers numbers;
    numbers.cache.pods = ++walks;
    return numbers;
  });
  for (const Duration later : {0ms, 1ms, 998ms}) {
    clock_.Advance(later);
    EXPECT_TRUE(Has("tfjob_cached_objects{kind=\"Pod\"} 1")) << text_;
  }
  clock_.Advance(1ms);
  EXPECT_TRUE(Has("tfjob_cached_objects{kind=\"Pod\"} 2")) << text_;
  EXPECT_EQ(walks, 2);
  metrics_.SetSource(nullptr);
  EXPECT_TRUE(Has("tfjob_cached_objects{kind=\"Pod\"} 0")) << "the loop does not run any more";
}

TEST_F(MetricsTest, TellsWhatBecameOfEvents) {
  for (const char* result : {"sent", "merged", "filtered", "dropped", "dropped_routine", "refused",
                             "expired", "retried"}) {
    EXPECT_TRUE(Has(StrCat("tfjob_events_total{result=\"", result, "\"} 0"))) << text_;
  }
  events::Counters counters;
  counters.sent = 7;
  counters.dropped_routine = 3;
  counters.waiting = 2;
  metrics_.SetEventSource([&] { return counters; });
  metrics_.Text();
  EXPECT_TRUE(Has("tfjob_events_total{result=\"sent\"} 7")) << text_;
  EXPECT_TRUE(Has("tfjob_events_total{result=\"dropped\"} 0")) << text_;
  EXPECT_TRUE(Has("tfjob_events_total{result=\"dropped_routine\"} 3")) << text_;
  EXPECT_TRUE(Has("tfjob_events_waiting 2")) << text_;
  counters = events::Counters();
  counters.sent = 8;
  EXPECT_TRUE(Has("tfjob_events_total{result=\"sent\"} 8")) << text_;
  EXPECT_TRUE(Has("tfjob_events_total{result=\"dropped_routine\"} 3")) << text_;
  EXPECT_TRUE(Has("tfjob_events_waiting 0")) << text_;
}

TEST_F(MetricsTest, CountsCallsWhileTheCachesAreWalkedThrough) {
  bool counted = false;
  metrics_.SetSource([&] {
    const std::future<void> call = std::async(std::launch::async, [&] { metrics_.OnCall({}); });
    counted = call.wait_for(10s) == std::future_status::ready;
    return control::Numbers();
  });
  metrics_.Text();
  EXPECT_TRUE(counted);
}

TEST_F(MetricsTest, HasTheConventionalNamesOfControllersQueuesAndProcesses) {
  metrics_.OnReconciled(control::Result::kError, 20ms);
  metrics_.OnQueueAdd();
  metrics_.OnQueueRetry();
  metrics_.SetLeader("lease", true);
  metrics_.OnSlowRenewal("lease");
  kube::RestCall call;
  call.method = "POST";
  call.host = "10.96.0.1:443";
  call.code = 201;
  metrics_.OnCall(call);
  const std::string text = metrics_.Text();
  for (const char* name :
       {"controller_runtime_reconcile_total{", "controller_runtime_reconcile_errors_total{",
        "controller_runtime_reconcile_time_seconds_bucket{", "workqueue_adds_total{",
        "workqueue_retries_total{", "workqueue_queue_duration_seconds_count{",
        "rest_client_requests_total{code=\"201\",host=\"10.96.0.1:443\",method=\"POST\"} 1",
        "rest_client_request_duration_seconds_count{host=\"10.96.0.1:443\",verb=\"POST\"} 1",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"tfjob-controller\"} 0",
        "controller_runtime_reconcile_panics_total{controller=\"tfjob-controller\"} 0",
        "controller_runtime_reconcile_timeouts_total{controller=\"tfjob-controller\"} 0",
        "leader_election_master_status{name=\"lease\"} 1",
        "leader_election_slowpath_total{name=\"lease\"} 1", "process_cpu_seconds_total ",
        "process_resident_memory_bytes ", "process_start_time_seconds ", "process_open_fds ",
        "tfjob_operator_build_info{version=\"1.2.3\"} 1"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
  }
}

}  // namespace
}  // namespace tfjob::metrics
