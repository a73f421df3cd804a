#include "operator/api/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace tfjob::api {
namespace {

using enum ReplicaType;

std::shared_ptr<const Json> Template(std::string_view text) {
  return std::make_shared<const Json>(*ParseJson(text, "template"));
}

void Add(TFJob& job, ReplicaType type, int32_t replicas) {
  job.spec.replicas[type].replicas = replicas;
  job.spec.replicas[type].pod_template =
      Template(R"({"spec":{"containers":[{"name":"tensorflow","image":"i"}]}})");
}

TFJob ValidJob() {
  TFJob job;
  job.metadata.name = "mnist";
  Add(job, kWorker, 2);
  return job;
}

std::string Print(const std::vector<FieldIssue>& issues) {
  std::string text;
  for (const FieldIssue& issue : issues) text += (text.empty() ? "" : "\n") + ToString(issue);
  return text;
}

struct Case {
  std::function<void(TFJob&)> change;
  std::string issues;
};

void SetTemplate(TFJob& job, const char* text) {
  job.spec.replicas[kWorker].pod_template = Template(text);
}

const std::string kWorkerContainers = "spec.tfReplicaSpecs.Worker.template.spec.containers";

TEST(Validate, RefusesBadNames) {
  const std::string rule =
      "metadata.name: expected at most 63 lower-case letters, digits and '-', starting with a "
      "letter "
      "and not ending with '-' (DNS-1035), got ";
  const Case cases[] = {
      {[](TFJob& job) { job.metadata.name = ""; }, "metadata.name: a name is required"},
      {[](TFJob& job) { job.metadata.name = "Mnist"; }, rule + "\"Mnist\""},
      {[](TFJob& job) { job.metadata.name = "1mnist"; }, rule + "\"1mnist\""},
      {[](TFJob& job) { job.metadata.name = "mnist-"; }, rule + "\"mnist-\""},
      {[](TFJob& job) { job.metadata.name = "a.b"; }, rule + "\"a.b\""},
      {[](TFJob& job) { job.metadata.name = "a/b"; }, rule + "\"a/b\""},
      {[](TFJob& job) { job.metadata.name_space = "../x"; },
       "metadata.namespace: expected at most 63 lower-case letters, digits and '-', not starting "
       "or "
       "ending with '-', got \"../x\""},
      {[](TFJob& job) { job.metadata.name_space = "9-lives"; }, ""},
  };
  for (const Case& test : cases) {
    TFJob job = ValidJob();
    test.change(job);
    EXPECT_EQ(Print(Validate(job)), test.issues);
  }
}

TEST(Validate, TheLongestServiceNameIsExact) {
  TFJob job = ValidJob();
  Add(job, kWorker, 10);  // "-worker-9": 9 characters
  job.metadata.name = std::string(54, 'a');
  EXPECT_EQ(Print(Validate(job)), "");
  job.metadata.name = std::string(55, 'a');
  EXPECT_EQ(Print(Validate(job)),
            "metadata.name: the service \"" + job.metadata.name +
                "-worker-9\" would have a name of 64 characters, and 63 are allowed: shorten the "
                "job's name to 54 characters or fewer");
  job.metadata.name = std::string(54, 'a');
  Add(job, kWorker, 11);  // "-worker-10"
  EXPECT_NE(Print(Validate(job)), "");
  Add(job, kWorker, 1);
  Add(job, kEvaluator, 0);  // no service
  EXPECT_EQ(Print(Validate(job)), "");
  Add(job, kEvaluator, 1);  // "-evaluator-0"
  EXPECT_NE(Print(Validate(job)), "");
}

TEST(Validate, RefusesTemplatesWithoutTheirContainer) {
  const Case cases[] = {
      {[](TFJob& job) { SetTemplate(job, "{}"); },
       kWorkerContainers +
           ": at least one container is required, and one of them must be named \"tensorflow\""},
      {[](TFJob& job) { job.spec.replicas[kWorker].pod_template = nullptr; },
       kWorkerContainers +
           ": at least one container is required, and one of them must be named \"tensorflow\""},
      {[](TFJob& job) {
         SetTemplate(job, R"({"spec":{"containers":[{"name":"a","image":"i"}]}})");
       },
       kWorkerContainers + ": one of the containers must be named \"tensorflow\""},
      {[](TFJob& job) { SetTemplate(job, R"({"spec":{"containers":[{"name":"tensorflow"}]}})"); },
       kWorkerContainers + "[0].image: an image is required"},
      {[](TFJob& job) {
         SetTemplate(job, R"({"spec":{"containers":[{"name":"tensorflow","image":7}]}})");
       },
       kWorkerContainers + "[0].image: expected a string, got 7"},
      {[](TFJob& job) { SetTemplate(job, R"({"spec":{"containers":"x"}})"); },
       kWorkerContainers + ": expected a list, got \"x\""},
      {[](TFJob& job) { SetTemplate(job, R"({"spec":{"containers":[7]}})"); },
       kWorkerContainers + ": one of the containers must be named \"tensorflow\"\n" +
           kWorkerContainers + "[0]: expected a container object"},
  };
  for (const Case& test : cases) {
    TFJob job = ValidJob();
    test.change(job);
    EXPECT_EQ(Print(Validate(job)), test.issues);
  }
}

TEST(Validate, OnlyWarnsOfAnAnnotationOnceTheJobHasStarted) {
  TFJob job = ValidJob();
  job.metadata.annotations["tfjob.dev/gang-scheduler"] = "vulcano";
  EXPECT_EQ(Validate(job).size(), 1u);
  EXPECT_EQ(Print(Warnings(job)), "");
  job.status.start_time = Time(1s);
  EXPECT_EQ(Print(Validate(job)), "");
  EXPECT_EQ(Print(Warnings(job)),
            "metadata.annotations[tfjob.dev/gang-scheduler]: expected native, volcano, "
            "scheduler-plugins or none, got \"vulcano\"; did you mean \"volcano\"?");
}

TEST(Validate, RefusesTypesThatExcludeEachOtherAndNegativeNumbers) {
  const Case cases[] = {
      {[](TFJob& job) { job.spec.replicas.clear(); },
       "spec.tfReplicaSpecs: at least one replica type is required"},
      {[](TFJob& job) {
         Add(job, kChief, 1);
         Add(job, kMaster, 1);
       },
       "spec.tfReplicaSpecs: Chief and Master exclude each other; keep one"},
      {[](TFJob& job) { Add(job, kWorker, -1); },
       "spec.tfReplicaSpecs.Worker.replicas: expected 0 or more, got -1"},
      {[](TFJob& job) { Add(job, kWorker, 0); }, ""},
      {[](TFJob& job) { Add(job, kWorker, 100'001); },
       "spec.tfReplicaSpecs: 100001 replicas in total, expected at most 100000"},
      {[](TFJob& job) { job.metadata.annotations["tfjob.dev/gang-scheduler"] = "volcano"; }, ""},
      {[](TFJob& job) { job.metadata.annotations["tfjob.dev/gang-scheduler"] = "native"; }, ""},
      {[](TFJob& job) { job.metadata.annotations["tfjob.dev/gang-scheduler"] = "vulcano"; },
       "metadata.annotations[tfjob.dev/gang-scheduler]: expected native, volcano, "
       "scheduler-plugins or none, "
       "got \"vulcano\"; did you mean \"volcano\"?"},
      {[](TFJob& job) { job.metadata.annotations["tfjob.dev/network-policy"] = "true"; }, ""},
      {[](TFJob& job) { job.metadata.annotations["tfjob.dev/network-policy"] = "false"; }, ""},
      {[](TFJob& job) { job.metadata.annotations["tfjob.dev/network-policy"] = "yes"; },
       "metadata.annotations[tfjob.dev/network-policy]: expected true or false, got \"yes\""},
      {[](TFJob& job) {
         job.spec.run_policy.ttl_seconds_after_finished = -1;
         job.spec.run_policy.active_deadline_seconds = -2;
         job.spec.run_policy.backoff_limit = -3;
       },
       "spec.runPolicy.activeDeadlineSeconds: expected 0 or more, got -2\n"
       "spec.runPolicy.backoffLimit: expected 0 or more, got -3\n"
       "spec.runPolicy.ttlSecondsAfterFinished: expected 0 or more, got -1"},
      {[](TFJob& job) { job.spec.run_policy.managed_by = "me"; },
       "spec.runPolicy.managedBy: expected \"kubeflow.org/training-operator\" or "
       "\"kueue.x-k8s.io/multikueue\", got \"me\""},
      {[](TFJob& job) { job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue"; }, ""},
  };
  for (const Case& test : cases) {
    TFJob job = ValidJob();
    test.change(job);
    EXPECT_EQ(Print(Validate(job)), test.issues);
  }
}

TEST(Warnings, SayWhatIsAcceptedAndOdd) {
  TFJob job = ValidJob();
  EXPECT_EQ(Print(Warnings(job)), "");
  Add(job, kChief, 2);
  job.spec.run_policy.scheduling_policy = SchedulingPolicy();
  job.spec.run_policy.scheduling_policy->min_available = 5;
  EXPECT_EQ(Print(Validate(job)), "");
  EXPECT_EQ(
      Print(Warnings(job)),
      "spec.runPolicy.schedulingPolicy.minAvailable: 5 pods are requested, but the job has 4: "
      "it will never be scheduled as a gang\n"
      "spec.tfReplicaSpecs.Chief.replicas: 2 replicas of Chief are all chiefs, and all of them "
      "must succeed; usually there is 1");
  job.spec.run_policy.scheduling_policy->min_available = 4;
  EXPECT_EQ(Warnings(job).size(), 1u);
}

}  // namespace
}  // namespace tfjob::api
