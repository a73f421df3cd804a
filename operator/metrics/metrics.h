// Every metric of the operator: listens to the control loop and the client, and prints itself as Prometheus text.
//
// Thread-safe. Counters are counted on what the server has acknowledged. Gauges of what the caches hold are asked for
// when somebody reads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/control/manager.h"
#include "operator/control/observer.h"
#include "operator/events/counters.h"
#include "operator/kube/rest/rest_client.h"

namespace tfjob::metrics {

class Metrics : public control::Observer, public kube::RestObserver {
 public:
  explicit Metrics(const std::string& version);
  ~Metrics() override;

  void OnStatus(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                const api::TFJobStatus& after, Time now) override;
  void OnCreated(client::Kind kind, const std::string& name_space) override;
  void OnCreateFailed(client::Kind kind, const std::string& name_space) override;
  void OnDeleted(client::Kind kind, const std::string& name_space) override;
  void OnReconciled(control::Result result, Duration took) override;
  void OnQueueAdd() override;
  void OnQueueGet(Duration waited) override;
  void OnQueueDone(Duration worked) override;
  void OnQueueRetry() override;
  void OnCall(const kube::RestCall& call) override;

  // Whether this process leads, by the name of the lease.
  void SetLeader(const std::string& lease, bool leads);
  // A renewal had to read the lease first.
  void OnSlowRenewal(const std::string& lease);
  void SetWorkers(int workers);
  // Where gauges come from while the control loop runs; an empty function: it does not. Called outside of every lock; a
  // reading that is under way may still call the one before.
  void SetSource(std::function<control::Manager::Numbers()> source);
  // The same for what became of events; what they are counted in never goes back.
  void SetEventSource(std::function<events::Counters()> source);

  // The exposition format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
  std::string Text();
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace tfjob::metrics
