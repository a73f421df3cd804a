// Collects every metric of the operator: observes the control loop and the client, and prints the
// values as Prometheus text.
//
// Thread-safe. Counters of jobs and objects count only changes that the API server has
// acknowledged. Gauges that describe the caches are computed when the metrics are read.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/control/measurements/numbers.h"
#include "operator/control/measurements/observer.h"
#include "operator/events/counters.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/objects/kind.h"
#include "runtime/base/clock.h"

namespace tfjob::metrics {

class Metrics : public control::Observer, public kube::RestObserver {
 public:
  // `clock` must outlive this object.
  explicit Metrics(const std::string& version, Clock& clock = RealClock());
  ~Metrics() override;

  void OnStatus(const objects::ObjectMeta& job, const api::TFJobStatus& before,
                const api::TFJobStatus& after) override;
  void OnCreated(objects::Kind kind, const std::string& name_space) override;
  void OnCreateFailed(objects::Kind kind, const std::string& name_space) override;
  void OnDeleted(objects::Kind kind, const std::string& name_space) override;
  void OnReconciled(control::Result result, Duration took) override;
  void OnQueueAdd() override;
  void OnQueueGet(Duration waited) override;
  void OnQueueDone(Duration worked) override;
  void OnQueueRetry() override;
  void OnCall(const kube::RestCall& call) override;

  // Records whether this process holds the lease named `lease`.
  void SetLeader(const std::string& lease, bool leads);
  // Counts a renewal that had to read the lease named `lease` first.
  void OnSlowRenewal(const std::string& lease);
  void SetWorkers(int workers);
  // Sets the function that provides the gauges of the control loop; null while the loop is not
  // running. The function walks through the caches, whose lock the control loop needs, so its
  // result is reused for one second. Only one read calls the function at a time, and the call does
  // not block OnCall. A read in progress may still call the previous function.
  void SetSource(std::function<control::Numbers()> source);
  // Sets the function that provides the event counts. The printed counters never decrease, even if
  // the function returns lower counts.
  void SetEventSource(std::function<events::Counters()> source);

  // Returns the metrics in the exposition format, version 0.0.4:
  // https://prometheus.io/docs/instrumenting/exposition_formats/
  std::string Text();
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace tfjob::metrics
