#include "operator/cli/verbs/job_flags.h"

#include <sstream>

namespace tfjob::cli {
namespace {

Status CheckSelection(const FlagSet& flags, const Selection& selection) {
  if (!selection.all_namespaces) return OkStatus();
  if (!selection.names.empty()) {
    return InvalidArgument(
        "--all-namespaces: cannot be combined with names of TFJobs; give their "
        "namespace with --namespace");
  }
  if (!flags.LastText("--namespace").empty()) {
    return InvalidArgument("--all-namespaces and --namespace are mutually exclusive");
  }
  return OkStatus();
}

}  // namespace

void AddJobName(FlagSet& flags, std::string& name) {
  flags.Text("JOB", name, "Name of a TFJob").Require().Complete(CompleteWith::kJob);
}

void AddJobNames(FlagSet& flags, std::vector<std::string>& names) {
  flags.Repeated("JOB", names, "Names of TFJobs").Require().Complete(CompleteWith::kJobs);
}

void AddSelection(FlagSet& flags, Selection& selection) {
  flags.Repeated("JOB", selection.names, "Names of TFJobs (default: all)")
      .Complete(CompleteWith::kJobs);
  flags.Switch("-A,--all-namespaces", selection.all_namespaces, "TFJobs of all namespaces");
  flags.TextAs(
      "-l,--selector",
      [&selection](const std::string& text) -> Status {
        ASSIGN_OR_RETURN(selection.labels, ParseSelector(text));
        return OkStatus();
      },
      "Only TFJobs with these labels: KEY=VALUE,...");
  flags.Check([&flags, &selection] { return CheckSelection(flags, selection); });
}

void AddReplicaChoice(FlagSet& flags, ReplicaChoice& choice) {
  const auto read = [&choice](const std::vector<std::string>& texts) -> Status {
    ASSIGN_OR_RETURN(choice, ReplicaChoice::Parse(texts));
    return OkStatus();
  };
  flags
      .RepeatedAs("--replica", read,
                  "Only this replica, such as worker/1, or this replica type; may be repeated")
      .CompleteWords({"chief", "evaluator", "master", "ps", "worker"});
}

StatusOr<client::LabelSelector> ParseSelector(const std::string& text) {
  client::LabelSelector labels;
  std::istringstream pairs(text);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || pair.find("!=") != std::string::npos) {
      return InvalidArgument("--selector: expected KEY=VALUE, got \"", pair, "\"");
    }
    const size_t value = pair.find_first_not_of('=', equals);
    labels[pair.substr(0, equals)] = value == std::string::npos ? "" : pair.substr(value);
  }
  return labels;
}

}  // namespace tfjob::cli
