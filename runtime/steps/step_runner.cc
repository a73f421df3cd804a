#include "runtime/steps/step_runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/tensor/half.h"

namespace tfjob::steps {

// Contains the program of a device for one number of rows.
struct StepRunner::Compiled {
  std::unique_ptr<exec::Program> program;
  std::vector<exec::Feed> feeds;
  std::vector<int> inputs;            // indices of the feeds; -1 for unused inputs
  BuiltStep built;                    // without the graph
  std::vector<Tensor> parts;          // the input rows for this device; empty if these are all rows
  std::vector<int> changes, results;  // indices of the fetches
};

struct StepRunner::OnDevice {
  std::map<int64_t, std::unique_ptr<Compiled>> compiled;  // keyed by the number of rows
  Compiled* last = nullptr;  // used in the current run; null if the device has no rows
  // Used only if there are several replicas: the values that are summed over the replicas, and the
  // program that applies the changes. All values of the same type are parts of one array, so that a
  // single operation sums them. The values are the changes and, if there are several tasks, the
  // reduced results.
  std::vector<Change> order;
  std::vector<DType> dtypes;  // types of the changes
  std::vector<std::span<std::byte>> changes;
  std::vector<std::span<std::byte>> results;  // per result; empty if it is not summed here
  std::vector<Tensor> arrays;
  std::unique_ptr<exec::Program> updates;
  std::vector<exec::Feed> update_feeds;
};

namespace {

constexpr size_t kAlignment = 64;  // alignment of the changes, for kernels

// Divides one array per type among values.
class Arrays {
 public:
  void Add(const graph::TensorType& type) {
    const size_t size = static_cast<size_t>(type.shape.num_elements()) * SizeOf(type.dtype);
    size_t& end = sizes_[type.dtype];
    parts_.push_back({type.dtype, end, size});
    end += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::vector<Tensor> Allocate() const {
    std::vector<Tensor> arrays;
    for (const auto& [dtype, size] : sizes_)
      arrays.emplace_back(dtype, Shape({static_cast<int64_t>(size / SizeOf(dtype))}));
    return arrays;
  }
  // Returns the part of a value, by the order of Add, in arrays that Allocate has returned.
  std::span<std::byte> PartOf(std::vector<Tensor>& arrays, size_t value) const {
    const Part& part = parts_[value];
    const auto array = std::ranges::find(arrays, part.dtype, &Tensor::dtype);
    return array->bytes().subspan(part.begin, part.size);
  }

 private:
  struct Part {
    DType dtype;
    size_t begin, size;
  };
  std::vector<Part> parts_;
  std::map<DType, size_t> sizes_;
};

// Adds the elements of `from` to the elements of `to`, which have the same type.
template <typename T>
void AddTo(std::span<const std::byte> from, Tensor& to) {
  const auto* values = reinterpret_cast<const T*>(from.data());
  std::span<T> sums = to.data<T>();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
}

Status AddBytes(const Result& result, std::span<const std::byte> from, Tensor& to) {
  switch (to.dtype()) {
    case DType::kFloat32:
      AddTo<float>(from, to);
      return OkStatus();
    case DType::kFloat64:
      AddTo<double>(from, to);
      return OkStatus();
    case DType::kInt32:
      AddTo<int32_t>(from, to);
      return OkStatus();
    case DType::kInt64:
      AddTo<int64_t>(from, to);
      return OkStatus();
    default:
      return InvalidArgument("result ", result.name, ": expected numbers to reduce, got ",
                             Name(to.dtype()), "; use ops::Cast");
  }
}

template <typename T>
void Scale(std::span<std::byte> bytes, double factor) {
  auto* values = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i)
    values[i] = static_cast<T>(static_cast<double>(values[i]) * factor);
}

void ScaleFloats(DType dtype, std::span<std::byte> bytes, double factor) {
  if (factor == 1) return;
  if (dtype == DType::kFloat64) return Scale<double>(bytes, factor);
  if (dtype == DType::kFloat32) Scale<float>(bytes, factor);
}

// Sets the feed `name`, if the program uses it. The value must outlive the program.
void SetFeed(const exec::Program& program, const std::string& name, const exec::Feed& value,
             std::vector<exec::Feed>& feeds) {
  const int at = program.FindFeed(name);
  if (at >= 0) feeds[static_cast<size_t>(at)] = value;
}

// Copies the rows for one device from the whole input.
void CopyRows(const Tensor& whole, const collectives::Slice& rows, Tensor& part) {
  const size_t row = whole.num_bytes() / static_cast<size_t>(whole.shape().dim(0));
  std::ranges::copy(whole.bytes().subspan(static_cast<size_t>(rows.begin) * row, part.num_bytes()),
                    part.bytes().begin());
}

Status CheckReductions(const Definition& definition, const BuiltStep& built) {
  for (size_t i = 0; i < definition.results.size(); ++i) {
    const Result& result = definition.results[i];
    if (IsHalf(built.results[i].dtype)) {
      return InvalidArgument("result ", result.name,
                             ": expected a type that an array of the API has, ", "got ",
                             Name(built.results[i].dtype), "; use ops::Cast");
    }
    if (result.reduction == Reduction::kNone) continue;
    const DType dtype = built.results[i].dtype;
    const bool floats = dtype == DType::kFloat32 || dtype == DType::kFloat64;
    const bool numbers = floats || dtype == DType::kInt32 || dtype == DType::kInt64;
    if (result.reduction == Reduction::kMean ? floats : numbers) continue;
    return InvalidArgument("result ", result.name, ": expected ",
                           result.reduction == Reduction::kMean ? "float32 or float64 for a mean"
                                                                : "numbers to reduce",
                           ", got ", Name(dtype), "; use ops::Cast");
  }
  return OkStatus();
}

// The gradients of a step are sums over the devices, but exchanges assume means (graph/ops.h).
Status CheckNoExchanges(const graph::Graph& graph) {
  const std::vector<exec::PlannedExchange> exchanges = exec::ExchangesOf(graph);
  if (exchanges.empty()) return OkStatus();
  return Unimplemented("the layer with the op ", exchanges[0].name, " has synchronized: true, ",
                       "which custom training steps support only on one device; ",
                       "use synchronized: false, one device, or Model::Fit");
}

}  // namespace

StepRunner::StepRunner(Definition definition, std::shared_ptr<Memory> memory)
    : definition_(std::move(definition)),
      memory_(std::move(memory)),
      changes_(definition_.models.size()),
      applies_(definition_.models.size()),
      steps_(definition_.models.size()) {
  for (int i = 0; i < memory_->devices(); ++i) devices_.push_back(std::make_unique<OnDevice>());
}

StepRunner::~StepRunner() = default;

StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(Definition definition,
                                                         std::shared_ptr<Memory> memory) {
  RETURN_IF_ERROR(Check(definition));
  std::unique_ptr<StepRunner> runner(new StepRunner(std::move(definition), std::move(memory)));
  const Definition& own = runner->definition_;
  for (const Application& application : own.applications) {
    const auto m = static_cast<size_t>(application.model);
    runner->applies_[m] = true;
    RETURN_IF_ERROR(runner->memory_->AddSlots(own.models[m]));
  }
  ASSIGN_OR_RETURN(const BuiltStep built, BuildStep(own, 1, 0, /*updates=*/false));
  RETURN_IF_ERROR(CheckReductions(own, built));
  if (runner->memory_->replicas() > 1) RETURN_IF_ERROR(CheckNoExchanges(built.graph));
  for (const Change& change : built.changes) runner->changes_[change.model] = true;
  runner->results_ = built.results;
  if (runner->memory_->replicas() > 1) RETURN_IF_ERROR(runner->PrepareUpdates(built));
  return runner;
}

Status StepRunner::PrepareUpdates(const BuiltStep& built) {
  ASSIGN_OR_RETURN(const graph::Graph updates, BuildUpdates(definition_, built));
  for (int i = 0; i < memory_->devices(); ++i) {
    OnDevice& device = *devices_[static_cast<size_t>(i)];
    Memory::Place& place = memory_->place(i);
    AllocateSums(built.changes, device);
    if (built.changes.empty()) continue;
    ASSIGN_OR_RETURN(device.updates, exec::Compile(updates, *place.store, place.device));
    device.update_feeds.resize(device.updates->feeds().size());
    for (size_t c = 0; c < built.changes.size(); ++c) {
      SetFeed(*device.updates, built.changes[c].name, {device.dtypes[c], device.changes[c]},
              device.update_feeds);
    }
    for (size_t m = 0; m < steps_.size(); ++m)
      SetFeed(*device.updates, StepFeed(m), exec::Feed::Of(steps_[m]), device.update_feeds);
  }
  return OkStatus();
}

void StepRunner::AllocateSums(const std::vector<Change>& changes, OnDevice& device) {
  Arrays arrays;
  for (const Change& change : changes) {
    const model::VariableSpec& variable =
        definition_.models[change.model].variables[change.variable];
    arrays.Add({variable.dtype, variable.shape});
    device.dtypes.push_back(variable.dtype);
  }
  device.results.resize(results_.size());
  std::vector<size_t> reduced;
  for (size_t i = 0; i < results_.size() && memory_->tasks() > 1; ++i) {
    if (definition_.results[i].reduction == Reduction::kNone) continue;
    arrays.Add(results_[i]);
    reduced.push_back(i);
  }
  device.arrays = arrays.Allocate();
  for (size_t c = 0; c < changes.size(); ++c)
    device.changes.push_back(arrays.PartOf(device.arrays, c));
  for (size_t r = 0; r < reduced.size(); ++r)
    device.results[reduced[r]] = arrays.PartOf(device.arrays, changes.size() + r);
  device.order = changes;
}

StatusOr<StepRunner::Compiled*> StepRunner::ProgramFor(int number, int64_t rows) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  std::unique_ptr<Compiled>& held = device.compiled[rows];
  if (held != nullptr) return held.get();
  auto made = std::make_unique<Compiled>();
  ASSIGN_OR_RETURN(made->built, BuildStep(definition_, rows, memory_->replica(number),
                                          /*updates=*/memory_->replicas() == 1));
  Memory::Place& place = memory_->place(number);
  ASSIGN_OR_RETURN(made->program, exec::Compile(made->built.graph, *place.store, place.device));
  made->built.graph = {};
  made->feeds.resize(made->program->feeds().size());
  for (const Change& change : made->built.changes)
    made->changes.push_back(made->program->FindFetch(change.name));
  for (size_t i = 0; i < definition_.results.size(); ++i)
    made->results.push_back(made->program->FindFetch(ResultFetch(i)));
  if (memory_->devices() > 1) {
    for (const Input& input : definition_.inputs)
      made->parts.emplace_back(input.example.dtype, model::Batched(rows, input.example.shape));
  }
  FindFeeds(*made);
  held = std::move(made);
  return held.get();
}

// Sets the feeds whose values have constant addresses, and finds all other feeds.
void StepRunner::FindFeeds(Compiled& compiled) {
  const auto set = [&](const std::string& name, const exec::Feed& value) {
    SetFeed(*compiled.program, name, value, compiled.feeds);
  };
  for (size_t i = 0; i < definition_.inputs.size(); ++i) {
    compiled.inputs.push_back(compiled.program->FindFeed(InputFeed(i)));
    if (!compiled.parts.empty()) set(InputFeed(i), exec::Feed::Of(compiled.parts[i]));
  }
  set(kRun, exec::Feed::Of(run_));
  set(kSeed, exec::Feed::Of(definition_.seed));
  set(kExamples, exec::Feed::Of(examples_));
  for (size_t m = 0; m < steps_.size(); ++m) set(StepFeed(m), exec::Feed::Of(steps_[m]));
}

Status StepRunner::Compute(int number, std::span<const Tensor> inputs) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  const collectives::Slice rows = collectives::SliceOf(rows_, number, memory_->devices());
  device.last = nullptr;
  if (rows.count == 0) {
    for (Tensor& array : device.arrays) std::ranges::fill(array.bytes(), std::byte{0});
    return OkStatus();
  }
  ASSIGN_OR_RETURN(Compiled * compiled, ProgramFor(number, rows.count));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int at = compiled->inputs[i];
    if (at < 0) continue;
    if (compiled->parts.empty()) {
      compiled->feeds[static_cast<size_t>(at)] = exec::Feed::Of(inputs[i]);
    } else {
      CopyRows(inputs[i], rows, compiled->parts[i]);
    }
  }
  RETURN_IF_ERROR(compiled->program->Run(compiled->feeds));
  device.last = compiled;
  return KeepSums(number, *compiled, rows.count);
}

// Copies the values of a device that are summed over all replicas. Scales moving statistics, so
// that their sum is the mean over the examples.
Status StepRunner::KeepSums(int number, Compiled& compiled, int64_t rows) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  for (size_t c = 0; c < device.changes.size(); ++c) {
    const std::span<std::byte> change = device.changes[c];
    std::ranges::copy(compiled.program->FetchBytes(compiled.changes[c]), change.begin());
    if (device.order[c].gradient) continue;
    ScaleFloats(device.dtypes[c], change,
                static_cast<double>(rows) / static_cast<double>(totals_.examples));
  }
  for (size_t i = 0; i < device.results.size(); ++i) {
    if (!device.results[i].empty())
      std::ranges::copy(compiled.program->FetchBytes(compiled.results[i]),
                        device.results[i].begin());
  }
  return OkStatus();
}

Status StepRunner::Update(int number) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  collectives::Communicator& communicator = memory_->communicator(number);
  for (Tensor& array : device.arrays) {
    const Status summed =
        communicator.AllReduce(array.bytes(), array.dtype(), collectives::Reduction::kSum);
    if (summed.ok()) continue;
    if (memory_->tasks() > 1) exchange_failed_ = true;  // by one thread, as there is one device
    return summed;
  }
  return device.updates == nullptr ? OkStatus() : device.updates->Run(device.update_feeds);
}

// Combines the values of a result: joins the rows of this task's devices, or reduces the values of
// all replicas.
Tensor StepRunner::Combine(size_t i) {
  const Result& result = definition_.results[i];
  const bool joins = result.reduction == Reduction::kNone;
  std::vector<int64_t> dims = results_[i].shape.dims();
  if (joins) dims[0] = rows_;
  Tensor whole(results_[i].dtype, Shape(std::move(dims)));
  size_t at = 0;
  for (const auto& device : devices_) {
    if (device->last == nullptr || (!joins && memory_->tasks() > 1)) continue;
    const auto bytes = device->last->program->FetchBytes(device->last->results[i]);
    if (joins) {
      std::ranges::copy(bytes, whole.bytes().subspan(at, bytes.size()).begin());
      at += bytes.size();
    } else {
      (void)AddBytes(result, bytes, whole);  // cannot fail: Create has checked the type
    }
  }
  if (!joins && memory_->tasks() > 1)
    std::ranges::copy(devices_[0]->results[i], whole.bytes().begin());
  const int64_t count = result.over_examples ? totals_.counts[i] : totals_.replicas;
  if (result.reduction == Reduction::kMean)
    ScaleFloats(whole.dtype(), whole.bytes(), 1 / static_cast<double>(count));
  return whole;
}

StatusOr<Totals> StepRunner::Prepare(int64_t rows) {
  const auto part = [&](int device) {
    return collectives::SliceOf(rows, device, memory_->devices()).count;
  };
  RETURN_IF_ERROR(memory_->OnEveryDevice([&](int device) {
    return part(device) == 0 ? OkStatus() : ProgramFor(device, part(device)).status();
  }));
  Totals totals{.examples = rows, .counts = std::vector<int64_t>(results_.size())};
  for (int device = 0; device < memory_->devices(); ++device) {
    if (part(device) == 0) continue;
    ++totals.replicas;
    ASSIGN_OR_RETURN(const Compiled* compiled, ProgramFor(device, part(device)));
    for (size_t i = 0; i < results_.size(); ++i) totals.counts[i] += compiled->built.counts[i];
  }
  return totals;
}

StatusOr<std::vector<Tensor>> StepRunner::Run(std::span<const Tensor> inputs, int64_t run,
                                              std::span<const int64_t> steps,
                                              const Totals& totals) {
  exchange_failed_ = false;
  run_ = run;
  rows_ = inputs[0].shape().dim(0);
  totals_ = totals;
  examples_ = static_cast<float>(totals.examples);
  std::ranges::copy(steps, steps_.begin());
  RETURN_IF_ERROR(memory_->OnEveryDevice([&](int device) { return Compute(device, inputs); }));
  if (memory_->replicas() > 1)
    RETURN_IF_ERROR(memory_->OnEveryDevice([&](int device) { return Update(device); }));
  std::vector<Tensor> results;
  for (size_t i = 0; i < results_.size(); ++i) results.push_back(Combine(i));
  return results;
}

}  // namespace tfjob::steps
