#include "runtime/exec/scan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/exec/constants.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/exec/plan.h"
#include "runtime/exec/scan_rows.h"
#include "runtime/graph/scan.h"
#include "runtime/kernels/stream.h"

namespace tfjob::exec {
namespace {

using graph::ScanForm;
using kernels::Kernel;
using kernels::KernelRequest;
using kernels::Operand;

// Returns the layout of one element of a sequence.
Operand ElementOf(const Operand& sequence) {
  const std::vector<int64_t>& dims = sequence.shape.dims();
  Operand element =
      Operand::Dense(sequence.dtype, Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())));
  if (element.shape.rank() > 1) element.row_stride = sequence.row_stride;
  return element;
}

// Returns the distance between the elements of a sequence, in bytes.
size_t StrideOf(const Operand& sequence) {
  const int64_t steps = sequence.shape.dim(0);
  const int64_t elements =
      sequence.shape.rank() == 1 ? 1 : sequence.rows() / steps * sequence.row_stride;
  return static_cast<size_t>(elements) * SizeOf(sequence.dtype);
}

struct BodyStep {
  std::unique_ptr<Kernel> kernel;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

// A set of operands of the body's kernels that share one address.
class Place {
 public:
  void AddInput(size_t step, size_t index) { inputs_.push_back({step, index}); }
  void AddOutput(size_t step, size_t index) { outputs_.push_back({step, index}); }

  void Set(std::vector<BodyStep>& steps, const void* address) const {
    for (const auto& [step, index] : inputs_) steps[step].inputs[index] = address;
    for (const auto& [step, index] : outputs_)
      steps[step].outputs[index] = const_cast<void*>(address);  // only for memory that is written
  }

 private:
  std::vector<std::pair<size_t, size_t>> inputs_, outputs_;
};

// A sequence or an output of the Scan.
struct Series {
  size_t stride = 0;  // in bytes
  bool reversed = false;

  size_t OffsetAt(int64_t step, int64_t steps) const {
    return stride * static_cast<size_t>(reversed ? steps - 1 - step : step);
  }
};

// The location where the body stores the value of a fetch. Fetches of the same value share a
// Result.
struct Result {
  int place = -1;  // in `results`; -1 if the value is a constant
  const void* constant = nullptr;
  size_t bytes = 0;
};

// Runs all steps for some or all of the rows.
class ScanLoop {
 public:
  // `inputs` describes the part of each input of the Scan that the loop reads. `request` is the
  // request for the whole Scan, from which the distances between the elements of sequences and
  // outputs are taken.
  Status Prepare(const ScanForm& form, const std::vector<Operand>& inputs,
                 const KernelRequest& request, const Device& device) {
    steps_ = form.steps;
    states_ = static_cast<size_t>(form.states);
    sequences_ = static_cast<size_t>(form.sequences);
    variables::VariableStore none(device.row_stride, device.runtime);
    ASSIGN_OR_RETURN(plan_, MakePlan(*form.body, none, device, FeedLayouts(form, inputs)));
    ASSIGN_OR_RETURN(constants_, PlaceConstants(plan_.constants, *device.runtime));
    for (const PlannedStep& step : plan_.steps) {
      auto kernel = PrepareKernel(step.request, device);
      if (!kernel.ok()) return Annotate(kernel.status(), "node " + step.name);
      kernel_bytes_ = std::max(kernel_bytes_, (*kernel)->workspace_bytes());
      body_.push_back({*std::move(kernel), std::vector<const void*>(step.inputs.size()),
                       std::vector<void*>(step.outputs.size())});
    }
    MakeSeries(form, request);
    MakeResults(form);
    memory_ = PlanMemory(plan_.buffers);
    MakePlaces(form);
    return OkStatus();
  }

  size_t workspace_bytes() const { return spare_at_ + spare_bytes_ + kernel_bytes_; }

  // `inputs` and `outputs` point to the first row that the loop processes.
  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           kernels::Stream& stream) {
    auto* const memory = static_cast<std::byte*>(workspace);
    void* const kernel_workspace = memory + spare_at_ + spare_bytes_;
    for (const auto& [offset, place] : arena_) place.Set(body_, memory + offset);
    for (size_t i = 0; i < invariants_.size(); ++i)
      invariants_[i].Set(body_, inputs[states_ + sequences_ + i]);
    std::copy_n(inputs, states_, now_.begin());
    for (int64_t step = 0; step < steps_; ++step) {
      Address(step, inputs, outputs, memory);
      for (BodyStep& part : body_)
        part.kernel->Run(part.inputs.data(), part.outputs.data(), kernel_workspace, stream);
      CopyOutputs(step, outputs, stream);
      for (size_t i = 0; i < states_; ++i) now_[i] = AddressOf(next_[i]);
    }
    for (size_t i = 0; i < states_; ++i) {
      if (now_[i] != outputs[i]) stream.Copy(outputs[i], now_[i], next_[i].bytes);
    }
  }

 private:
  std::map<std::string, Operand> FeedLayouts(const ScanForm& form,
                                             const std::vector<Operand>& inputs) {
    std::map<std::string, Operand> layouts;
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const Operand& input = inputs[static_cast<size_t>(i)];
      if (i < form.states) {
        ENFORCE(input.dense(), "the planner makes states dense");
        layouts[graph::StateName(i)] = input;
      } else if (i < form.states + form.sequences) {
        layouts[graph::SequenceName(i - form.states)] = ElementOf(input);
      } else {
        layouts[graph::InvariantName(i - form.states - form.sequences)] = input;
      }
    }
    return layouts;
  }

  void MakeSeries(const ScanForm& form, const KernelRequest& request) {
    for (size_t i = 0; i < sequences_; ++i)
      in_.push_back({StrideOf(request.inputs[states_ + i]), form.reversed_sequences[i]});
    for (size_t i = states_; i < request.outputs.size(); ++i)
      out_.push_back({StrideOf(request.outputs[i]), form.reversed_outputs[i - states_]});
    now_.resize(states_);
  }

  // Determines where each fetch is stored. Removes the memory of fetches from the plan, because
  // they are not stored in the arena.
  void MakeResults(const ScanForm& form) {
    std::map<int, int> places;  // by buffer
    const auto result = [&](const std::string& name) {
      const auto fetch = std::ranges::find(plan_.fetches, name, &PlannedFetch::name);
      const Value& value = fetch->value;
      if (value.home == Home::kConstant) {
        return Result{-1, constants_[static_cast<size_t>(value.index)].get(),
                      value.operand.bytes()};
      }
      ENFORCE(value.home == Home::kArena && value.operand.dense(), "a fetch is dense in the arena");
      const auto [found, added] = places.try_emplace(value.index, static_cast<int>(places.size()));
      if (added) {
        result_of_buffer_[value.index] = found->second;
        plan_.buffers[static_cast<size_t>(value.index)].bytes = 0;
      }
      return Result{found->second, nullptr, value.operand.bytes()};
    };
    for (int i = 0; i < form.states; ++i) next_.push_back(result(graph::StateName(i)));
    for (int i = 0; i < form.outputs; ++i) stacked_.push_back(result(graph::OutputName(i)));
    results_.resize(places.size());
    addresses_.resize(places.size());
  }

  // Groups the operands of the body's kernels by address. Lays out the workspace: the arena, a
  // spare buffer per state, and the kernels' own workspace.
  void MakePlaces(const ScanForm& form) {
    std::map<std::string, Place> feeds;
    std::map<int, Place> arena;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlannedStep& step = plan_.steps[s];
      const auto place = [&](const Value& value) -> Place* {
        if (value.home == Home::kFeed) {
          const int node = plan_.feeds[static_cast<size_t>(value.index)];
          return &feeds[form.body->node(node).name];
        }
        if (value.home != Home::kArena) return nullptr;
        const auto found = result_of_buffer_.find(value.index);
        return found == result_of_buffer_.end() ? &arena[value.index]
                                                : &results_[static_cast<size_t>(found->second)];
      };
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        Place* const at = place(step.inputs[i]);
        if (at != nullptr) {
          at->AddInput(s, i);
        } else {
          body_[s].inputs[i] = constants_[static_cast<size_t>(step.inputs[i].index)].get();
        }
      }
      for (size_t i = 0; i < step.outputs.size(); ++i) place(step.outputs[i])->AddOutput(s, i);
    }
    for (auto& [buffer, place] : arena)
      arena_.emplace_back(memory_.offsets[static_cast<size_t>(buffer)], std::move(place));
    const auto take = [&](const std::string& name) { return std::move(feeds[name]); };
    for (int i = 0; i < form.states; ++i) state_in_.push_back(take(graph::StateName(i)));
    for (int i = 0; i < form.sequences; ++i) sequence_in_.push_back(take(graph::SequenceName(i)));
    int invariants = 0;
    for (const graph::Node& node : form.body->nodes())
      invariants += node.op == "Placeholder" && node.name.starts_with("invariant_") ? 1 : 0;
    for (int i = 0; i < invariants; ++i) invariants_.push_back(take(graph::InvariantName(i)));
    spare_at_ = Aligned(memory_.arena_bytes);
    for (const Result& state : next_) {
      spares_.push_back(spare_at_ + spare_bytes_);
      spare_bytes_ += Aligned(state.bytes);
    }
  }

  // Sets the addresses for a step. A result that is stacked is written to its place in the stack. A
  // state that is not stacked is written alternately to the Scan's output and to a spare buffer,
  // with the order chosen such that the last step writes to the output.
  void Address(int64_t step, const void* const* inputs, void* const* outputs, std::byte* memory) {
    for (size_t i = 0; i < states_; ++i) state_in_[i].Set(body_, now_[i]);
    for (size_t i = 0; i < sequences_; ++i) {
      const auto* const base = static_cast<const std::byte*>(inputs[states_ + i]);
      sequence_in_[i].Set(body_, base + in_[i].OffsetAt(step, steps_));
    }
    const bool to_output = (steps_ - 1 - step) % 2 == 0;
    for (size_t i = states_; i-- > 0;) {
      if (next_[i].place < 0) continue;
      addresses_[static_cast<size_t>(next_[i].place)] =
          to_output ? outputs[i] : memory + spares_[i];
    }
    for (size_t i = stacked_.size(); i-- > 0;) {
      if (stacked_[i].place < 0) continue;
      addresses_[static_cast<size_t>(stacked_[i].place)] = OutputAt(step, outputs, i);
    }
    for (size_t i = 0; i < results_.size(); ++i) results_[i].Set(body_, addresses_[i]);
  }

  std::byte* OutputAt(int64_t step, void* const* outputs, size_t i) const {
    return static_cast<std::byte*>(outputs[states_ + i]) + out_[i].OffsetAt(step, steps_);
  }

  const void* AddressOf(const Result& result) const {
    return result.place < 0 ? result.constant : addresses_[static_cast<size_t>(result.place)];
  }

  // Copies the outputs that no kernel writes, because they are constants or the same value as an
  // earlier output.
  void CopyOutputs(int64_t step, void* const* outputs, kernels::Stream& stream) {
    for (size_t i = 0; i < stacked_.size(); ++i) {
      std::byte* const to = OutputAt(step, outputs, i);
      const void* const from = AddressOf(stacked_[i]);
      if (from != to) stream.Copy(to, from, stacked_[i].bytes);
    }
  }

  int64_t steps_ = 0;
  size_t states_ = 0, sequences_ = 0;
  Plan plan_;
  std::vector<device::Memory> constants_;
  MemoryPlan memory_;
  std::vector<BodyStep> body_;
  std::vector<Series> in_, out_;
  std::vector<Result> next_, stacked_;  // the body's fetches
  std::map<int, int> result_of_buffer_;
  std::vector<Place> results_;    // the places of the fetches' values
  std::vector<void*> addresses_;  // the results' addresses in this step
  std::vector<const void*> now_;  // the addresses of the states before this step
  std::vector<Place> state_in_, sequence_in_, invariants_;
  std::vector<std::pair<size_t, Place>> arena_;  // by offset
  std::vector<size_t> spares_;                   // offsets of the states' spare buffers
  size_t spare_at_ = 0, spare_bytes_ = 0, kernel_bytes_ = 0;
};

// Returns the distance between two rows of a value that has rows, in bytes.
size_t RowBytes(const Operand& value) {
  return static_cast<size_t>(value.rows() / value.shape.dim(0) * value.row_stride) *
         SizeOf(value.dtype);
}

// Runs one loop or, if the body treats rows separately, several loops in parallel. Each parallel
// loop runs all steps for some of the rows on one thread, so threads are not woken or awaited in
// every step.
class ScanKernel final : public Kernel {
 public:
  Status Prepare(const KernelRequest& request, const Device& device) {
    ASSIGN_OR_RETURN(const ScanForm form, graph::ScanFormOf(request.attributes));
    std::optional<ScanRows> rows;
    if (device.runtime->immediate()) rows = FindScanRows(form);
    const int64_t loops = rows ? LoopsOf(*rows, SharedBytes(form, request, *rows)) : 1;
    parts_.resize(static_cast<size_t>(loops));
    if (loops == 1) return parts_[0].loop.Prepare(form, request.inputs, request, device);
    for (int64_t i = 0; i < loops; ++i) {
      const int64_t begin = i * rows->rows / loops, end = (i + 1) * rows->rows / loops;
      RETURN_IF_ERROR(
          PreparePart(form, *rows, begin, end, request, device, parts_[static_cast<size_t>(i)]));
    }
    return OkStatus();
  }

  size_t workspace_bytes() const override {
    size_t bytes = 0;
    for (const Part& part : parts_) bytes += Aligned(part.loop.workspace_bytes());
    return bytes;
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           kernels::Stream& stream) override {
    if (parts_.size() == 1) return parts_[0].loop.Run(inputs, outputs, workspace, stream);
    auto* memory = static_cast<std::byte*>(workspace);
    for (Part& part : parts_) {
      part.workspace = memory;
      memory += Aligned(part.loop.workspace_bytes());
    }
    stream.ParallelFor(static_cast<int64_t>(parts_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        RunPart(parts_[static_cast<size_t>(i)], inputs, outputs);
    });
    for (Part& part : parts_) {
      if (!part.stream.ok()) stream.Fail(part.stream.TakeStatus());
    }
  }

 private:
  struct Part {
    ScanLoop loop;
    std::vector<size_t> input_offsets, output_offsets;  // bytes before the loop's first row
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::byte* workspace = nullptr;
    kernels::Stream stream;  // has one thread
  };

  // Returns the total size, in bytes, of the invariants that every loop reads in full.
  static size_t SharedBytes(const ScanForm& form, const KernelRequest& request,
                            const ScanRows& rows) {
    size_t bytes = 0;
    const auto first = static_cast<size_t>(form.states + form.sequences);
    for (size_t i = 0; i < rows.invariants.size(); ++i)
      bytes += rows.invariants[i] ? 0 : request.inputs[first + i].bytes();
    return bytes;
  }

  static Status PreparePart(const ScanForm& form, const ScanRows& rows, int64_t begin, int64_t end,
                            const KernelRequest& request, const Device& device, Part& part) {
    const auto states = static_cast<size_t>(form.states);
    const auto invariants = states + static_cast<size_t>(form.sequences);
    std::vector<Operand> inputs = request.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool sequence = i >= states && i < invariants;
      const bool divided = i < states ? true
                           : sequence ? rows.sequences[i - states]
                                      : rows.invariants[i - invariants];
      part.input_offsets.push_back(0);
      if (!divided) continue;
      std::vector<int64_t> dims = inputs[i].shape.dims();
      dims[sequence ? 1 : 0] = end - begin;
      part.input_offsets[i] =
          static_cast<size_t>(begin) * RowBytes(sequence ? ElementOf(inputs[i]) : inputs[i]);
      inputs[i].shape = Shape(std::move(dims));
    }
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      const Operand& output = request.outputs[i];
      part.output_offsets.push_back(static_cast<size_t>(begin) *
                                    RowBytes(i < states ? output : ElementOf(output)));
    }
    part.inputs.resize(inputs.size());
    part.outputs.resize(request.outputs.size());
    const graph::Graph body = BodyOfRows(*form.body, rows, end - begin);
    ScanForm some = form;
    some.body = &body;
    return part.loop.Prepare(some, inputs, request, device);
  }

  static void RunPart(Part& part, const void* const* inputs, void* const* outputs) {
    for (size_t i = 0; i < part.inputs.size(); ++i)
      part.inputs[i] = static_cast<const std::byte*>(inputs[i]) + part.input_offsets[i];
    for (size_t i = 0; i < part.outputs.size(); ++i)
      part.outputs[i] = static_cast<std::byte*>(outputs[i]) + part.output_offsets[i];
    part.loop.Run(part.inputs.data(), part.outputs.data(), part.workspace, part.stream);
  }

  std::vector<Part> parts_;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> PrepareKernel(const KernelRequest& request,
                                                const Device& device) {
  if (request.op != "Scan") return device.kernels->Prepare(request);
  auto kernel = std::make_unique<ScanKernel>();
  if (Status prepared = kernel->Prepare(request, device); !prepared.ok())
    return Annotate(prepared, "the body of Scan");
  return kernel;
}

}  // namespace tfjob::exec
