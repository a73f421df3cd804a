// Tests that an implementation fulfils the contract of Client. Each implementation instantiates
// the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Store, ContractTest,
//                            ::testing::Values(ContractTarget{"Store", [] { … }}),
//                            ContractTargetName);
//
// Link //operator/client:contract. The tests are in contract.cc and contract_watch.cc.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::client {

// Provides a server, and a namespace on it that no other test uses.
class ContractWorld {
 public:
  virtual ~ContractWorld() = default;
  virtual Client& client() = 0;
  virtual std::string name_space() = 0;
  // Delivers pending watch events. Eventually() calls this until its condition is true.
  virtual void Pump() = 0;
  // Returns whether the server deletes objects whose owner has been deleted.
  virtual bool collects_garbage() { return true; }
  // Returns how long to wait for an expected change.
  virtual Duration patience() { return 10s; }
};

struct ContractTarget {
  std::string name;
  std::function<std::unique_ptr<ContractWorld>()> make;
};
std::string ContractTargetName(const ::testing::TestParamInfo<ContractTarget>& target);

// Records the calls to the sink as notes such as "replaced a b", "upserted a" and "deleted a".
class RecordingSink : public WatchSink {
 public:
  void OnReplaced(std::vector<Object> objects) override;
  void OnUpserted(Object object) override;
  void OnDeleted(Object last_state) override;
  std::vector<std::string> Notes();

 private:
  void Note(std::string note);

  Mutex mutex_;
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mutex_);
};

class ContractTest : public ::testing::TestWithParam<ContractTarget> {
 protected:
  ContractTest() : world_(GetParam().make()) {}

  Client& client() { return world_->client(); }
  Key KeyOf(Kind kind, const std::string& name) { return {kind, world_->name_space(), name}; }

  // Return minimal objects. The pod has the label app=<app>.
  Json Job(const std::string& name);
  Json Pod(const std::string& name, const std::string& app, const std::string& node = "");
  Json Service(const std::string& name);
  // Returns `object` with an owner reference that makes `owner` its controller.
  static Json OwnedBy(Json object, const Object& owner);

  Object MustCreate(Kind kind, const Json& object);
  Json MustGetJson(Kind kind, const std::string& name);
  // Pumps until the condition is true. Fails the test if this takes longer than the
  // world's patience.
  void Eventually(const std::function<bool()>& condition, const std::string& what);

  std::unique_ptr<ContractWorld> world_;
};

}  // namespace tfjob::client
