// Whether the cluster of `tfjob run` will take the objects of a manifest and those that the operator
// makes of its jobs: they are given to a store that is thrown away, so that no rule of the store
// exists twice.
#pragma once

#include <map>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/local/store/store.h"

namespace tfjob::local {

// Objects come with their namespaces; `where` names them in messages. Every refusal is
// InvalidArgument: "job.yaml, document 2 (ConfigMap "A"): … metadata.name: …".
class DryRun {
 public:
  Status AddConfigMap(const Json& object, const std::string& where);
  // `job` is the same one with its defaults: the first pod and service of each type are tried too.
  Status AddJob(const Json& object, const api::TFJob& job, const std::string& where);

 private:
  Status Add(client::Kind kind, const Json& object, const std::string& where);

  store::Store store_{{.deliver_by_hand = true}};
  std::map<client::Key, std::string> places_;
};

}  // namespace tfjob::local
