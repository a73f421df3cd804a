// Tests the variables from which the tasks of a dynamic job (enableDynamicWorker) derive the
// addresses of the others.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/defaults.h"
#include "operator/policy/decide.h"
#include "operator/policy/testing.h"
#include "operator/render/cluster_spec.h"
#include "operator/render/render.h"
#include "runtime/cluster/sparse_cluster.h"

namespace tfjob::render {
namespace {

using api::ReplicaType;
using enum ReplicaType;

// Returns the environment of the job's pod with this name.
Json EnvironmentOf(const api::TFJob& job, const std::string& name) {
  const StatusOr<Desired> desired =
      Render(job, policy::Decide(job, {}, policy::testing::At(0), {}), ClusterDns(""));
  EXPECT_TRUE(desired.ok()) << desired.status();
  for (const DesiredObject& object : desired->objects()) {
    if (object.kind == objects::Kind::kPod && object.name == name)
      return desired->Build(object)["spec"]["containers"][0]["env"];
  }
  ADD_FAILURE() << "no pod " << name;
  return nullptr;
}

// The addresses have the port of their type, and those of ps are in TF_CONFIG.
TEST(DynamicJob, PodsContainTheAddressesOfTheOtherTasks) {
  api::TFJob job = policy::testing::MakeJob({{kChief}, {kPS, 2}, {kWorker, 1}, {kEvaluator}});
  job.spec.replicas[kChief].pod_template = std::make_shared<const Json>(
      ParseJson(R"({"spec":{"containers":[{"name":"tensorflow","image":"t","ports":
                    [{"name":"tfjob-port","containerPort":3333}]}]}})",
                "test")
          .value());
  api::SetDefaults(job);
  job.spec.enable_dynamic_worker = true;
  EXPECT_EQ(EnvironmentOf(job, "mnist-worker-0")[3]["value"],
            R"({"chief":"mnist-chief-{index}.ns.svc:3333",)"
            R"("evaluator":"mnist-evaluator-{index}.ns.svc:2222",)"
            R"("worker":"mnist-worker-{index}.ns.svc:2222"})");
}

// From the variables of a dynamic job, the trainer derives the cluster that a static job has.
TEST(DynamicJob, TheTrainerDerivesTheClusterOfAStaticJob) {
  for (const ReplicaType chief : {kChief, kMaster, kWorker}) {
    for (const AddressScheme& scheme : {ClusterDns("cluster.local"), Loopback(20000)}) {
      api::TFJob job = policy::testing::MakeJob({{kEvaluator}, {chief, 1}, {kWorker, 3}});
      const ClusterSpec listed(job, scheme);
      job.spec.enable_dynamic_worker = true;
      const ClusterSpec sparse(job, scheme);
      const policy::Slot slot{kWorker, 2};
      cluster::TfConfig config = cluster::ParseTfConfig(sparse.TfConfigOf(slot)).value();
      config.chief_type = sparse.ChiefType();
      config.patterns = cluster::ParseAddressPatterns(sparse.AddressPatterns()).value();
      const auto derived = cluster::ListTasks(config, chief == kWorker ? 3 : 4);
      ASSERT_TRUE(derived.ok()) << derived.status();
      const auto expected = cluster::ParseTfConfig(listed.TfConfigOf(slot)).value();
      EXPECT_EQ(cluster::TrainingTasks(*derived), cluster::TrainingTasks(expected));
      for (const cluster::Job& tasks : expected.cluster.jobs) {
        ASSERT_NE(derived->cluster.job(tasks.name), nullptr) << tasks.name;
        EXPECT_EQ(*derived->cluster.job(tasks.name), tasks);
      }
    }
  }
}

}  // namespace
}  // namespace tfjob::render
