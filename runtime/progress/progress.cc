#include "runtime/progress/progress.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tfjob::progress {
namespace {

constexpr std::array<std::string_view, 8> kStateNames = {
    "starting", "waiting", "training", "serving", "evaluating", "saving", "finished", "failed"};

StatusOr<State> ParseState(const JsonField& field) {
  ASSIGN_OR_RETURN(std::string name, field.String());
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    if (kStateNames[i] == name) return static_cast<State>(i);
  }
  return field.Mismatch("a task state");
}

StatusOr<Peer> ParsePeer(const JsonField& field) {
  Peer peer;
  ASSIGN_OR_RETURN(peer.task, field["task"].String());
  ASSIGN_OR_RETURN(peer.address, field["address"].StringOr(""));
  ASSIGN_OR_RETURN(peer.state, field["state"].StringOr(""));
  ASSIGN_OR_RETURN(peer.silent_s, field["silent_s"].DoubleOr(0));
  return peer;
}

StatusOr<RunEnd> ParseRunEnd(const JsonField& field) {
  RunEnd end;
  ASSIGN_OR_RETURN(end.step, field["step"].Int());
  ASSIGN_OR_RETURN(end.run, field["run"].String());
  ASSIGN_OR_RETURN(end.failure, field["failure"].StringOr(""));
  return end;
}

StatusOr<std::optional<double>> OptionalDouble(const JsonField& field) {
  if (!field.present()) return std::optional<double>();
  ASSIGN_OR_RETURN(double value, field.Double());
  return std::optional<double>(value);
}

Json ToJson(const Peer& peer) {
  return {{"task", peer.task},
          {"address", peer.address},
          {"state", peer.state},
          {"silent_s", peer.silent_s}};
}

Json ToJson(const RunEnd& end) {
  Json json = {{"step", end.step}, {"run", end.run}};
  if (!end.failure.empty()) json["failure"] = end.failure;
  return json;
}

// JSON has no NaN or infinity, so such values are omitted.
void SetFinite(Json& json, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) json[key] = *value;
}

}  // namespace

std::string_view Name(State state) {
  return kStateNames[static_cast<size_t>(state)];
}

Json ToJson(const Progress& progress) {
  Json json = {{"task", progress.task},
               {"state", Name(progress.state)},
               {"step", progress.step},
               {"max_steps", progress.max_steps},
               {"epoch", progress.epoch}};
  if (!progress.waiting_for.empty()) json["waiting_for"] = progress.waiting_for;
  SetFinite(json, "steps_per_s", progress.steps_per_s);
  SetFinite(json, "loss", progress.loss);
  SetFinite(json, "seconds_left", progress.seconds_left);
  Json& metrics = json["metrics"] = Json::object();
  for (const auto& [name, value] : progress.metrics) SetFinite(metrics, name.c_str(), value);
  Json& peers = json["peers"] = Json::array();
  for (const Peer& peer : progress.peers) peers.push_back(ToJson(peer));
  if (!progress.problems.empty()) json["problems"] = progress.problems;
  if (progress.run_end) json["run_end"] = ToJson(*progress.run_end);
  for (const RunEnd& end : progress.earlier_runs) json["earlier_runs"].push_back(ToJson(end));
  return json;
}

StatusOr<Progress> ParseProgress(const Json& json) {
  const JsonField root(json);
  Progress progress;
  ASSIGN_OR_RETURN(progress.task, root["task"].String());
  ASSIGN_OR_RETURN(progress.state, ParseState(root["state"]));
  ASSIGN_OR_RETURN(progress.waiting_for, root["waiting_for"].StringOr(""));
  ASSIGN_OR_RETURN(progress.step, root["step"].IntOr(0));
  ASSIGN_OR_RETURN(progress.max_steps, root["max_steps"].IntOr(0));
  ASSIGN_OR_RETURN(progress.epoch, root["epoch"].IntOr(0));
  ASSIGN_OR_RETURN(progress.steps_per_s, root["steps_per_s"].DoubleOr(0));
  ASSIGN_OR_RETURN(progress.loss, OptionalDouble(root["loss"]));
  ASSIGN_OR_RETURN(progress.seconds_left, OptionalDouble(root["seconds_left"]));
  ASSIGN_OR_RETURN(auto metrics, root["metrics"].Members());
  for (const auto& [name, value] : metrics) {
    ASSIGN_OR_RETURN(progress.metrics[name], value.Double());
  }
  ASSIGN_OR_RETURN(auto peers, root["peers"].Elements());
  for (const JsonField& field : peers) {
    ASSIGN_OR_RETURN(Peer peer, ParsePeer(field));
    progress.peers.push_back(std::move(peer));
  }
  ASSIGN_OR_RETURN(auto problems, root["problems"].Members());
  for (const auto& [name, value] : problems) {
    ASSIGN_OR_RETURN(progress.problems[name], value.String());
  }
  if (root["run_end"].present()) {
    ASSIGN_OR_RETURN(progress.run_end, ParseRunEnd(root["run_end"]));
  }
  ASSIGN_OR_RETURN(auto earlier, root["earlier_runs"].Elements());
  for (const JsonField& field : earlier) {
    ASSIGN_OR_RETURN(RunEnd end, ParseRunEnd(field));
    progress.earlier_runs.push_back(std::move(end));
  }
  return progress;
}

}  // namespace tfjob::progress
