// A graph compiled for one device: a static schedule of prepared kernels over planned memory.
//
//   ASSIGN_OR_RETURN(auto program, Compile(graph, store, CpuDevice(&pool), {}));
//   // In the order of program->feeds():
//   Feed feeds[] = {Feed::Of(images), Feed::Of(labels), Feed::Of(step), Feed::Of(seed)};
//   RETURN_IF_ERROR(program->Run(feeds));
//   float loss = program->Fetch<float>(program->FindFetch("loss"))[0];
//
// Compiling may be slow and may fail. Run neither allocates nor fails once the feeds fit. A program
// borrows the store's variables and the device's pool, which must outlive it. Programs over one
// store share its variables; at most one of them runs at a time, in any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/check.h"
#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/tensor.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {

// A dense row-major value in the caller's memory. Kernels read it in place, so it must stay valid
// until Run returns.
struct Feed {
  DType dtype = DType::kFloat32;
  std::span<const std::byte> bytes;

  template <typename T>
  static Feed Of(std::span<T> values) {
    return {DTypeOf<std::remove_const_t<T>>::value, std::as_bytes(values)};
  }
  // A scalar that outlives the run.
  template <typename T>
  static Feed Of(const T& value) {
    return {DTypeOf<T>::value, std::as_bytes(std::span<const T>(&value, 1))};
  }
  template <typename T>
    requires std::is_arithmetic_v<T>
  static Feed Of(const T&& temporary) = delete;
  static Feed Of(const Tensor& tensor) { return {tensor.dtype(), tensor.bytes()}; }
};

struct CompileOptions {
  // Names of the graph's fetches, in the order in which the program numbers them. Empty: all
  // fetches of the graph.
  std::vector<std::string> fetches;
  // Fetches (gradients) that Run announces as soon as they are computed. Each ends a segment.
  std::vector<std::string> announced;
  // Runs the passes of graph/passes.h first.
  bool optimize = true;
};

// A feed or fetch as a caller sees it: dense.
struct Port {
  std::string name;
  graph::TensorType type;
};

class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The graph's placeholders, in its order, and the fetches.
  const std::vector<Port>& feeds() const;
  const std::vector<Port>& fetches() const;
  // Return the position of a name; -1 if there is none.
  int FindFeed(std::string_view name) const;
  int FindFetch(std::string_view name) const;

  // Runs the program once. `feeds` are in the order of feeds(). Before anything runs, returns
  // InvalidArgument, naming the feed, if a feed is missing (empty bytes) or has another dtype or
  // size. The versions of written variables grow by one.
  Status Run(std::span<const Feed> feeds);
  // Calls `on_ready(i)` in the running thread when announced fetch i (its position in fetches()) is
  // computed, in the order of the schedule. The value stays valid until Run returns and afterwards.
  // `on_ready` must not run the program.
  Status Run(std::span<const Feed> feeds, absl::FunctionRef<void(int)> on_ready);

  // Returns the dense value of a fetch, valid until the next Run. Zeros before the first Run.
  std::span<const std::byte> FetchBytes(int fetch) const;
  template <typename T>
  std::span<const T> Fetch(int fetch) const {
    ENFORCE(fetch >= 0 && DTypeOf<T>::value == fetches()[static_cast<size_t>(fetch)].type.dtype,
            "a fetch of the program, by its element type");
    const auto bytes = FetchBytes(fetch);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Bytes of the arena, and the bytes that the same values would take without reuse.
  size_t arena_bytes() const;
  size_t unshared_bytes() const;

  // Prints feeds, buffers with offsets, the schedule with its segments, fetches and totals. Stable.
  std::string ToString() const;

 private:
  friend class Compiler;
  struct State;
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Compiles the graph. Creates the slots that ApplyOptimizer ops need and the store lacks. Fails if
// a variable is missing or differs from what the graph expects, if the device lacks a kernel, or
// for a fetch that is not in the graph.
StatusOr<std::unique_ptr<Program>> Compile(const graph::Graph& graph,
                                           variables::VariableStore& store, const Device& device,
                                           const CompileOptions& options = {});

}  // namespace tfjob::exec
