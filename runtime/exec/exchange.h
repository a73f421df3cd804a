// Lets the replicas of a step exchange values while their programs run. An op whose effect is
// graph::Effect::kExchange, such as AllReduceMean, calls an Exchange that the owner of the program
// provides (CompileOptions::exchange).
//
// All replicas must call the same exchanges in the same order. A program therefore runs its
// exchanges in the order of their numbers, which are their order in the graph. A replica without
// examples, which runs no program, must take part all the same. How exchanges are ordered among the
// other operations of the replicas, such as the sums of gradients, is up to the implementation; see
// strategy/gradient_buckets.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/graph/graph.h"
#include "runtime/kernels/kernel.h"
#include "runtime/tensor/dtype.h"

namespace tfjob::exec {

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Replaces `values` with their mean over all replicas, weighted by the replicas' numbers of
  // examples. `number` is the number of the exchange in the graph, from 0. Called on the thread
  // that runs the program, and blocks until the values of all replicas have arrived. If another
  // replica fails, returns an error, which ends the run.
  virtual Status AllReduceMean(int64_t number, DType dtype, std::span<std::byte> values) = 0;
};

// Describes an exchange of a graph.
struct PlannedExchange {
  std::string name;  // of the node: "batch_normalization/AllReduceMean"
  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  int position = 0;  // in the order in which programs compute the graph
};
// Returns the exchanges of the graph, in order. A program compiled from the graph has the same
// exchanges in the same order, regardless of what the passes change.
std::vector<PlannedExchange> ExchangesOf(const graph::Graph& graph);
// Returns, for each of these fetches of the graph, the position after which a program has announced
// it (CompileOptions::announced). A program announces the fetch before it runs any exchange with a
// greater position.
std::vector<int> AnnouncedAt(const graph::Graph& graph, const std::vector<std::string>& fetches);

// Prepares the kernel of an exchange. `exchange` must outlive the kernel. Returns Unimplemented if
// the device is not immediate (device_runtime.h), because its programs run without the host.
StatusOr<std::unique_ptr<kernels::Kernel>> PrepareExchange(const kernels::KernelRequest& request,
                                                           Exchange& exchange,
                                                           const Device& device);

}  // namespace tfjob::exec
