// The contract of Client as tests, for every implementation:
//
//   INSTANTIATE_TEST_SUITE_P(Store, ContractTest, ::testing::Values(ContractTarget{"Store", [] { …
//   }}), ContractTargetName);
//
// Link //operator/client:contract; the tests live in contract.cc and contract_watch.cc.
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

// One server with a namespace that no other test uses.
class ContractWorld {
 public:
  virtual ~ContractWorld() = default;
  virtual Client& client() = 0;
  virtual std::string name_space() = 0;
  // Gives watch events a chance to arrive; called until what a test waits for is there.
  virtual void Pump() = 0;
  // Whether somebody deletes objects whose owners are gone.
  virtual bool collects_garbage() { return true; }
  // How long to wait for what is to happen.
  virtual Duration patience() { return 10s; }
};

struct ContractTarget {
  std::string name;
  std::function<std::unique_ptr<ContractWorld>()> make;
};
std::string ContractTargetName(const ::testing::TestParamInfo<ContractTarget>& target);

// Notes what a sink was told: "replaced a b", "upserted a", "deleted a".
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

  // Minimal objects, each with the label app=<app>.
  Json Job(const std::string& name);
  Json Pod(const std::string& name, const std::string& app, const std::string& node = "");
  Json Service(const std::string& name);
  // `object` with an owner reference to `owner`, its controller.
  static Json OwnedBy(Json object, const Object& owner);

  Object MustCreate(Kind kind, const Json& object);
  Json MustGetJson(Kind kind, const std::string& name);
  // Pumps until the condition holds; a failure of the test after the world's patience.
  void Eventually(const std::function<bool()>& condition, const std::string& what);

  std::unique_ptr<ContractWorld> world_;
};

}  // namespace tfjob::client
