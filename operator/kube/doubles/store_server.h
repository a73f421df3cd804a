// Implements an API server for tests. The server serves the objects of the in-memory store through
// the REST interface, so that tests can check the contract of client::Client over HTTP without a
// cluster. Supports only what KubeClient uses.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/local/store/store.h"

namespace tfjob::kube {

class StoreServer {
 public:
  struct Options {
    bool streaming_list = true;  // if false, watches with sendInitialEvents are refused
    bool protobuf = true;        // if false, pods and services are always sent as JSON
  };
  explicit StoreServer(Options options);
  ~StoreServer();

  ClusterConfig config() const;
  store::Store& store();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob::kube
