// Checks whether the cluster of `tfjob run` will accept the objects of a manifest and those that
// the operator creates for its jobs. Creates all of them in a temporary store, so the rules of the
// store need not be implemented twice.
#pragma once

#include <map>
#include <string>

#include "operator/api/tfjob.h"
#include "operator/local/store/store.h"

namespace tfjob::local {

// Tries to create objects. They must have a namespace. `where` identifies them in messages. Every
// rejection is an InvalidArgument such as "job.yaml, document 2 (ConfigMap "A"): … metadata.name:
// …".
class DryRun {
 public:
  Status AddConfigMap(const Json& object, const std::string& where);
  // Tries to create the job, and the first pod and service of each replica type. `job` is `object`,
  // decoded and with defaults.
  Status AddJob(const Json& object, const api::TFJob& job, const std::string& where);

 private:
  Status Add(objects::Kind kind, const Json& object, const std::string& where);

  store::Store store_{{.deliver_by_hand = true}};
  std::map<client::Key, std::string> places_;
};

}  // namespace tfjob::local
