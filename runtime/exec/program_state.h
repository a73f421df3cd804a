// Defines the internals of a Program, which the code for compiling, running and printing shares.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/plan.h"
#include "runtime/exec/program.h"
#include "runtime/kernels/stream.h"

namespace tfjob::exec {

// A prepared kernel with its operands' addresses.
struct Step {
  std::unique_ptr<kernels::Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<variables::Variable*> written;
};

// A kernel input that points into a caller's feed.
struct FedInput {
  int step;
  int input;
  int feed;
};

// Steps [begin, end), and the announced fetches that are ready after them.
struct Segment {
  int begin = 0;
  int end = 0;
  std::vector<int> announced;
};

struct Program::State {
  Plan plan;
  MemoryPlan memory;
  std::string device;
  DeviceMemory arena;
  void* workspace = nullptr;  // in the arena, after the buffers; fits every kernel
  size_t workspace_bytes = 0;
  std::vector<Port> feeds;
  std::vector<Port> fetches;
  std::vector<Step> steps;
  std::vector<FedInput> fed_inputs;
  std::vector<Segment> segments;
  std::vector<const std::byte*> fetched;  // address of each fetch
  kernels::Stream stream;
};

}  // namespace tfjob::exec
