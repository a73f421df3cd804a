// Compiles a graph for one device and runs it. The compiled program is a static schedule of
// prepared kernels over planned memory.
//
//   ASSIGN_OR_RETURN(auto program, Compile(graph, store, CpuDevice(&pool), {}));
//   // In the order of program->feeds():
//   Feed feeds[] = {Feed::Of(images), Feed::Of(labels), Feed::Of(step), Feed::Of(seed)};
//   RETURN_IF_ERROR(program->Run(feeds));
//   float loss = program->Fetch<float>(program->FindFetch("loss"))[0];
//
// On a device that is not immediate (device_runtime.h), two runs may be in progress, so that the
// feeds of the second are copied while the first is computing:
//
//   ASSIGN_OR_RETURN(Ticket first, program->Start(feeds));
//   ASSIGN_OR_RETURN(Ticket second, program->Start(next_feeds));
//   RETURN_IF_ERROR(first.Wait());   // Fetch now returns the values of the first run
//   RETURN_IF_ERROR(second.Wait());
//
// Compiling may be slow and may fail. Running allocates no memory (apart from packing buffers
// inside oneDNN). It fails only if the device fails, or if a feed is missing, has the wrong dtype
// or size, or contains values that an op cannot use, or if an exchange with other replicas fails
// (exchange.h). A program borrows the store's variables and
// the device's pool. Both must outlive the program. Programs compiled with the same store share its
// variables, so only one of these programs may have runs in progress at any time.
#pragma once

#include <cstdint>
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
#include "runtime/exec/exchange.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/tensor.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {

// A dense row-major value in the caller's memory. Kernels may read this memory directly, so it must
// stay valid and unchanged until Run returns or, if the run was started by Start, until Wait of its
// ticket returns. On a device that is not immediate, Start copies a value in the host's memory, so
// the value may change as soon as Start returns.
struct Feed {
  DType dtype = DType::kFloat32;
  std::span<const std::byte> bytes;
  // The value is in the device memory of the program's runtime instead of the host's memory. The
  // host must have waited for the operations that wrote it.
  bool on_device = false;

  template <typename T>
  static Feed Of(std::span<T> values) {
    return {DTypeOf<std::remove_const_t<T>>::value, std::as_bytes(values)};
  }
  // Feeds a scalar, which must outlive the run.
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
  // The fetches by name, in the order in which the program numbers them. If empty, the program has
  // all fetches of the graph.
  std::vector<std::string> fetches;
  // The fetches, such as gradients, that Run or Wait announces as soon as they are computed. The
  // schedule is split into segments at these points.
  std::vector<std::string> announced;
  // Announced fetches that the program computes directly in memory that the caller provides
  // (Program::Place), so that the caller need not copy them. This is not possible for a fetch that
  // the program reads after it has announced it, that shares its memory with another fetch, or that
  // is not computed (a constant), nor on a device that is not immediate; Program::Places tells for
  // which fetches it is possible.
  std::vector<std::string> placed;
  // Fetches that stay in the device's memory instead of being copied to the host
  // (Program::KeptBytes). Ignored on an immediate device, where the host may access all memory.
  std::vector<std::string> kept;
  // The replicas of a step, with which the exchanges of the graph (graph::Effect::kExchange)
  // exchange values. Must outlive the program. If null, there are no other replicas, and the graph
  // is compiled without its exchanges.
  Exchange* exchange = nullptr;
  // If set, the passes of graph/passes.h, FuseSgd and FuseBiasGradient rewrite the graph before it
  // is compiled, and GroupUpdates changes its plan.
  bool optimize = true;
};

// A feed or fetch as the caller sees it. Its value is dense.
struct Port {
  std::string name;
  graph::TensorType type;
};

class Program;

// The largest number of runs of one program that may be in progress.
inline constexpr size_t kMaxRuns = 2;

// A run that has been started. The program must outlive its tickets. The caller must wait for each
// ticket, in the order in which the runs were started. A run is in progress until its Wait returns.
class Ticket {
 public:
  // Waits until the run has finished, and returns its error (see Program::Run). The fetches then
  // have the values of this run. Returns FailedPrecondition if this is not the oldest run in
  // progress.
  Status Wait();
  // Like Wait(), but calls on_ready(i) on the calling thread as soon as an announced fetch has been
  // computed, where i is the fetch's position in fetches(). Fetches are announced in the order of
  // the schedule. An announced value is final, and stays valid as long as the values of other
  // fetches do (see FetchBytes). `on_ready` must not run the program.
  Status Wait(absl::FunctionRef<void(int)> on_ready);

 private:
  friend class Program;
  Ticket(Program* program, int64_t run) : program_(program), run_(run) {}

  Program* program_;
  int64_t run_;
};

class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Returns the feeds, which are the graph's placeholders in the graph's order.
  const std::vector<Port>& feeds() const;
  const std::vector<Port>& fetches() const;
  // Return the position of the feed or fetch with this name, or -1 if there is none.
  int FindFeed(std::string_view name) const;
  int FindFetch(std::string_view name) const;
  // Returns the variables that the program writes, in the order in which it first writes them.
  const std::vector<variables::Variable*>& written() const;

  // Runs the program once. `feeds` are in the order of feeds(). If a feed is missing
  // (default-constructed) or has the wrong dtype or size, returns InvalidArgument, with a message
  // that names the feed, and runs nothing. Otherwise increments the version of every variable that
  // the program writes. A copy of a variable that is in progress (Variable::BeginCopy) is finished
  // just before the program first writes that variable.
  //
  // Returns the error of the first op that rejects the values of its inputs (for example, Gather
  // with an index beyond the table's rows), and runs no op after that one. Moving statistics
  // assigned earlier in the run stay assigned, but no optimizer has run. The runs that were started
  // before this one ended then return the same error, and change no variable.
  Status Run(std::span<const Feed> feeds);
  // Like Run(feeds), but also calls on_ready(i) for announced fetches, like Ticket::Wait(on_ready).
  Status Run(std::span<const Feed> feeds, absl::FunctionRef<void(int)> on_ready);

  // Starts a run and returns without waiting for it. The run has been executed by the time Wait of
  // its ticket returns; on a CPU, the thread that calls Wait executes it. Runs are executed one
  // after another, in the order in which they were started. Returns InvalidArgument as Run does,
  // and FailedPrecondition if kMaxRuns runs are in progress, or if a fetch has no memory (Place).
  // The variables that the program uses must not be accessed until the run has finished.
  StatusOr<Ticket> Start(std::span<const Feed> feeds);

  // Returns the dense value of a fetch in the last run that was waited for. The fetch must not be
  // kept on the device. The value is valid
  // until the next Run, Start or Wait. Before the first run, computed values are zeros, except in
  // the memory of a placed fetch. The address never changes if no run is started while another is
  // in progress, unless Place changes it.
  std::span<const std::byte> FetchBytes(int fetch) const;
  template <typename T>
  std::span<const T> Fetch(int fetch) const {
    ENFORCE(fetch >= 0 && DTypeOf<T>::value == fetches()[static_cast<size_t>(fetch)].type.dtype,
            "a fetch of the program, by its element type");
    const auto bytes = FetchBytes(fetch);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // Returns whether the fetch stays in the device's memory (CompileOptions::kept).
  bool Keeps(int fetch) const;
  // Returns the value of such a fetch, in the device's memory. It is valid from the time when the
  // fetch is announced or, if it is not announced, when Wait returns, until the next Run or Start.
  // The address never changes.
  std::span<const std::byte> KeptBytes(int fetch) const;

  // Returns whether the program computes the fetch in the caller's memory (CompileOptions::placed).
  bool Places(int fetch) const;
  // Sets the memory of such a fetch, which has the size of its value and is aligned to kAlignment
  // (memory_plan.h). Call Place before the first run, and whenever the memory moves; no run may be
  // in progress. A run writes to this memory until it announces the fetch, not only the fetch's
  // value, and does not access it afterwards.
  void Place(int fetch, std::span<std::byte> memory);

  // Return the size of the arena, and the size that the arena would have if no memory were reused.
  size_t arena_bytes() const;
  size_t unshared_bytes() const;

  // Returns the program as text: totals, feeds, the schedule with its segments and the buffers'
  // offsets, and fetches. The text is always the same for the same program.
  std::string ToString() const;

 private:
  friend class Compiler;
  friend class RunSlot;
  friend class Ticket;
  struct State;
  Status WaitFor(int64_t run, absl::FunctionRef<void(int)> on_ready);
  Status RunHere(std::span<const Feed> feeds, absl::FunctionRef<void(int)> on_ready);
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Compiles the graph. Creates the optimizer slots that the store lacks. Fails if a variable is
// missing or differs from what the graph expects, if the device lacks a kernel or memory, or if the
// graph lacks a requested fetch.
StatusOr<std::unique_ptr<Program>> Compile(const graph::Graph& graph,
                                           variables::VariableStore& store, const Device& device,
                                           const CompileOptions& options = {});

}  // namespace tfjob::exec
