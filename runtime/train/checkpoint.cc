#include "runtime/train/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

constexpr char kGlobalStep[] = "global_step";
constexpr char kLedger[] = "tfjob/ledger";

std::string FinishedPath(const std::string& folder) {
  return folder + "/finished.json";
}

// The slots that the definition's optimizer keeps for a variable.
std::vector<optimizer::Slot> SlotsOf(const ps::Variable& variable,
                                     const ps::Definition& definition) {
  if (variable.update != ps::Update::kGradient) return {};
  return optimizer::Slots(definition.optimizer);
}

Status AddVariable(const ps::Variable& variable, const std::vector<optimizer::Slot>& slots,
                   const ps::VariableState& state, io::BundleWriter& writer) {
  RETURN_IF_ERROR(writer.Add(variable.name, state.value));
  for (size_t i = 0; i < slots.size(); ++i) {
    RETURN_IF_ERROR(writer.Add(StrCat(variable.name, "/", slots[i].suffix), state.slots[i]));
  }
  return OkStatus();
}

// Checks type and shape from the index alone.
Status CheckIs(const io::BundleReader& reader, const std::string& prefix, const std::string& name,
               DType dtype, const Shape& shape) {
  const auto found = reader.entries().find(name);
  std::optional<DType> held;
  if (found != reader.entries().end() && !found->second.partitioned) {
    held = DTypeFromTensorFlow(found->second.tensorflow_dtype);
  }
  if (!held) return reader.Read(name).status();  // returns why it cannot be read
  if (*held == dtype && found->second.shape == shape) return OkStatus();
  return InvalidArgument("checkpoint ", prefix, ": ", name, " is ", Name(*held),
                         found->second.shape.ToString(), ", but the model has ", Name(dtype),
                         shape.ToString(), "; use another model_dir, or the model that wrote it");
}

StatusOr<Tensor> ReadAs(const io::BundleReader& reader, const std::string& prefix,
                        const std::string& name, DType dtype, const Shape& shape) {
  RETURN_IF_ERROR(CheckIs(reader, prefix, name, dtype, shape));
  return reader.Read(name);
}

Status CheckVariable(const io::BundleReader& reader, const std::string& prefix,
                     const ps::Variable& variable, const ps::Definition& definition) {
  RETURN_IF_ERROR(CheckIs(reader, prefix, variable.name, variable.dtype, variable.shape));
  for (const optimizer::Slot& slot : SlotsOf(variable, definition)) {
    const std::string name = StrCat(variable.name, "/", slot.suffix);
    if (!reader.Has(name)) continue;
    RETURN_IF_ERROR(CheckIs(reader, prefix, name, variable.dtype, variable.shape));
  }
  return OkStatus();
}

Status CheckCheckpoint(const std::string& prefix, const ps::Definition& definition) {
  ASSIGN_OR_RETURN(auto reader, io::BundleReader::Open(prefix));
  RETURN_IF_ERROR(CheckIs(*reader, prefix, kGlobalStep, DType::kInt64, Shape()));
  for (const ps::Variable& variable : definition.variables)
    RETURN_IF_ERROR(CheckVariable(*reader, prefix, variable, definition));
  return OkStatus();
}

StatusOr<ps::VariableState> ReadVariable(const io::BundleReader& reader, const std::string& prefix,
                                         const ps::Variable& variable,
                                         const ps::Definition& definition) {
  ASSIGN_OR_RETURN(Tensor value,
                   ReadAs(reader, prefix, variable.name, variable.dtype, variable.shape));
  ps::VariableState state =
      ps::VariableState::Initial(variable, definition.optimizer, std::move(value));
  const std::vector<optimizer::Slot> slots = SlotsOf(variable, definition);
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::string name = StrCat(variable.name, "/", slots[i].suffix);
    if (!reader.Has(name)) continue;
    ASSIGN_OR_RETURN(state.slots[i], ReadAs(reader, prefix, name, variable.dtype, variable.shape));
  }
  return state;
}

}  // namespace

Status SaveCheckpoint(const std::string& folder, const ps::Definition& definition,
                      const ps::Snapshot& snapshot, int keep, Time now) {
  RETURN_IF_ERROR(ps::CheckFits(snapshot, definition));
  RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string prefix = io::CheckpointPrefix(folder, snapshot.global_step);
  ASSIGN_OR_RETURN(auto writer, io::BundleWriter::Create(prefix));
  for (size_t i = 0; i < definition.variables.size(); ++i) {
    const ps::Variable& variable = definition.variables[i];
    RETURN_IF_ERROR(
        AddVariable(variable, SlotsOf(variable, definition), snapshot.variables[i], *writer));
  }
  RETURN_IF_ERROR(writer->Add(kGlobalStep, Tensor::Scalar<int64_t>(snapshot.global_step)));
  const auto size = static_cast<int64_t>(snapshot.ledger.size());
  RETURN_IF_ERROR(writer->Add(kLedger, DType::kUInt8, Shape({size}),
                              std::as_bytes(std::span(snapshot.ledger))));
  RETURN_IF_ERROR(writer->Finish());
  return io::RegisterCheckpoint(folder, snapshot.global_step, keep, now);
}

StatusOr<ps::Snapshot> LoadCheckpoint(const std::string& prefix, const ps::Definition& definition) {
  ASSIGN_OR_RETURN(auto reader, io::BundleReader::Open(prefix));
  ps::Snapshot snapshot;
  ASSIGN_OR_RETURN(Tensor step, ReadAs(*reader, prefix, kGlobalStep, DType::kInt64, Shape()));
  snapshot.global_step = step.data<int64_t>()[0];
  for (const ps::Variable& variable : definition.variables) {
    ASSIGN_OR_RETURN(ps::VariableState state, ReadVariable(*reader, prefix, variable, definition));
    snapshot.variables.push_back(std::move(state));
  }
  if (reader->Has(kLedger)) {
    ASSIGN_OR_RETURN(Tensor ledger, reader->Read(kLedger));
    snapshot.ledger.assign(reinterpret_cast<const char*>(ledger.bytes().data()),
                           ledger.num_bytes());
  }
  return snapshot;
}

Status CheckLatestCheckpoint(const std::string& folder, const ps::Definition& definition) {
  ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest, io::LatestCheckpoint(folder));
  if (!latest) return OkStatus();
  const Status status = CheckCheckpoint(latest->prefix, definition);
  // An older checkpoint may be intact; only reading it shows that.
  if (absl::IsDataLoss(status)) return LoadLatestCheckpoint(folder, definition).status();
  return status;
}

StatusOr<std::optional<ps::Snapshot>> LoadLatestCheckpoint(const std::string& folder,
                                                           const ps::Definition& definition) {
  ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest, io::LatestCheckpoint(folder));
  if (!latest) return std::optional<ps::Snapshot>();
  StatusOr<ps::Snapshot> snapshot = LoadCheckpoint(latest->prefix, definition);
  if (!absl::IsDataLoss(snapshot.status())) {
    RETURN_IF_ERROR(snapshot.status());
    return std::optional<ps::Snapshot>(*std::move(snapshot));
  }
  ASSIGN_OR_RETURN(const std::vector<io::Checkpoint> listed, io::ListCheckpoints(folder));
  for (auto older = listed.rbegin(); older != listed.rend(); ++older) {
    if (older->prefix == latest->prefix) continue;
    kCheckpointLog.Warning("a checkpoint is damaged; trying an older one",
                           {{"error", snapshot.status()}, {"older", older->prefix}});
    StatusOr<ps::Snapshot> next = LoadCheckpoint(older->prefix, definition);
    if (next.ok()) return std::optional<ps::Snapshot>(*std::move(next));
  }
  return snapshot.status();
}

Status MarkFinished(const std::string& folder, const RunMark& run, int64_t step, Time now) {
  const Json mark = {{"global_step", step},
                     {"job_uid", run.job_uid},
                     {"attempt", run.attempt},
                     {"time", FormatMicroTime(now)}};
  return WriteFileAtomically(FinishedPath(folder), PrintJson(mark) + "\n");
}

Status ClearFinished(const std::string& folder) {
  if (unlink(FinishedPath(folder).c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoStatus(errno, StrCat("remove ", FinishedPath(folder)));
}

StatusOr<std::optional<int64_t>> FinishedStep(const std::string& folder, const RunMark& run) {
  StatusOr<std::string> text = ReadFile(FinishedPath(folder));
  if (absl::IsNotFound(text.status())) return std::optional<int64_t>();
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(Json document, ParseJson(*text, FinishedPath(folder)));
  const JsonField mark(document);
  ASSIGN_OR_RETURN(int64_t step, mark["global_step"].Int());
  ASSIGN_OR_RETURN(std::string job_uid, mark["job_uid"].StringOr(""));
  ASSIGN_OR_RETURN(int64_t attempt, mark["attempt"].IntOr(0));
  if (job_uid != run.job_uid || attempt != run.attempt) return std::optional<int64_t>();
  if (job_uid.empty() && run.oldest != Time()) {
    ASSIGN_OR_RETURN(std::string text_of_time, mark["time"].StringOr(""));
    const StatusOr<Time> time = ParseTime(text_of_time);
    if (!time.ok() || *time < run.oldest) return std::optional<int64_t>();
  }
  return std::optional<int64_t>(step);
}

}  // namespace tfjob::train
