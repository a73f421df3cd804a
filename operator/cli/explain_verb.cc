// Implements `tfjob explain`: turns flags into the options of Explain().
#include "operator/cli/explain.h"
#include "operator/cli/local_verbs.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/network_policy.h"

namespace tfjob::cli {
namespace {

ExplainOptions::Stage StageOf(const std::string& word) {
  using Stage = ExplainOptions::Stage;
  if (word == "defaults") return Stage::kDefaults;
  if (word == "objects") return Stage::kObjects;
  return word == "plan" ? Stage::kPlan : Stage::kVerdict;
}

class ExplainVerb : public Verb {
 public:
  ExplainVerb()
      : Verb("explain", "Print what the operator would do with a manifest; creates nothing") {}

  void AddFlags(FlagSet& flags) override;
  int Run(const Invocation& invocation) override { return Explain(options_, invocation.console); }

 private:
  void AddOutputFlags(FlagSet& flags);
  // Adds the flags of tfjob-operator that affect the result.
  void AddOperatorFlags(FlagSet& flags);
  Status ReadNow(const std::string& text);

  ExplainOptions options_;
  std::string output_ = "yaml";
  std::string clean_pod_policy_ = "None";
  std::string network_policies_ = "none";
};

void ExplainVerb::AddFlags(FlagSet& flags) {
  AddManifestFile(flags, options_.file);
  AddOutputFlags(flags);
  flags
      .Text("--observed", options_.observed,
            "A v1 List of the pods, services, pod groups and network policies that exist")
      .Complete(CompleteWith::kFiles);
  flags.TextAs(
      "--now", [this](const std::string& text) { return ReadNow(text); },
      "Time of the decision, such as 2026-11-21T09:30:00Z (default: now)");
  AddOperatorFlags(flags);
  flags.Check([this] { return CheckManifestFile(*this, options_.file); });
}

void ExplainVerb::AddOutputFlags(FlagSet& flags) {
  const auto read_stage = [this](const std::string& word) {
    options_.stage = StageOf(word);
    return OkStatus();
  };
  flags
      .TextAs("--print", read_stage,
              "defaults: the job as the operator reads it; verdict: the decision; "
              "objects: the services and pods; plan: the calls, in order")
      .AllowOnly({"defaults", "verdict", "objects", "plan"})
      .Require()
      .CompleteWords({"defaults", "objects", "plan", "verdict"});
  flags.Text("-o,--output", output_, "Output format")
      .AllowOnly({"yaml", "json"})
      .ShowDefault()
      .CompleteWords({"json", "yaml"});
  flags.Check([this] {
    using Format = ExplainOptions::Format;
    options_.format = output_ == "json" ? Format::kJson : Format::kYaml;
    return OkStatus();
  });
}

void ExplainVerb::AddOperatorFlags(FlagSet& flags) {
  flags.Text("--cluster-domain", options_.cluster_domain,
             "The operator's flag: domain appended to the addresses in TF_CONFIG");
  const auto read_gang = [this](const std::string& name) {
    options_.options.gang = policy::GangFromFlag(name);
    return OkStatus();
  };
  flags.TextAs("--gang-scheduler-name", read_gang,
               "The operator's flag: volcano, or the name of a scheduler");
  flags.Repeated("--job-key-id", options_.key_ids,
                 "The id of a key of the operator, such as 1.4f8a0b12; if repeated, the oldest "
                 "first (default: the operator has no keys)");
  flags
      .Text("--job-network-policies", network_policies_,
            "The operator's flag: which jobs get a NetworkPolicy")
      .AllowOnly({"none", "annotated", "all"})
      .ShowDefault();
  flags
      .Text("--default-clean-pod-policy", clean_pod_policy_,
            "The operator's flag: cleanPodPolicy of jobs that set none")
      .AllowOnly({"None", "Running", "All"})
      .ShowDefault();
  flags.Check([this] {
    options_.options.network_policies =
        policy::ParseNetworkPolicies(network_policies_).value_or(policy::NetworkPolicies::kNone);
    options_.default_clean_pod_policy =
        api::ParseCleanPodPolicy(clean_pod_policy_).value_or(api::CleanPodPolicy::kNone);
    return OkStatus();
  });
}

Status ExplainVerb::ReadNow(const std::string& text) {
  if (text.empty()) return OkStatus();
  const auto now = ParseTime(text);
  if (now.ok()) options_.now = *now;
  return Annotate(now.status(), "--now");
}

}  // namespace

std::unique_ptr<Verb> MakeExplainVerb() {
  return std::make_unique<ExplainVerb>();
}

}  // namespace tfjob::cli
