#include "runtime/api/fit/fit_result.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/api/fit/json_number.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/train/model_dir/checkpoint.h"

namespace tfjob::api {
namespace {

std::string FolderOfResult(const FitId& id) {
  return id.folder + "/result";
}
std::string PathOfResult(const FitId& id) {
  return FolderOfResult(id) + "/result.json";
}

Json HistoryToJson(const History& history) {
  Json values = Json::object();
  for (const auto& [name, numbers] : history.values) {
    Json& list = values[name] = Json::array();
    for (const double number : numbers) list.push_back(NumberToJson(number));
  }
  return {{"epoch", history.epoch}, {"values", std::move(values)}, {"stopped", history.stopped}};
}

StatusOr<History> ReadHistory(const JsonField& field) {
  History history;
  ASSIGN_OR_RETURN(const auto epochs, field["epoch"].Elements());
  for (const JsonField& epoch : epochs) {
    ASSIGN_OR_RETURN(history.epoch.emplace_back(), epoch.Int());
  }
  ASSIGN_OR_RETURN(const auto metrics, field["values"].Members());
  for (const auto& [name, list] : metrics) {
    ASSIGN_OR_RETURN(const auto numbers, list.Elements());
    for (const JsonField& number : numbers) {
      ASSIGN_OR_RETURN(history.values[name].emplace_back(), ReadNumber(number));
    }
  }
  ASSIGN_OR_RETURN(history.stopped, field["stopped"].Bool());
  return history;
}

}  // namespace

tfjob::Status WriteFitResult(const FitId& id, const FitResult& result,
                             const state::TrainingState& training) {
  RETURN_IF_ERROR(MakeDirectories(FolderOfResult(id)));
  RETURN_IF_ERROR(train::SaveCheckpoint(FolderOfResult(id), training, *result.values, /*keep=*/1,
                                        RealClock().Now()));
  // A reader that finds this file also finds the values.
  const Json document = {{"job_uid", id.job_uid},
                         {"run", id.run},
                         {"run_end", result.run_end},
                         {"planned_step", result.planned_step},
                         {"epochs_begun", result.epochs_begun},
                         {"values_step", result.values->global_step},
                         {"history", HistoryToJson(result.history)}};
  return WriteFileAtomically(PathOfResult(id), PrintJson(document) + "\n");
}

StatusOr<std::optional<FitResult>> ReadFitResult(const FitId& id,
                                                 std::optional<int64_t> planned_step,
                                                 const state::TrainingState* training) {
  const StatusOr<std::string> text = ReadFile(PathOfResult(id));
  if (absl::IsNotFound(text.status())) return std::optional<FitResult>();
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const Json document, ParseJson(*text, PathOfResult(id)));
  const JsonField root(document);
  ASSIGN_OR_RETURN(const std::string job_uid, root["job_uid"].String());
  ASSIGN_OR_RETURN(const int64_t run, root["run"].Int());
  FitResult result;
  ASSIGN_OR_RETURN(result.planned_step, root["planned_step"].Int());
  const bool same_plan = !planned_step || result.planned_step == *planned_step;
  if (job_uid != id.job_uid || run != id.run || !same_plan) return std::optional<FitResult>();
  ASSIGN_OR_RETURN(result.run_end, root["run_end"].Int());
  ASSIGN_OR_RETURN(result.epochs_begun, root["epochs_begun"].Int());
  ASSIGN_OR_RETURN(const int64_t values_step, root["values_step"].Int());
  ASSIGN_OR_RETURN(result.history, ReadHistory(root["history"]));
  if (training == nullptr) return std::optional<FitResult>(std::move(result));
  ASSIGN_OR_RETURN(auto saved, train::LoadLatestCheckpoint(FolderOfResult(id), *training));
  if (!saved || saved->global_step != values_step) {
    return DataLoss(PathOfResult(id), ": expected a checkpoint of step ", values_step,
                    " beside it, ",
                    saved ? StrCat("got one of step ", saved->global_step) : "got none",
                    "; delete the folder, so that this Fit ends again from its last checkpoint");
  }
  result.values = std::make_shared<const state::Snapshot>(*std::move(saved));
  return std::optional<FitResult>(std::move(result));
}

}  // namespace tfjob::api
