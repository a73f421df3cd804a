// Provides jobs and a store for the tests of the manager.
#pragma once

#include <string>

#include "operator/local/store/store.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::control::fixtures {

// Returns a TFJob in namespace "ns" that has only workers, which are restarted if they fail.
inline Json Job(const std::string& name, int workers) {
  const Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  const Json pod_template = {{"spec", {{"containers", Json::array({container})}}}};
  const Json worker = {
      {"replicas", workers}, {"restartPolicy", "OnFailure"}, {"template", pod_template}};
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"name", name}, {"namespace", "ns"}}},
          {"spec", {{"tfReplicaSpecs", {{"Worker", worker}}}}}};
}

inline size_t CountPods(store::Store& store) {
  return store.List(objects::Kind::kPod, "", {})->size();
}

// Returns the options of a store whose watches report changes only when the test calls Deliver().
inline store::StoreOptions DeliveredByHand(Clock& clock) {
  store::StoreOptions options;
  options.clock = &clock;
  options.deliver_by_hand = true;
  options.node_name = "node-1";
  return options;
}

}  // namespace tfjob::control::fixtures
