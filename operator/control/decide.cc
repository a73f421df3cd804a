#include "operator/control/decide.h"

#include <utility>

#include "operator/control/observation.h"
#include "operator/keys/key_ring.h"
#include "operator/plan/plan.h"
#include "operator/policy/decide.h"
#include "operator/render/render.h"

namespace tfjob::control {

Decision Decide(const Observation& observation, const policy::DecisionOptions& options,
                const render::AddressScheme& address) {
  const api::TFJob& job = observation.job;
  const policy::Snapshot& snapshot = observation.snapshot;
  const auto refuse = [&](const Status& error) {
    return policy::Refuse(job, snapshot, error, observation.now, options);
  };
  const render::KeyScheme key = [&](const api::TFJob& of, const std::string& key_id) {
    return observation.keys == nullptr ? "" : observation.keys->JobKey(key_id, of.metadata.uid);
  };
  Decision decision;
  decision.verdict = observation.admitted.ok()
                         ? policy::Decide(job, snapshot, observation.now, options)
                         : refuse(observation.admitted);
  StatusOr<render::Desired> desired = render::Render(job, decision.verdict, address, key);
  if (!desired.ok()) {
    decision.verdict = refuse(desired.status());
    desired = render::Render(job, decision.verdict, address, key);
  }
  if (desired.ok()) decision.desired = *std::move(desired);
  decision.plan = plan::MakePlan(job, decision.verdict, decision.desired, snapshot);
  return decision;
}

}  // namespace tfjob::control
