#include "runtime/train/model_dir/checkpoint.h"

#include <algorithm>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/train/model_dir/log.h"
#include "runtime/train/model_dir/slot_record.h"

namespace tfjob::train {
namespace {

constexpr char kGlobalStep[] = "global_step";
constexpr char kLedger[] = "tfjob/ledger";
constexpr char kOptimizer[] = "tfjob/optimizer";
constexpr char kLearningRate[] = "tfjob/learning_rate";  // float64: the rate, the step
constexpr char kLossScale[] = "tfjob/loss_scale";  // float64: the scale, the number of good steps

// Limits on how much an untrusted checkpoint can make this process read and send. A ledger has
// about 40 bytes per shard and task. A ledger above the limit is not written, either.
constexpr int64_t kMaxLedgerBytes = 256 << 20;
constexpr int64_t kMaxRecordBytes = 4096;

Status AddText(const std::string& name, const std::string& text, io::BundleWriter& writer) {
  return writer.Add(name, DType::kUInt8, Shape({static_cast<int64_t>(text.size())}),
                    std::as_bytes(std::span(text)));
}

// Returns the bytes of the tensor as text, or "" if there is no such tensor.
StatusOr<std::string> ReadText(const io::BundleReader& reader, const std::string& prefix,
                               const std::string& name, int64_t limit) {
  const auto found = reader.entries().find(name);
  if (found == reader.entries().end()) return std::string();
  if (found->second.size > limit) {
    return DataLoss("checkpoint ", prefix, ": ", name, " has ", found->second.size,
                    " bytes; at most ", limit, " are allowed");
  }
  ASSIGN_OR_RETURN(const Tensor text, reader.Read(name));
  return std::string(reinterpret_cast<const char*>(text.bytes().data()), text.num_bytes());
}

Status CheckLedger(int64_t step, const std::string& ledger) {
  if (ledger.size() <= static_cast<size_t>(kMaxLedgerBytes)) return OkStatus();
  return InvalidArgument("checkpoint of step ", step, ": ", kLedger, " has ", ledger.size(),
                         " bytes, but at most ", kMaxLedgerBytes, " can be read back; train with ",
                         "fewer tasks, or increase strategy.shard_bytes");
}

Status AddStreamed(const std::string& name, const state::Variable& variable,
                   const state::StreamedValue& value, io::BundleWriter& writer) {
  RETURN_IF_ERROR(writer.Begin(name, variable.dtype, variable.shape));
  const auto bytes = static_cast<size_t>(variable.shape.num_elements()) * SizeOf(variable.dtype);
  std::vector<std::byte> buffer(std::min(bytes, state::kPieceBytes));
  for (size_t offset = 0; offset < bytes; offset += buffer.size()) {
    const std::span<std::byte> piece =
        std::span(buffer).first(std::min(buffer.size(), bytes - offset));
    RETURN_IF_ERROR(Annotate(value.Read(static_cast<int64_t>(offset), piece), name));
    RETURN_IF_ERROR(writer.Append(piece));
  }
  return OkStatus();
}

Status AddVariable(const state::Variable& variable, const std::vector<optimizer::Slot>& slots,
                   const state::VariableState& state, io::BundleWriter& writer) {
  const auto slot_name = [&](size_t slot) {
    return StrCat(variable.name, "/", slots[slot].suffix);
  };
  for (size_t i = 0; i < state.streamed.size(); ++i) {
    const std::string name = i == 0 ? variable.name : slot_name(i - 1);
    RETURN_IF_ERROR(AddStreamed(name, variable, *state.streamed[i], writer));
  }
  if (!state.streamed.empty()) return OkStatus();
  RETURN_IF_ERROR(writer.Add(variable.name, state.value));
  for (size_t i = 0; i < slots.size(); ++i) {
    RETURN_IF_ERROR(writer.Add(slot_name(i), state.slots[i]));
  }
  return OkStatus();
}

// Checks the type and the shape of the tensor. Reads only the index.
Status CheckIs(const io::BundleReader& reader, const std::string& prefix, const std::string& name,
               DType dtype, const Shape& shape) {
  const auto found = reader.entries().find(name);
  std::optional<DType> held;
  if (found != reader.entries().end()) {
    held = DTypeFromTensorFlow(found->second.tensorflow_dtype);
  }
  if (!held) return reader.Read(name).status();  // reports why the tensor cannot be read
  if (*held == dtype && found->second.shape == shape) return OkStatus();
  return InvalidArgument("checkpoint ", prefix, ": ", name, " is ", Name(*held),
                         found->second.shape.ToString(), ", but the model has ", Name(dtype),
                         shape.ToString(), "; use another model_dir, or the model that wrote it");
}

// Returns the name under which the checkpoint stores a slot of the variable, or "" if the
// checkpoint lacks the slot.
std::string SlotName(const io::BundleReader& reader, std::string_view record,
                     const state::Variable& variable, const optimizer::Slot& slot,
                     const state::TrainingState& training) {
  const std::optional<std::string> suffix = RecordedSuffix(record, training.optimizer, slot);
  if (!suffix) return "";
  std::string name = StrCat(variable.name, "/", *suffix);
  return reader.Has(name) ? name : "";
}

Status CheckVariable(const io::BundleReader& reader, const std::string& prefix,
                     std::string_view record, const state::Variable& variable,
                     const state::TrainingState& training) {
  RETURN_IF_ERROR(CheckIs(reader, prefix, variable.name, variable.dtype, variable.shape));
  for (const optimizer::Slot& slot : state::SlotsOf(variable, training.optimizer)) {
    const std::string name = SlotName(reader, record, variable, slot, training);
    if (name.empty()) continue;
    RETURN_IF_ERROR(CheckIs(reader, prefix, name, variable.dtype, variable.shape));
  }
  return OkStatus();
}

Status CheckCheckpoint(const std::string& prefix, const state::TrainingState& training) {
  ASSIGN_OR_RETURN(auto reader, io::BundleReader::Open(prefix));
  RETURN_IF_ERROR(CheckIs(*reader, prefix, kGlobalStep, DType::kInt64, Shape()));
  ASSIGN_OR_RETURN(const std::string record,
                   ReadText(*reader, prefix, kOptimizer, kMaxRecordBytes));
  for (const state::Variable& variable : training.variables)
    RETURN_IF_ERROR(CheckVariable(*reader, prefix, record, variable, training));
  return OkStatus();
}

// A tensor in a checkpoint, whose values stay in the file and are streamed from it.
class StreamedTensor : public state::StreamedValue {
 public:
  explicit StreamedTensor(io::StoredTensor tensor) : tensor_(std::move(tensor)) {}
  Status Read(int64_t offset, std::span<std::byte> to) const override {
    return tensor_.Read(offset, to);
  }

 private:
  const io::StoredTensor tensor_;
};

// Reads the variables of a checkpoint.
class VariableReader {
 public:
  VariableReader(const io::BundleReader& reader, const std::string& prefix, std::string record,
                 const state::TrainingState& training, const LoadOptions& options)
      : reader_(reader),
        prefix_(prefix),
        record_(std::move(record)),
        training_(training),
        options_(options) {}

  StatusOr<state::VariableState> Read(size_t v) const {
    const state::Variable& variable = training_.variables[v];
    const state::VariableState* into =
        options_.into == nullptr ? nullptr : &options_.into->variables[v];
    state::VariableState state;
    ASSIGN_OR_RETURN(state.value,
                     ReadTensor(variable.name, variable, into ? &into->value : nullptr));
    const std::vector<optimizer::Slot> slots = state::SlotsOf(variable, training_.optimizer);
    for (size_t s = 0; s < slots.size(); ++s) {
      const std::string name = SlotName(reader_, record_, variable, slots[s], training_);
      if (name.empty()) {
        state.slots.push_back(state::InitialSlot(variable, slots[s], state.value));
        continue;
      }
      ASSIGN_OR_RETURN(Tensor slot, ReadTensor(name, variable, into ? &into->slots[s] : nullptr));
      state.slots.push_back(std::move(slot));
    }
    return state;
  }

  StatusOr<io::StoredTensor> Store(size_t v) const {
    return StoreTensor(training_.variables[v].name, training_.variables[v]);
  }

  StatusOr<state::VariableState> Stream(size_t v) const {
    const state::Variable& variable = training_.variables[v];
    state::VariableState state;
    ASSIGN_OR_RETURN(io::StoredTensor value, Store(v));
    state.streamed.push_back(std::make_shared<StreamedTensor>(std::move(value)));
    for (const optimizer::Slot& slot : state::SlotsOf(variable, training_.optimizer)) {
      const std::string name = SlotName(reader_, record_, variable, slot, training_);
      if (name.empty()) {
        state.streamed.push_back(state::InitialSlot(variable, slot, state.streamed[0]));
        continue;
      }
      ASSIGN_OR_RETURN(io::StoredTensor stored, StoreTensor(name, variable));
      state.streamed.push_back(std::make_shared<StreamedTensor>(std::move(stored)));
    }
    return state;
  }

 private:
  StatusOr<io::StoredTensor> StoreTensor(const std::string& name,
                                         const state::Variable& variable) const {
    RETURN_IF_ERROR(CheckIs(reader_, prefix_, name, variable.dtype, variable.shape));
    return reader_.Store(name);
  }

  StatusOr<Tensor> ReadTensor(const std::string& name, const state::Variable& variable,
                              const Tensor* into) const {
    RETURN_IF_ERROR(CheckIs(reader_, prefix_, name, variable.dtype, variable.shape));
    Tensor tensor =
        into ? *into : Tensor(variable.dtype, variable.shape, Buffer::Contents::kUndefined);
    RETURN_IF_ERROR(reader_.ReadInto(name, tensor, options_.pool));
    return tensor;
  }

  const io::BundleReader& reader_;
  const std::string& prefix_;
  const std::string record_;  // the meaning of the slots (slot_record.h)
  const state::TrainingState& training_;
  const LoadOptions& options_;
};

bool IsStored(const LoadOptions& options, size_t variable) {
  return options.stored != nullptr &&
         std::ranges::binary_search(options.stored->variables, static_cast<int>(variable));
}

bool IsStreamed(const LoadOptions& options, size_t variable) {
  return std::ranges::binary_search(options.streamed, static_cast<int>(variable));
}

StatusOr<int64_t> ReadStep(const io::BundleReader& reader, const std::string& prefix) {
  RETURN_IF_ERROR(CheckIs(reader, prefix, kGlobalStep, DType::kInt64, Shape()));
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kGlobalStep));
  const int64_t step = tensor.data<int64_t>()[0];
  if (step < 0) return DataLoss("checkpoint ", prefix, ": global_step is ", step);
  return step;
}

Status AddLossScale(const state::Snapshot& snapshot, io::BundleWriter& writer) {
  if (!snapshot.loss_scale) return OkStatus();
  const auto good_steps = static_cast<double>(snapshot.loss_scale->good_steps);
  return writer.Add(kLossScale, Tensor::Of<double>({2}, {snapshot.loss_scale->scale, good_steps}));
}

// Returns the loss scale, or nullopt if the checkpoint contains none.
StatusOr<std::optional<state::LossScale>> ReadLossScale(const io::BundleReader& reader,
                                                        const std::string& prefix) {
  if (!reader.Has(kLossScale)) return std::optional<state::LossScale>();
  RETURN_IF_ERROR(CheckIs(reader, prefix, kLossScale, DType::kFloat64, {2}));
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kLossScale));
  const std::span<const double> values = tensor.data<double>();
  const bool count = values[1] >= 0 && values[1] < double{state::kGoodStepsToGrow};
  const state::LossScale scale{.scale = values[0],
                               .good_steps = count ? static_cast<int64_t>(values[1]) : -1};
  if (scale.IsValid()) return std::optional(scale);
  return DataLoss("checkpoint ", prefix, ": ", kLossScale, " is ", values[0], " after ", values[1],
                  " good steps: it is damaged");
}

Status AddLearningRate(const state::Snapshot& snapshot, io::BundleWriter& writer) {
  if (!snapshot.learning_rate) return OkStatus();
  const auto step = static_cast<double>(snapshot.learning_rate->step);
  return writer.Add(kLearningRate, Tensor::Of<double>({2}, {snapshot.learning_rate->rate, step}));
}

// Returns the learning rate that the run has set, or nullopt if the checkpoint contains none.
StatusOr<std::optional<state::LearningRate>> ReadLearningRate(const io::BundleReader& reader,
                                                              const std::string& prefix) {
  if (!reader.Has(kLearningRate)) return std::optional<state::LearningRate>();
  RETURN_IF_ERROR(CheckIs(reader, prefix, kLearningRate, DType::kFloat64, {2}));
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kLearningRate));
  const std::span<const double> values = tensor.data<double>();
  const bool counts = values[1] >= 0 && values[1] <= 0x1p53;
  const state::LearningRate rate{.rate = values[0],
                                 .step = counts ? static_cast<int64_t>(values[1]) : -1};
  if (rate.IsValid()) return std::optional(rate);
  return DataLoss("checkpoint ", prefix, ": ", kLearningRate, " is ", values[0], ", set at step ",
                  values[1], ": it is damaged");
}

}  // namespace

Status SaveCheckpoint(const std::string& folder, const state::TrainingState& training,
                      const state::Snapshot& snapshot, int keep, Time now, FileSystem& files,
                      const io::WriteRight& right) {
  const auto check = [&] { return io::CheckRight(folder, snapshot.global_step, right); };
  RETURN_IF_ERROR(check());
  RETURN_IF_ERROR(state::CheckFits(snapshot, training));
  RETURN_IF_ERROR(CheckLedger(snapshot.global_step, snapshot.ledger));
  RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string prefix = io::CheckpointPrefix(folder, snapshot.global_step);
  ASSIGN_OR_RETURN(auto writer, io::BundleWriter::Create(prefix, files));
  for (size_t i = 0; i < training.variables.size(); ++i) {
    const state::Variable& variable = training.variables[i];
    RETURN_IF_ERROR(AddVariable(variable, state::SlotsOf(variable, training.optimizer),
                                snapshot.variables[i], *writer));
  }
  RETURN_IF_ERROR(writer->Add(kGlobalStep, Tensor::Scalar<int64_t>(snapshot.global_step)));
  RETURN_IF_ERROR(AddText(kLedger, snapshot.ledger, *writer));
  RETURN_IF_ERROR(AddText(kOptimizer, RecordSlots(training.optimizer), *writer));
  RETURN_IF_ERROR(AddLossScale(snapshot, *writer));
  RETURN_IF_ERROR(AddLearningRate(snapshot, *writer));
  io::WriteRight checked{.term = right.term};
  if (right.check || right.term > 0) checked.check = check;  // several processes may write
  RETURN_IF_ERROR(writer->Finish(checked));
  return io::RegisterCheckpoint(folder, snapshot.global_step, keep, now, files, right);
}

StatusOr<state::Snapshot> LoadCheckpoint(const std::string& prefix,
                                         const state::TrainingState& training,
                                         const LoadOptions& options) {
  if (options.into != nullptr) RETURN_IF_ERROR(state::CheckFits(*options.into, training));
  ASSIGN_OR_RETURN(auto reader, io::BundleReader::Open(prefix));
  if (options.stored != nullptr) options.stored->values.clear();
  state::Snapshot snapshot;
  ASSIGN_OR_RETURN(snapshot.global_step, ReadStep(*reader, prefix));
  ASSIGN_OR_RETURN(std::string record, ReadText(*reader, prefix, kOptimizer, kMaxRecordBytes));
  const VariableReader variables(*reader, prefix, std::move(record), training, options);
  for (size_t v = 0; v < training.variables.size(); ++v) {
    if (IsStored(options, v)) {
      ASSIGN_OR_RETURN(io::StoredTensor value, variables.Store(v));
      options.stored->values.push_back(std::move(value));
      snapshot.variables.emplace_back();
      continue;
    }
    ASSIGN_OR_RETURN(state::VariableState state,
                     IsStreamed(options, v) ? variables.Stream(v) : variables.Read(v));
    snapshot.variables.push_back(std::move(state));
  }
  ASSIGN_OR_RETURN(snapshot.ledger, ReadText(*reader, prefix, kLedger, kMaxLedgerBytes));
  ASSIGN_OR_RETURN(snapshot.loss_scale, ReadLossScale(*reader, prefix));
  ASSIGN_OR_RETURN(snapshot.learning_rate, ReadLearningRate(*reader, prefix));
  return snapshot;
}

Status CheckLatestCheckpoint(const std::string& folder, const state::TrainingState& training,
                             std::span<const int> streamed) {
  ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest, io::LatestCheckpoint(folder));
  if (!latest) return OkStatus();
  const Status status = CheckCheckpoint(latest->prefix, training);
  // If the newest checkpoint is damaged, an older one may be intact, but only loading it can show
  // this.
  if (absl::IsDataLoss(status))
    return LoadLatestCheckpoint(folder, training, {.streamed = streamed}).status();
  return status;
}

StatusOr<std::optional<state::Snapshot>> LoadLatestCheckpoint(const std::string& folder,
                                                              const state::TrainingState& training,
                                                              const LoadOptions& options) {
  ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest, io::LatestCheckpoint(folder));
  if (!latest) return std::optional<state::Snapshot>();
  StatusOr<state::Snapshot> snapshot = LoadCheckpoint(latest->prefix, training, options);
  if (!absl::IsDataLoss(snapshot.status())) {
    RETURN_IF_ERROR(snapshot.status());
    return std::optional<state::Snapshot>(*std::move(snapshot));
  }
  ASSIGN_OR_RETURN(const std::vector<io::Checkpoint> listed, io::ListCheckpoints(folder));
  for (auto older = listed.rbegin(); older != listed.rend(); ++older) {
    if (older->prefix == latest->prefix) continue;
    kCheckpointLog.Warning("a checkpoint is damaged; trying an older one",
                           {{"error", snapshot.status()}, {"older", older->prefix}});
    StatusOr<state::Snapshot> next = LoadCheckpoint(older->prefix, training, options);
    if (next.ok()) return std::optional<state::Snapshot>(*std::move(next));
  }
  return snapshot.status();
}

}  // namespace tfjob::train
