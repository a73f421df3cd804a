#include "runtime/api/session.h"

#include <mutex>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/api/fit/job_role.h"
#include "runtime/api/loops/task_group.h"
#include "runtime/api/loops/workspace.h"
#include "runtime/base/log.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/train/job/compiled_model.h"

namespace tfjob::api {
namespace {

Json ToKeys(const FormData& form) {
  Json keys = form.arguments;
  keys["name"] = form.name;
  return keys;
}

Json MetricList(const std::vector<Named>& metrics) {
  Json list = Json::array();
  for (const Named& metric : metrics) list.push_back(MetricJson(metric));
  return list;
}

void AddMeasures(const Loss& loss, const std::vector<Named>& metrics,
                 const std::vector<Named>& weighted_metrics, Json& keys) {
  if (loss.present()) keys["loss"] = ToKeys(Access::Data(loss));
  if (!metrics.empty()) keys["metrics"] = MetricList(metrics);
  if (!weighted_metrics.empty()) keys["weighted_metrics"] = MetricList(weighted_metrics);
}

// Returns the keys of a training file that correspond to the options.
Json KeysOf(const CompileOptions& options) {
  Json keys = Json::object();
  keys["optimizer"] = ToKeys(Access::Data(options.optimizer));
  AddMeasures(options.loss, options.metrics, options.weighted_metrics, keys);
  for (const auto& [name, output] : options.outputs) {
    Json own = {{"loss_weight", output.loss_weight}};
    AddMeasures(output.loss, output.metrics, output.weighted_metrics, own);
    keys["outputs"][name] = std::move(own);
  }
  return keys;
}

tfjob::Status CheckLoss(const Loss& loss) {
  return loss.present() ? Annotate(Access::Data(loss).error, "loss") : OkStatus();
}

// Returns the first error of a model that computes a loss or a metric.
tfjob::Status CheckModels(const Loss& loss, const std::vector<Named>& metrics,
                          const std::vector<Named>& weighted_metrics) {
  RETURN_IF_ERROR(CheckLoss(loss));
  for (const auto* list : {&metrics, &weighted_metrics}) {
    for (const Named& metric : *list) {
      if (metric.model == nullptr) continue;
      RETURN_IF_ERROR(Annotate(FromPublic(metric.model->status()), StrCat("metric ", metric.name)));
    }
  }
  return OkStatus();
}

tfjob::Status CheckModels(const CompileOptions& options) {
  RETURN_IF_ERROR(CheckModels(options.loss, options.metrics, options.weighted_metrics));
  for (const auto& [name, output] : options.outputs) {
    RETURN_IF_ERROR(Annotate(CheckModels(output.loss, output.metrics, output.weighted_metrics),
                             StrCat("outputs.", name)));
  }
  return OkStatus();
}

// Replaces a missing loss when only the other settings are checked.
constexpr char kAnyLoss[] = "mean_squared_error";

// Returns whether there is a loss or a metric. A model without them can be used in functions and
// for predictions; Fit, Step and Evaluate report that the loss is missing.
bool Measures(const CompileOptions& options) {
  return options.loss.present() || !options.metrics.empty() || !options.weighted_metrics.empty() ||
         !options.outputs.empty();
}

// Returns a config with the settings of the session.
StatusOr<config::TrainingConfig> ConfigOfSession(const SessionData& session) {
  RETURN_IF_ERROR(session.error);
  RETURN_IF_ERROR(FromPublic(session.strategy.status()));
  Json keys = Json::object();
  keys["seed"] = session.options.seed;
  keys["threads"] = session.options.threads;
  keys["device"] = session.options.device;
  config::TrainingConfig config;
  RETURN_IF_ERROR(config::SetOpenKeys(config, keys));
  config.strategy = Access::Data(session.strategy).config;
  config.epochs = 1;  // Fit sets the length of the run
  config.log_step_count_steps = 0;
  return config;
}

// Creates the variables if their shapes are known, except in a parameter server, which stores only
// some of the variables.
tfjob::Status BuildIfKnown(CompiledData& state) {
  if (cluster::RoleOf(state.strategy().tf_config) == cluster::Role::kParameterServer)
    return OkStatus();
  const auto features = KnownFeatures(state.internal_model());
  return features ? state.Build(*features) : OkStatus();
}

StatusOr<std::shared_ptr<CompiledData>> CompileWith(
    const std::shared_ptr<const SessionData>& session, const Model& model,
    const CompileOptions& options) {
  RETURN_IF_ERROR(FromPublic(model.status()));
  RETURN_IF_ERROR(CheckModels(options));
  auto state = std::make_shared<CompiledData>(CompiledData{.session = session, .model = model});
  ASSIGN_OR_RETURN(state->config, ConfigOfSession(*session));
  RETURN_IF_ERROR(config::SetOpenKeys(state->config, KeysOf(options)));
  state->config.model.weights = Access::Data(model).weights;
  config::TrainingConfig checked = state->config;
  if (!Measures(options)) checked.loss.name = kAnyLoss;
  RETURN_IF_ERROR(config::Validate(checked, {.model = true, .data = true}));
  if (Measures(options))
    RETURN_IF_ERROR(train::OutputConfigs(state->config, state->internal_model()).status());
  RETURN_IF_ERROR(BuildIfKnown(*state));
  return state;
}

StatusOr<std::shared_ptr<CompiledData>> LoadWhole(const std::shared_ptr<const SessionData>& session,
                                                  const std::string& path) {
  ASSIGN_OR_RETURN(config::TrainingConfig config, ConfigOfSession(*session));
  ASSIGN_OR_RETURN(model::Model read, keras::ReadModelFile(path));
  config.model.file = config.model.weights = path;
  ASSIGN_OR_RETURN(config, train::WithCompiledSettings(std::move(config)));
  if (config.loss.name.empty() && config.outputs == nullptr) {
    return InvalidArgument(path, " has no settings of compile(); use Model::Load, and compile the ",
                           "model with a loss");
  }
  RETURN_IF_ERROR(config::Validate(config, {.model = true, .data = true}));
  const std::string name = read.name;
  auto state = std::make_shared<CompiledData>(
      CompiledData{.session = session, .model = Access::MakeModel(std::move(read), name)});
  state->config = std::move(config);
  RETURN_IF_ERROR(BuildIfKnown(*state));
  return state;
}

// Configures the log for the first session of the process. Returns FailedPrecondition if a later
// session requests a different level.
tfjob::Status ConfigureLogOnce(const std::string& wanted) {
  const std::string level = wanted.empty() ? "warning" : wanted;
  ASSIGN_OR_RETURN(const LogLevel parsed, ParseLogLevel(level));
  static std::once_flag once;
  static std::string configured;
  std::call_once(once, [&] {
    ConfigureLogging(parsed, LogFormat::kText);
    configured = level;
  });
  if (wanted.empty() || level == configured) return OkStatus();
  return FailedPrecondition("the first session of this process has set the level to \"", configured,
                            "\", and all sessions share the log; got \"", level, "\"");
}

}  // namespace

Session::Session(const Strategy& strategy, const SessionOptions& options)
    : data_(std::make_shared<const SessionData>(
          SessionData{strategy, options, Annotate(ConfigureLogOnce(options.log_level), "log_level"),
                      std::make_shared<Workspace>()})) {}

Result<CompiledModel> Session::Compile(const Model& model, const CompileOptions& options) const {
  auto compiled = CompileWith(data_, model, options);
  if (!compiled.ok()) return ToPublic(compiled.status());
  return Access::MakeCompiled(*std::move(compiled));
}

Result<CompiledModel> Session::Load(const std::string& path) const {
  auto loaded = LoadWhole(data_, path);
  if (!loaded.ok()) return ToPublic(loaded.status());
  return Access::MakeCompiled(*std::move(loaded));
}

Status Session::ServeVariables() const {
  const StatusOr<config::TrainingConfig> config = ConfigOfSession(*data_);
  if (!config.ok()) return ToPublic(config.status());
  const StrategyData& strategy = Access::Data(data_->strategy);
  if (cluster::RoleOf(strategy.tf_config) != cluster::Role::kParameterServer) return {};
  return ToPublic(RunUntilJobEnds(TaskOptionsOf(strategy, *config), data_->options));
}

namespace {

tfjob::Status AwaitTasks(const SessionData& session) {
  ASSIGN_OR_RETURN(const config::TrainingConfig config, ConfigOfSession(session));
  ASSIGN_OR_RETURN(TaskGroup * group,
                   session.workspace->Group(Access::Data(session.strategy), config));
  if (group == nullptr) return OkStatus();
  MutexLock turn(group->mutex());
  return group->steps().Barrier();
}

}  // namespace

Status Session::Barrier() const {
  return ToPublic(AwaitTasks(*data_));
}

bool Session::is_chief() const {
  return data_->strategy.is_chief();
}

const Strategy& Session::strategy() const& {
  return data_->strategy;
}

}  // namespace tfjob::api
