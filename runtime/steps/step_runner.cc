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
  // Used only if there are several devices: the changes, which are summed over the devices, and the
  // program that applies the sums. All changes of the same type are parts of one array, so that a
  // single operation sums them.
  std::vector<Change> order;
  std::vector<DType> dtypes;  // types of the changes
  std::vector<std::span<std::byte>> changes;
  std::vector<Tensor> arrays;
  std::unique_ptr<exec::Program> updates;
  std::vector<exec::Feed> update_feeds;
};

namespace {

constexpr size_t kAlignment = 64;  // alignment of the changes, for kernels

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
  for (const Change& change : built.changes) runner->changes_[change.model] = true;
  if (runner->memory_->devices() == 1 || built.changes.empty()) return runner;
  ASSIGN_OR_RETURN(const graph::Graph updates, BuildUpdates(own, built));
  for (int i = 0; i < runner->memory_->devices(); ++i) {
    OnDevice& device = *runner->devices_[static_cast<size_t>(i)];
    Memory::Place& place = runner->memory_->place(i);
    ASSIGN_OR_RETURN(device.updates, exec::Compile(updates, *place.store, place.device));
    device.update_feeds.resize(device.updates->feeds().size());
    runner->AllocateChanges(built.changes, device);
  }
  return runner;
}

void StepRunner::AllocateChanges(const std::vector<Change>& changes, OnDevice& device) {
  struct Part {
    size_t begin, size;
  };
  std::vector<Part> parts;
  std::map<DType, size_t> sizes;
  for (const Change& change : changes) {
    const model::VariableSpec& variable =
        definition_.models[change.model].variables[change.variable];
    const size_t size = static_cast<size_t>(variable.shape.num_elements()) * SizeOf(variable.dtype);
    size_t& end = sizes[variable.dtype];
    parts.push_back({end, size});
    end += (size + kAlignment - 1) / kAlignment * kAlignment;
    device.dtypes.push_back(variable.dtype);
  }
  for (const auto& [dtype, size] : sizes)
    device.arrays.emplace_back(dtype, Shape({static_cast<int64_t>(size / SizeOf(dtype))}));
  for (size_t c = 0; c < changes.size(); ++c) {
    const auto array = std::ranges::find(device.arrays, device.dtypes[c], &Tensor::dtype);
    device.changes.push_back(array->bytes().subspan(parts[c].begin, parts[c].size));
    SetFeed(*device.updates, changes[c].name, {device.dtypes[c], device.changes[c]},
            device.update_feeds);
  }
  for (size_t m = 0; m < steps_.size(); ++m)
    SetFeed(*device.updates, StepFeed(m), exec::Feed::Of(steps_[m]), device.update_feeds);
  device.order = changes;
}

StatusOr<StepRunner::Compiled*> StepRunner::ProgramFor(int number, int64_t rows) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  std::unique_ptr<Compiled>& held = device.compiled[rows];
  if (held != nullptr) return held.get();
  const bool alone = memory_->devices() == 1;
  auto made = std::make_unique<Compiled>();
  ASSIGN_OR_RETURN(made->built, BuildStep(definition_, rows, number, /*updates=*/alone));
  Memory::Place& place = memory_->place(number);
  ASSIGN_OR_RETURN(made->program, exec::Compile(made->built.graph, *place.store, place.device));
  made->built.graph = {};
  made->feeds.resize(made->program->feeds().size());
  for (const Change& change : made->built.changes)
    made->changes.push_back(made->program->FindFetch(change.name));
  for (size_t i = 0; i < definition_.results.size(); ++i)
    made->results.push_back(made->program->FindFetch(ResultFetch(i)));
  if (!alone) {
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
  return KeepChanges(number, *compiled, rows.count);
}

// Copies the changes of a device, to be summed over all devices. Scales moving statistics, so that
// their sum is the mean over the examples.
Status StepRunner::KeepChanges(int number, Compiled& compiled, int64_t rows) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  for (size_t c = 0; c < device.changes.size(); ++c) {
    const std::span<std::byte> change = device.changes[c];
    std::ranges::copy(compiled.program->FetchBytes(compiled.changes[c]), change.begin());
    if (device.order[c].gradient) continue;
    ScaleFloats(device.dtypes[c], change, static_cast<double>(rows) / static_cast<double>(rows_));
  }
  return OkStatus();
}

Status StepRunner::Update(int number) {
  OnDevice& device = *devices_[static_cast<size_t>(number)];
  if (device.order.empty()) return OkStatus();
  collectives::Communicator& communicator = *memory_->place(number).communicator;
  for (Tensor& array : device.arrays) {
    RETURN_IF_ERROR(
        communicator.AllReduce(array.bytes(), array.dtype(), collectives::Reduction::kSum));
  }
  return device.updates->Run(device.update_feeds);
}

// Combines the results of all devices: joins their rows, or reduces their values.
std::vector<Tensor> StepRunner::Combine() {
  std::vector<Tensor> combined;
  for (size_t i = 0; i < definition_.results.size(); ++i) {
    const Result& result = definition_.results[i];
    const Compiled* first = devices_[0]->last;
    const graph::TensorType& type = first->built.results[i];
    std::vector<int64_t> dims = type.shape.dims();
    if (result.reduction == Reduction::kNone) dims[0] = rows_;
    Tensor whole(type.dtype, Shape(std::move(dims)));
    int64_t count = 0;
    size_t at = 0;
    for (const auto& device : devices_) {
      if (device->last == nullptr) continue;
      const auto bytes = device->last->program->FetchBytes(device->last->results[i]);
      count += result.over_examples ? device->last->built.counts[i] : 1;
      if (result.reduction == Reduction::kNone) {
        std::ranges::copy(bytes, whole.bytes().subspan(at, bytes.size()).begin());
        at += bytes.size();
      } else {
        (void)AddBytes(result, bytes, whole);  // cannot fail: Create has checked the type
      }
    }
    if (result.reduction == Reduction::kMean)
      ScaleFloats(whole.dtype(), whole.bytes(), 1 / static_cast<double>(count));
    combined.push_back(std::move(whole));
  }
  return combined;
}

StatusOr<std::vector<Tensor>> StepRunner::Run(std::span<const Tensor> inputs, int64_t run,
                                              std::span<const int64_t> steps) {
  run_ = run;
  rows_ = inputs[0].shape().dim(0);
  examples_ = static_cast<float>(rows_);
  std::ranges::copy(steps, steps_.begin());
  RETURN_IF_ERROR(memory_->OnEveryDevice([&](int device) { return Compute(device, inputs); }));
  if (memory_->devices() > 1)
    RETURN_IF_ERROR(memory_->OnEveryDevice([&](int device) { return Update(device); }));
  return Combine();
}

}  // namespace tfjob::steps
