#include "operator/local/run/dry_run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/defaults.h"

namespace tfjob::local {
namespace {

using enum api::ReplicaType;

Json ObjectNamed(const std::string& name, const std::string& name_space = "ns") {
  return {{"metadata", {{"name", name}, {"namespace", name_space}}}};
}

Json Template(const Json& container) {
  return {{"spec", {{"containers", Json::array({container})}}}};
}

api::TFJob JobOf(const std::string& name, const Json& workers, const Json& ps, int32_t ps_count) {
  api::TFJob job;
  job.metadata.name = name;
  job.metadata.name_space = "ns";
  job.metadata.uid = "uid";
  job.spec.replicas[kWorker].pod_template = std::make_shared<const Json>(workers);
  job.spec.replicas[kPS].pod_template = std::make_shared<const Json>(ps);
  job.spec.replicas[kPS].replicas = ps_count;
  api::SetDefaults(job);
  return job;
}

TEST(DryRun, TriesTheFirstServiceAndPodOfEachTypeThatHasReplicas) {
  const Json good = Template({{"name", "tensorflow"}, {"image", "a"}});
  const Json unnamed = Template({{"image", "a"}});
  Json outside = good;
  outside["spec"]["volumes"] =
      Json::array({{{"name", "../../data"}, {"emptyDir", Json::object()}}});
  Json labelled = good;
  labelled["metadata"]["labels"]["team"] = "a team";
  const std::string long_name(60, 'a');
  const struct {
    std::string name;
    Json workers, ps;
    int32_t ps_count;
    std::string error;  // the first part of the message
  } cases[] = {
      {"a", good, good, 2, ""},
      {"a", good, labelled, 0, ""},
      {"a", good, labelled, 1,
       "job.yaml: spec.tfReplicaSpecs.PS.template: Pod \"a-ps-0\" is invalid: "
       "metadata.labels[team]: "},
      {"A", good, good, 1, "job.yaml: TFJob \"A\" is invalid: metadata.name: "},
      {"a.b", good, good, 0,
       "job.yaml: spec.tfReplicaSpecs.Worker.template: Service \"a.b-worker-0\" is invalid: "},
      {long_name, good, good, 0,
       StrCat("job.yaml: spec.tfReplicaSpecs.Worker.template: Service \"", long_name,
              "-worker-0\"")},
      {"a", outside, good, 1,
       "job.yaml: spec.tfReplicaSpecs.Worker.template: Pod \"a-worker-0\" is invalid: "
       "spec.volumes[0].name: Invalid value: \"../../data\": "},
      {"a", unnamed, good, 1, "job.yaml: spec.tfReplicaSpecs.Worker.template"},
  };
  for (const auto& each : cases) {
    DryRun dry_run;
    const api::TFJob job = JobOf(each.name, each.workers, each.ps, each.ps_count);
    const Status status = dry_run.AddJob(ObjectNamed(each.name), job, "job.yaml");
    EXPECT_EQ(status.ok(), each.error.empty()) << status;
    EXPECT_EQ(Message(status).substr(0, each.error.size()), each.error) << status;
  }
}

TEST(DryRun, NamesBothPlacesOfAnObject) {
  const Json good = Template({{"name", "tensorflow"}, {"image", "a"}});
  DryRun dry_run;
  EXPECT_TRUE(dry_run.AddConfigMap(ObjectNamed("a"), "document 1").ok());
  EXPECT_TRUE(dry_run.AddConfigMap(ObjectNamed("a", "other"), "document 2").ok());
  EXPECT_TRUE(dry_run.AddJob(ObjectNamed("a"), JobOf("a", good, good, 1), "document 3").ok());
  EXPECT_EQ(Message(dry_run.AddConfigMap(ObjectNamed("a"), "document 4")),
            "document 4: metadata.name: document 1 is the same object, in namespace \"ns\"");
  EXPECT_EQ(Message(dry_run.AddJob(ObjectNamed("a"), JobOf("a", good, good, 1), "document 5")),
            "document 5: metadata.name: document 3 is the same object, in namespace \"ns\"");
}

}  // namespace
}  // namespace tfjob::local
