#include "operator/service/stale_watches.h"

#include <algorithm>
#include <optional>

#include "operator/client/client.h"

namespace tfjob::service {
namespace {

using kube::WatchTrouble;
using objects::Kind;

constexpr char kNoDefinition[] =
    "the CRD tfjobs.kubeflow.org is not installed: kubectl apply --server-side -f crds/";

bool IsRequired(Kind kind, policy::GangScheduler gang, policy::NetworkPolicies network_policies) {
  if (kind == Kind::kTFJob || kind == Kind::kPod || kind == Kind::kService) return true;
  if (kind == Kind::kNetworkPolicy) return policy::LetsJobsHaveOne(network_policies);
  const std::vector<Kind> kinds = policy::GangKindsOf(gang);
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

StaleWatches Explain(const WatchTrouble& trouble, const CheckServed& served) {
  StaleWatches stale{StaleAction::kReport, trouble.why.ToString(),
                     client::ToString({trouble.kind, trouble.name_space, "*"}), trouble.lasting};
  // Assume that other operators have the same trouble if the server throttles requests or refuses
  // permission. A server that throttles this operator's requests also throttles those of other
  // operators, and permissions belong to the service account, which all operators of a Deployment
  // share.
  stale.of_all = trouble.why.code() == StatusCode::kResourceExhausted ||
                 trouble.why.code() == StatusCode::kPermissionDenied;
  if (stale.of_all) return stale;
  const Status answer = served(trouble.kind);
  if (answer.code() != StatusCode::kNotFound) return stale;
  stale.of_all = true;
  stale.because = trouble.kind == Kind::kTFJob ? kNoDefinition : std::string(Message(answer));
  return stale;
}

// Explains the first trouble that another operator would not have or, if there is none, the first
// trouble.
StaleWatches Explain(const std::vector<WatchTrouble>& troubles, const CheckServed& served) {
  if (troubles.empty()) {
    const Status answer = served(Kind::kTFJob);
    return {StaleAction::kReport, answer.ok() ? "the server is slow" : answer.ToString()};
  }
  std::optional<StaleWatches> first;
  for (const WatchTrouble& trouble : troubles) {
    StaleWatches stale = Explain(trouble, served);
    if (!stale.of_all) return stale;
    if (!first) first = std::move(stale);
  }
  return *std::move(first);
}

void Leave(const std::string& what, StaleWatches& stale) {
  stale.action = StaleAction::kLeave;
  stale.leaving = StrCat("this leader has ", what, " for ", FormatDuration(stale.lasting), ": ",
                         stale.because, "; it leaves the lease to another");
}

}  // namespace

std::vector<WatchTrouble> RequiredWatches(std::vector<WatchTrouble> troubles,
                                          policy::GangScheduler gang,
                                          policy::NetworkPolicies network_policies) {
  std::erase_if(troubles, [&](const WatchTrouble& trouble) {
    return !IsRequired(trouble.kind, gang, network_policies);
  });
  return troubles;
}

StaleWatches JudgeMissingLists(const std::vector<WatchTrouble>& troubles,
                               const std::string& missing, bool leads, const CheckServed& served) {
  // Consider old trouble first: it may force the operator to give up the lease, so recent trouble
  // must not hide it.
  std::vector<WatchTrouble> old = troubles;
  std::erase_if(old, [](const WatchTrouble& trouble) { return trouble.lasting < kStaleAfter; });
  StaleWatches stale = Explain(old.empty() ? troubles : old, served);
  if (leads && stale.lasting >= kStaleAfter && !stale.of_all) {
    Leave(StrCat("waited for ", missing), stale);
  }
  return stale;
}

StaleWatches JudgeWatches(std::vector<WatchTrouble> troubles, bool leads,
                          const CheckServed& served) {
  std::erase_if(troubles,
                [](const WatchTrouble& trouble) { return trouble.lasting < kStaleAfter; });
  if (troubles.empty()) return {};
  StaleWatches stale = Explain(troubles, served);
  if (leads && !stale.of_all) Leave(StrCat("seen no change of ", stale.watch), stale);
  return stale;
}

}  // namespace tfjob::service
