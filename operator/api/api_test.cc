#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "operator/api/defaults.h"
#include "operator/api/indexes.h"
#include "operator/api/names.h"
#include "operator/api/reasons.h"
#include "operator/api/replicas.h"

namespace tfjob::api {
namespace {

std::shared_ptr<const Json> Template(std::string_view text) {
  return std::make_shared<const Json>(*ParseJson(text, "template"));
}

TFJob Job(const std::map<ReplicaType, int32_t>& replicas) {
  TFJob job;
  job.metadata.name = "mnist";
  job.metadata.name_space = "ns";
  job.metadata.uid = "u-1";
  for (const auto& [type, count] : replicas) {
    job.spec.replicas[type].replicas = count;
    job.spec.replicas[type].pod_template =
        Template(R"({"spec":{"containers":[{"name":"tensorflow","image":"i"}]}})");
  }
  return job;
}

TEST(Words, EveryEnumReadsWhatItPrints) {
  for (const ReplicaType type : kReplicaTypes) {
    EXPECT_EQ(ParseReplicaType(Name(type)), type);
    EXPECT_EQ(ParseReplicaType(LowerName(type)), type);
  }
  for (const RestartPolicy policy : kRestartPolicies) {
    EXPECT_EQ(ParseRestartPolicy(Name(policy)), policy);
  }
  for (const CleanPodPolicy policy :
       {CleanPodPolicy::kNone, CleanPodPolicy::kRunning, CleanPodPolicy::kAll}) {
    EXPECT_EQ(ParseCleanPodPolicy(Name(policy)), policy);
  }
  for (const ConditionType type : {ConditionType::kCreated, ConditionType::kSuspended}) {
    EXPECT_EQ(ParseConditionType(Name(type)), type);
  }
  EXPECT_EQ(Name(RestartPolicy::kExitCode), "ExitCode");
  EXPECT_EQ(Name(SuccessPolicy::kAllWorkers), "AllWorkers");
  EXPECT_EQ(ParseRestartScope("Job"), RestartScope::kJob);
}

TEST(Words, ReplicaTypesIgnoreCaseAndPoliciesDoNot) {
  EXPECT_EQ(ParseReplicaType("wOrKeR"), ReplicaType::kWorker);
  EXPECT_EQ(ParseReplicaType("workers"), std::nullopt);
  EXPECT_EQ(ParseRestartPolicy("never"), std::nullopt);
  EXPECT_EQ(ParseRestartPolicy(""), std::nullopt);
}

TEST(Defaults, FillsWhatIsMissing) {
  TFJob job = Job({{ReplicaType::kWorker, 2}});
  job.spec.replicas[ReplicaType::kWorker].replicas.reset();
  SetDefaults(job);
  const ReplicaSpec& worker = job.spec.replicas[ReplicaType::kWorker];
  EXPECT_EQ(job.spec.run_policy.clean_pod_policy, CleanPodPolicy::kNone);
  EXPECT_EQ(worker.replicas, 1);
  EXPECT_EQ(worker.restart_policy, RestartPolicy::kNever);
  EXPECT_EQ(PrintJson(*worker.pod_template),
            R"({"spec":{"containers":[{"image":"i","name":"tensorflow",)"
            R"("ports":[{"containerPort":2222,"name":"tfjob-port"}]}]}})");
}

TEST(Defaults, KeepWhatTheUserWrote) {
  TFJob job = Job({{ReplicaType::kWorker, 3}});
  job.spec.run_policy.clean_pod_policy = CleanPodPolicy::kAll;
  job.spec.replicas[ReplicaType::kWorker].restart_policy = RestartPolicy::kExitCode;
  SetDefaults(job);
  const TFJob once = job;
  EXPECT_EQ(once.spec.run_policy.clean_pod_policy, CleanPodPolicy::kAll);
  EXPECT_EQ(once.spec.replicas.at(ReplicaType::kWorker).replicas, 3);
  EXPECT_EQ(once.spec.replicas.at(ReplicaType::kWorker).restart_policy, RestartPolicy::kExitCode);
  SetDefaults(job);
  EXPECT_EQ(job, once);
}

struct PortCase {
  const char* before;
  const char* after;
};

TEST(Defaults, AddThePortLastAndOnlyWhenMissing) {
  const PortCase cases[] = {
      // The port is appended after the user's own ports.
      {R"({"spec":{"containers":[{"name":"tensorflow","ports":[{"name":"x","containerPort":1}]}]}})",
       R"({"spec":{"containers":[{"name":"tensorflow","ports":[{"containerPort":1,"name":"x"},)"
       R"({"containerPort":2222,"name":"tfjob-port"}]}]}})"},
      // If the container already has a port with that name, no port is added.
      {R"({"spec":{"containers":[{"name":"tensorflow","ports":[{"name":"tfjob-port"}]}]}})",
       R"({"spec":{"containers":[{"name":"tensorflow","ports":[{"name":"tfjob-port"}]}]}})"},
      // The container named tensorflow gets the port, even if it is not the first.
      {R"({"spec":{"containers":[{"name":"a"},{"name":"tensorflow"}]}})",
       R"({"spec":{"containers":[{"name":"a"},{"name":"tensorflow",)"
       R"("ports":[{"containerPort":2222,"name":"tfjob-port"}]}]}})"},
      // If no container is named tensorflow, the first container gets the port.
      {R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
       R"({"spec":{"containers":[{"name":"a","ports":[{"containerPort":2222,"name":"tfjob-port"}]},)"
       R"({"name":"b"}]}})"},
      // Templates that do not have the shape of a pod are left unchanged.
      {R"({"spec":{"containers":[]}})", R"({"spec":{"containers":[]}})"},
      {R"({"spec":{"containers":["x"]}})", R"({"spec":{"containers":["x"]}})"},
      {R"({"spec":{"containers":{"a":1}}})", R"({"spec":{"containers":{"a":1}}})"},
      {R"({"spec":7})", R"({"spec":7})"},
      {R"({"spec":{"containers":[{"ports":"x"}]}})", R"({"spec":{"containers":[{"ports":"x"}]}})"},
  };
  for (const PortCase& port : cases) {
    TFJob job = Job({{ReplicaType::kWorker, 1}});
    job.spec.replicas[ReplicaType::kWorker].pod_template = Template(port.before);
    SetDefaults(job);
    EXPECT_EQ(PrintJson(*job.spec.replicas[ReplicaType::kWorker].pod_template), port.after);
  }
}

TEST(Defaults, LeaveTheSharedTemplateAlone) {
  TFJob job = Job({{ReplicaType::kWorker, 1}});
  const TFJob before = job;
  SetDefaults(job);
  EXPECT_EQ(before, Job({{ReplicaType::kWorker, 1}}));
  EXPECT_FALSE(before == job);
}

TEST(Replicas, CountsTypesAndKnowsLocalJobs) {
  TFJob job = Job({{ReplicaType::kWorker, 2}, {ReplicaType::kPS, 0}});
  job.spec.replicas[ReplicaType::kChief];
  EXPECT_EQ(Replicas(job, ReplicaType::kWorker), 2);
  EXPECT_EQ(Replicas(job, ReplicaType::kPS), 0);
  EXPECT_EQ(Replicas(job, ReplicaType::kChief), 1);
  EXPECT_EQ(Replicas(job, ReplicaType::kMaster), 0);
  EXPECT_EQ(TotalReplicas(job), 3);
  EXPECT_FALSE(IsLocal(job));
  EXPECT_TRUE(IsLocal(Job({{ReplicaType::kWorker, 1}, {ReplicaType::kPS, 0}})));
  EXPECT_FALSE(IsLocal(Job({{ReplicaType::kWorker, 0}})));
}

TEST(Replicas, FindsThePortOfAType) {
  TFJob job = Job({{ReplicaType::kWorker, 1}});
  EXPECT_EQ(TFJobPort(job, ReplicaType::kWorker), 2222);
  EXPECT_EQ(TFJobPort(job, ReplicaType::kPS), 2222);
  job.spec.replicas[ReplicaType::kWorker].pod_template =
      Template(R"({"spec":{"containers":[{"name":"a","ports":[{"name":"tfjob-port",
                  "containerPort":1}]},{"name":"tensorflow","ports":[{"containerPort":5},
                  {"name":"tfjob-port","containerPort":3333}]}]}})");
  EXPECT_EQ(TFJobPort(job, ReplicaType::kWorker), 3333);
}

TEST(Names, AreTheReferencesOwn) {
  EXPECT_EQ(ReplicaName("mnist", ReplicaType::kPS, 12), "mnist-ps-12");
  const Labels labels = {{"training.kubeflow.org/operator-name", "tfjob-controller"},
                         {"training.kubeflow.org/job-name", "mnist"},
                         {"training.kubeflow.org/replica-type", "evaluator"},
                         {"training.kubeflow.org/replica-index", "0"}};
  EXPECT_EQ(ReplicaLabels("mnist", ReplicaType::kEvaluator, 0), labels);
  EXPECT_EQ(SelectorText("mnist", ReplicaType::kWorker),
            "training.kubeflow.org/job-name=mnist,"
            "training.kubeflow.org/operator-name=tfjob-controller,"
            "training.kubeflow.org/replica-type=worker");
}

TEST(Names, LabelsReadBackAndOnlyOurOwnForm) {
  const auto id = [](const char* type, const char* index) {
    return ReplicaIdOf({{kReplicaTypeLabel, type}, {kReplicaIndexLabel, index}});
  };
  EXPECT_EQ(id("worker", "7"), (ReplicaId{ReplicaType::kWorker, 7}));
  EXPECT_EQ(ReplicaIdOf(ReplicaLabels("j", ReplicaType::kPS, 3)), (ReplicaId{ReplicaType::kPS, 3}));
  for (const char* index : {"", "-1", "+1", "07", "1x", " 1", "99999999999999999999"}) {
    EXPECT_EQ(id("worker", index), std::nullopt) << index;
  }
  EXPECT_EQ(id("Worker", "1"), std::nullopt);
  EXPECT_EQ(id("server", "1"), std::nullopt);
  EXPECT_EQ(ReplicaIdOf({}), std::nullopt);
}

TEST(Names, MasterRoleIsChiefsOrElseWorkerZero) {
  const TFJob workers = Job({{ReplicaType::kWorker, 2}, {ReplicaType::kPS, 1}});
  EXPECT_TRUE(IsMasterRole(workers, ReplicaType::kWorker, 0));
  EXPECT_FALSE(IsMasterRole(workers, ReplicaType::kWorker, 1));
  EXPECT_FALSE(IsMasterRole(workers, ReplicaType::kPS, 0));
  const TFJob chief = Job({{ReplicaType::kWorker, 2}, {ReplicaType::kChief, 2}});
  EXPECT_TRUE(IsMasterRole(chief, ReplicaType::kChief, 1));
  EXPECT_FALSE(IsMasterRole(chief, ReplicaType::kWorker, 0));
}

TEST(Names, TheJobIsTheController) {
  const objects::OwnerReference owner = OwnerReferenceOf(Job({}));
  EXPECT_EQ(owner,
            (objects::OwnerReference{"kubeflow.org/v1", "TFJob", "mnist", "u-1", true, true}));
}

TEST(Reasons, MessagesAreTheReferencesOwn) {
  const TFJob job = Job({});
  EXPECT_EQ(CreatedMessage(job), "TFJob mnist is created.");
  EXPECT_EQ(RunningMessage(job), "TFJob ns/mnist is running.");
  EXPECT_EQ(RestartingMessage(job, ReplicaType::kPS),
            "job mnist is restarting because PS replica(s) failed.");
  EXPECT_EQ(SucceededMessage(job), "TFJob ns/mnist successfully completed.");
  EXPECT_EQ(FailedReplicasMessage(job, ReplicaType::kWorker, 2),
            "TFJob ns/mnist has failed because 2 Worker replica(s) failed.");
  EXPECT_EQ(PermanentFailureMessage(job, ReplicaType::kWorker),
            "job \"mnist\" is failing because \"Worker\" replica(s) failed.");
  EXPECT_EQ(BackoffLimitMessage(job),
            "Job mnist has failed because it has reached the specified backoff limit");
  EXPECT_EQ(DeadlineMessage(job),
            "Job mnist has failed because it was active longer than specified deadline");
  EXPECT_EQ(SuspendedMessage(job), "TFJob mnist is suspended.");
  EXPECT_EQ(ResumedMessage(job), "TFJob mnist is resumed.");
  EXPECT_EQ(CreatedObjectsMessage("pod", {"p"}), "Created pod: p");
  EXPECT_EQ(CreatedObjectsMessage("pod", {"p", "q", "r"}), "Created pods: p, q, r");
  EXPECT_EQ(DeletedObjectsMessage("service", {"s"}), "Deleted service: s");
  EXPECT_EQ(DeletedObjectsMessage("pod group", {"g", "h"}), "Deleted pod groups: g, h");
  EXPECT_EQ(FailedCreateMessage("no"), "Error creating: no");
  EXPECT_EQ(ExitedWithCodeMessage("ns", "p", 137, ""), "Pod: ns.p exited with code 137");
  EXPECT_EQ(ExitedWithCodeMessage("ns", "p", 2, "no such file"),
            "Pod: ns.p exited with code 2: no such file");
  EXPECT_EQ(ContainerTerminatedMessage("p", "c", 1, "m"),
            "Error pod p container c exitCode: 1 terminated message: m");
  EXPECT_EQ(ContainerWaitingMessage("p", "c", "m"), "Error pod p container c waiting message: m");
  EXPECT_EQ(PodConditionMessage("p", "m"), "Error pod p condition message: m");
}

// If a message would exceed 1,024 bytes, the limit for events, it lists as many names as fit and
// counts the others.
TEST(Reasons, AMessageNamesAsManyAsItHasRoomFor) {
  Names names;
  for (int i = 0; i < 1000; ++i) names.push_back(StrCat("mnist-worker-", 1000 + i));
  const std::string message = CreatedObjectsMessage("pod", names);
  EXPECT_LE(message.size(), 1024u);
  EXPECT_GE(message.size(), 900u);
  EXPECT_EQ(message.find("Created pods: mnist-worker-1000, mnist-worker-1001, "), 0u);
  const size_t named = std::count(message.begin(), message.end(), ',');
  const std::string rest = StrCat(" and ", 1000 - named - 1, " more");
  EXPECT_EQ(message.substr(message.size() - rest.size()), rest);
}

TEST(IndexSet, PrintsSortedAndMerged) {
  for (const auto& [text, printed] :
       std::map<std::string, std::string>{{"", ""},
                                          {"0", "0"},
                                          {"0-3,7", "0-3,7"},
                                          {"7,3,2,0-1", "0-3,7"},
                                          {"1-5,2-3,5-9", "1-9"},
                                          {"3,3,3", "3"},
                                          {"2147483646,2147483647", "2147483646-2147483647"},
                                          {"5-5", "5"}}) {
    const StatusOr<IndexSet> set = IndexSet::Parse(text);
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_EQ(set->ToString(), printed);
  }
}

TEST(IndexSet, AnswersWhatItHolds) {
  IndexSet set = *IndexSet::Parse("0-3,7");
  EXPECT_TRUE(set.Contains(3));
  EXPECT_FALSE(set.Contains(4));
  EXPECT_EQ(set.size(), 5);
  for (const int32_t index : {5, 4, 6}) set.Insert(index);
  EXPECT_EQ(set.ToString(), "0-7");
  set.Insert(5);
  EXPECT_EQ(set.size(), 8);
  EXPECT_TRUE(IndexSet().empty());
}

// For any order of insertion, the set contains the same indexes as a std::set and prints the
// shortest text.
TEST(IndexSet, HoldsWhatWasInsertedInAnyOrder) {
  constexpr int32_t kIndexes = 60;
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    IndexSet set;
    std::set<int32_t> expected;
    for (int i = 0; i < kIndexes; ++i) {
      const auto index = static_cast<int32_t>(random() % kIndexes);
      set.Insert(index);
      expected.insert(index);
      for (int32_t other = 0; other <= kIndexes; ++other) {
        ASSERT_EQ(set.Contains(other), expected.contains(other)) << set.ToString() << " " << other;
      }
      ASSERT_EQ(set.size(), static_cast<int64_t>(expected.size())) << set.ToString();
      ASSERT_EQ(*IndexSet::Parse(set.ToString()), set);
    }
  }
}

TEST(IndexSet, RefusesOtherTexts) {
  for (const char* text : {"x", ",", "1,", "-1", "1--2", "1-", "1 2", " 1", "3-1", "4294967296"}) {
    EXPECT_EQ(IndexSet::Parse(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(Message(IndexSet::Parse("0,5-2").status()),
            "\"0,5-2\" is not a set of indexes such as \"0-3,7\": \"5-2\" runs backwards");
  EXPECT_EQ(Message(IndexSet::Parse("0,x").status()),
            "\"0,x\" is not a set of indexes such as \"0-3,7\": \"x\" is not an index");
}

}  // namespace
}  // namespace tfjob::api
