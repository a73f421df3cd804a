// Tests properties of Decide with generated jobs and clusters. A failure prints the seed that
// generated its case.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using namespace testing;

constexpr uint32_t kSeeds = 600;

// Generates jobs and pods, and random decisions about what happens to them.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  bool Chance(int percent) { return Below(100) < percent; }
  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  api::TFJob Job() {
    std::vector<TypeSpec> types;
    for (const ReplicaType type : api::kReplicaTypes) {
      if (type == ReplicaType::kMaster || !Chance(60)) continue;
      types.push_back({type, Below(4), static_cast<RestartPolicy>(Below(4))});
    }
    if (types.empty()) types.push_back({ReplicaType::kWorker, 2, RestartPolicy::kOnFailure});
    api::TFJob job = MakeJob(types);
    api::RunPolicy& policy = job.spec.run_policy;
    policy.clean_pod_policy = static_cast<api::CleanPodPolicy>(Below(3));
    if (Chance(40)) policy.backoff_limit = Below(4);
    if (Chance(20)) policy.active_deadline_seconds = Below(300);
    if (Chance(20)) policy.ttl_seconds_after_finished = Below(100);
    if (Chance(30)) policy.restart_scope = api::RestartScope::kJob;
    job.spec.enable_dynamic_worker = Chance(20);
    if (Chance(30)) job.spec.success_policy = api::SuccessPolicy::kAllWorkers;
    return job;
  }

  // Generates a new pod, or the next state of an existing pod.
  objects::Pod Pod(const std::string& name, int32_t attempt, int64_t now) {
    objects::Pod pod = Kind(name);
    pod.metadata.uid = StrCat("uid-", ++uids_);
    pod = WithAttempt(std::move(pod), attempt);
    if (!pod.containers.empty() && Chance(20)) pod.containers[0].restart_count = Below(3);
    if (Chance(20)) pod = Terminating(std::move(pod), now - Below(50));
    return pod;
  }

 private:
  objects::Pod Kind(const std::string& name) {
    constexpr int32_t kCodes[] = {0, 1, 127, 128, 137};
    switch (Below(7)) {
      case 0:
        return MakePod(name, PodPhase::kPending);
      case 1:
        return Exited(name, kCodes[Below(5)]);
      case 2:
        return Evicted(name);
      case 3:
        return WithSidecar(Exited(name, 0), Chance(50));
      default:
        return MakePod(name, PodPhase::kRunning);
    }
  }

  std::mt19937 random_;
  int uids_ = 0;
};

// Executes a verdict as the control loop would. The cluster shows all effects immediately.
void CarryOut(const Verdict& verdict, Generator& generator, int64_t now, Scene& scene) {
  for (const PodToCreate& pod : verdict.create_pods) {
    scene.Put(generator.Pod(pod.name, pod.attempt, now));
  }
  scene.job.status = verdict.status;
  for (const PodToDelete& pod : verdict.delete_pods) scene.Remove(pod.name);
  for (const JobEvent& event : verdict.events) {
    if (event.standing) scene.history.reported.insert(event.cause);
  }
}

// Makes changes whose cause is not the operator.
void Disturb(Generator& generator, int64_t now, Scene& scene) {
  for (auto& pod : scene.snapshot.pods) {
    if (!generator.Chance(30)) continue;
    objects::Pod changed = generator.Pod(pod->metadata.name, 0, now);
    changed.metadata.uid = pod->metadata.uid;
    changed.metadata.labels = pod->metadata.labels;
    pod = Share(std::move(changed));
  }
  if (!scene.snapshot.pods.empty() && generator.Chance(20)) {
    scene.Remove(scene.snapshot.pods[generator.Below(scene.snapshot.pods.size())]->metadata.name);
  }
  if (generator.Chance(10)) {
    scene.job.spec.run_policy.suspend = !scene.job.spec.run_policy.suspend;
  }
  if (generator.Chance(10)) {
    for (auto& [type, spec] : scene.job.spec.replicas) spec.replicas = generator.Below(4);
  }
  if (generator.Chance(5)) scene.Put(generator.Pod("mnist-worker-9", 0, now));
}

int64_t Restarts(const api::TFJobStatus& status) {
  int64_t restarts = 0;
  for (const auto& [type, replica] : status.replica_statuses) restarts += replica.restarts;
  return restarts;
}

std::string Show(const Verdict& verdict) {
  return PrintJsonIndented(Print(verdict));
}

// Checks that a second reconcile, with the first verdict's status in the job and the same
// observations, does not change the status, emits no events, and creates and deletes the same
// objects. If the first reconcile starts a new attempt, only the second may create pods.
void ExpectIdempotent(Scene& scene, const Verdict& first, int64_t now) {
  const api::TFJobStatus before = scene.job.status;
  scene.job.status = first.status;
  for (const JobEvent& event : first.events) {
    if (event.standing) scene.history.reported.insert(event.cause);
  }
  const Verdict second = Decide(scene.job, scene.snapshot, At(now), scene.options);
  EXPECT_EQ(second.status, first.status) << Show(second) << "\n" << Show(first);
  EXPECT_TRUE(second.events.empty()) << Show(second);
  if (first.status.attempt == before.attempt) {
    EXPECT_EQ(second.create_pods, first.create_pods);
  } else {  // the status records a new attempt before its pods are created
    EXPECT_TRUE(first.create_pods.empty()) << Show(first);
    EXPECT_TRUE(second.create_pods.empty() || first.requeue_after == Duration::zero())
        << Show(first);
  }
  EXPECT_EQ(Deleted(second), Deleted(first));
  EXPECT_EQ(second.create_services, first.create_services);
  EXPECT_EQ(second.delete_services, first.delete_services);
  EXPECT_EQ(second.delete_job, first.delete_job);
  scene.job.status = before;
}

// Checks what must be true of every verdict, given the previous status.
void ExpectInvariants(const Scene& scene, const api::TFJobStatus& before, const Verdict& verdict) {
  EXPECT_GE(Restarts(verdict.status), Restarts(before)) << "restarts never decrease";
  EXPECT_FALSE(api::IsSucceeded(verdict.status) && api::IsFailed(verdict.status));
  if (api::IsFinished(before)) {
    EXPECT_EQ(verdict.status, before) << "the end is final";
  }
  for (const PodToCreate& pod : verdict.create_pods) {
    for (const auto& present : scene.snapshot.pods) {
      EXPECT_NE(present->metadata.name, pod.name) << "never two pods for a slot";
    }
    EXPECT_LT(pod.slot.index, *scene.job.spec.replicas.at(pod.slot.type).replicas);
  }
  for (const PodToDelete& pod : verdict.delete_pods) EXPECT_FALSE(pod.uid.empty());
  EXPECT_GE(verdict.requeue_after.value_or(1s), Duration::zero());
}

void Live(uint32_t seed) {
  Generator generator(seed);
  Scene scene(generator.Job(), false);
  int64_t now = 0;
  for (int look = 0; look < 12; ++look) {
    const api::TFJobStatus before = scene.job.status;
    const Verdict verdict = scene.Reconcile(now);
    ExpectInvariants(scene, before, verdict);
    ExpectIdempotent(scene, verdict, now);
    if (verdict.delete_job) return;
    if (generator.Chance(90)) CarryOut(verdict, generator, now, scene);
    now += generator.Below(40);
    Disturb(generator, now, scene);
  }
}

TEST(DecideProperties, HoldInGeneratedLives) {
  for (uint32_t seed = 0; seed < kSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Live(seed);
  }
}

// If every verdict is executed, every new pod runs and no other changes occur, a job settles: a
// further reconcile has no more work.
TEST(DecideProperties, JobsComeToRest) {
  for (uint32_t seed = 0; seed < kSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Generator generator(seed);
    Scene scene(generator.Job());
    scene.job.spec.run_policy.active_deadline_seconds = std::nullopt;
    for (int look = 0; look < 8; ++look) {
      const Verdict verdict = scene.ReconcileAndWrite(look * 400);
      for (const PodToDelete& pod : verdict.delete_pods) scene.Remove(pod.name);
      for (const PodToCreate& pod : verdict.create_pods) {
        objects::Pod created = WithAttempt(MakePod(pod.name, PodPhase::kRunning), pod.attempt);
        if (look == 0) created = generator.Pod(pod.name, pod.attempt, 0);
        if (created.metadata.terminating()) continue;
        created.metadata.uid = StrCat("uid-", pod.name, "-", look);
        scene.Put(created);
      }
      for (const ServiceRef& gone : verdict.delete_services) {
        std::erase_if(scene.snapshot.services,
                      [&](const auto& service) { return service->metadata.uid == gone.uid; });
      }
      for (const JobEvent& event : verdict.events) scene.history.reported.insert(event.cause);
    }
    const Verdict rest = scene.Reconcile(8 * 400);
    EXPECT_EQ(rest.status, scene.job.status) << Show(rest);
    EXPECT_TRUE(rest.create_pods.empty()) << Show(rest);
    EXPECT_TRUE(rest.delete_pods.empty()) << Show(rest);
    EXPECT_TRUE(rest.delete_services.empty());
    EXPECT_TRUE(rest.events.empty());
  }
}

}  // namespace
}  // namespace tfjob::policy
