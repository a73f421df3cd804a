// Runs a cluster inside this process: the store, the control loop, and the process runner.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::api {
struct ReplicaId;
struct TFJob;
}  // namespace tfjob::api
namespace tfjob::client {
class Client;
}
namespace tfjob::process {
struct RunnerOptions;
}

namespace tfjob::local {

struct Workload;

class LocalCluster {
 public:
  // Chooses the ports for the workload's jobs and starts everything. Does not create the jobs.
  static StatusOr<std::unique_ptr<LocalCluster>> Create(const Workload& workload,
                                                        process::RunnerOptions options);
  ~LocalCluster();

  client::Client& client();
  // Creates the ConfigMaps, then the jobs.
  Status Submit(const Workload& workload);
  // Returns the address at which a task of the job listens, such as "127.0.0.1:4711".
  std::string AddressOf(const api::TFJob& job, const api::ReplicaId& slot) const;

 private:
  struct Parts;

  LocalCluster();

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tfjob::local
