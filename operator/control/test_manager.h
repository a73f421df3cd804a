// Runs a manager step by step, for tests.
//
//   SteppedManager<> stepped;
//   stepped.options.settings.count_patience = 200ms;
//   stepped.Start();
//   stepped.Create(fixtures::Job("a", 2));
//   stepped.Rest();
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "operator/client/faults.h"
#include "operator/control/manager.h"
#include "operator/control/test_fixtures.h"
#include "operator/local/store/store.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/log.h"

namespace tfjob::control {

// Contains a store whose watches report changes only when they are delivered, and a manager without
// threads that uses the store through a `Client`. Logs only errors.
template <typename Client = client::FaultyClient>
class SteppedManager {
 public:
  explicit SteppedManager(bool keep_changes = false) : store(OptionsOf(keep_changes, clock)) {
    ConfigureLogging(LogLevel::kError, LogFormat::kText);
    options.workers = options.parallel_writes = 0;
    options.clock = &clock;
    options.settings.address = render::ClusterDns("");
  }

  // Starts the manager with `options`.
  void Start() { manager = *Manager::Start(client, options); }
  void Create(const Json& job) { EXPECT_TRUE(store.Create(objects::Kind::kTFJob, job).ok()); }
  // Reconciles until there is nothing to do, without delivering the watches' reports.
  void Step() {
    while (manager->Step()) {
    }
  }
  // Like Step, but also delivers the watches' reports.
  void Rest() {
    while (store.Deliver() + (manager->Step() ? 1 : 0) > 0) {
    }
  }
  // Returns how many calls of the manager satisfy `matches`.
  int Count(const std::function<bool(const client::Call&)>& matches) {
    return static_cast<int>(std::ranges::count_if(client.Calls(), matches));
  }
  int Count(client::Verb verb, objects::Kind kind) {
    return Count(
        [&](const client::Call& call) { return call.verb == verb && call.key.kind == kind; });
  }

  FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store store;
  Client client{store};
  ManagerOptions options;
  std::unique_ptr<Manager> manager;

 private:
  static store::StoreOptions OptionsOf(bool keep_changes, Clock& clock) {
    store::StoreOptions options = fixtures::DeliveredByHand(clock);
    options.keep_changes = keep_changes;
    return options;
  }
};

}  // namespace tfjob::control
