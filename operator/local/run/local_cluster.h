// Runs a cluster inside this process: the store, the control loop, and the process runner.
#pragma once

#include <memory>
#include <string>

#include "operator/control/manager.h"
#include "operator/local/loopback_ports.h"
#include "operator/local/process/runner.h"
#include "operator/local/run/workload.h"
#include "operator/local/store/store.h"

namespace tfjob::local {

class LocalCluster {
 public:
  // Chooses the ports of the workload's jobs and starts everything. Does not create the jobs.
  static StatusOr<std::unique_ptr<LocalCluster>> Create(const Workload& workload,
                                                        process::Options options);

  client::Client& client() { return store_; }
  // Creates the ConfigMaps, then the jobs.
  Status Submit(const Workload& workload);
  // Returns the address at which a task of the job listens: "127.0.0.1:port".
  std::string AddressOf(const api::TFJob& job, const policy::Slot& slot) const {
    return address_(job, slot);
  }

 private:
  LocalCluster();

  local::LoopbackPorts ports_;
  render::AddressScheme address_;
  store::Store store_;
  std::unique_ptr<process::Runner> runner_;
  std::unique_ptr<control::Manager> manager_;
};

}  // namespace tfjob::local
