// A graph compiled for one device: a static schedule of prepared kernels over planned memory.
//
//   ASSIGN_OR_RETURN(auto program, Compile(graph, store, CpuDevice(&pool), {}));
//   Feed feeds[] = {Feed::Of(images), Feed::Of(labels), Feed::Of(step), Feed::Of(seed)};  // as
//   program->feeds() orders them RETURN_IF_ERROR(program->Run(feeds)); float loss =
//   program->Fetch<float>(program->FindFetch("loss"))[0];
//
// Compiling may be slow and may fail; Run neither allocates nor fails once the feeds fit. A program
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

// A dense row-major value in the caller's memory. Kernels read it where it is: it must stay until
// Run returns.
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
  // Names among the graph's fetches, in the order in which the program numbers them. Empty: all of
  // the graph's.
  std::vector<std::string> fetches;
  // Fetches (gradients) that Run announces as soon as they are computed; each ends a segment.
  std::vector<std::string> announced;
  // Runs the passes of graph/passes.h first.
  bool optimize = true;
};

// A feed or fetch as seen from outside: dense.
struct Port {
  std::string name;
  graph::TensorType type;
};

class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // The graph's placeholders in its order, and the fetches.
  const std::vector<Port>& feeds() const;
  const std::vector<Port>& fetches() const;
  // Position by name; -1 when there is none.
  int FindFeed(std::string_view name) const;
  int FindFetch(std::string_view name) const;

  // One run. `feeds` in the order of feeds(). InvalidArgument, before anything runs, names the feed
  // that is missing (empty bytes), of another dtype or size. The versions of written variables grow
  // by one.
  Status Run(std::span<const Feed> feeds);
  // `on_ready(i)` is called in the running thread when announced fetch i (its position in
  // fetches()) is computed, in the order of the schedule; the value stays until Run returns and
  // after. It must not run the program.
  Status Run(std::span<const Feed> feeds, absl::FunctionRef<void(int)> on_ready);

  // The dense value of a fetch, until the next Run. Zeros before the first.
  std::span<const std::byte> FetchBytes(int fetch) const;
  template <typename T>
  std::span<const T> Fetch(int fetch) const {
    ENFORCE(fetch >= 0 && DTypeOf<T>::value == fetches()[static_cast<size_t>(fetch)].type.dtype,
            "a fetch of the program, by its element type");
    const auto bytes = FetchBytes(fetch);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Bytes of the arena; of the same values without reuse.
  size_t arena_bytes() const;
  size_t unshared_bytes() const;

  // Feeds, buffers with offsets, the schedule with its segments, fetches, totals. Stable.
  std::string ToString() const;

 private:
  friend class Compiler;
  struct State;
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Creates the slots that ApplyOptimizer ops need and the store lacks. Fails when a variable is
// missing or differs from what the graph expects, when the device lacks a kernel, or for a fetch
// that the graph does not have.
StatusOr<std::unique_ptr<Program>> Compile(const graph::Graph& graph,
                                           variables::VariableStore& store, const Device& device,
                                           const CompileOptions& options = {});

}  // namespace tfjob::exec
