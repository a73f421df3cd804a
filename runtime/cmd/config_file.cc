#include "runtime/cmd/config_file.h"

#include <utility>

#include "runtime/base/file.h"
#include "runtime/train/job/compiled_model.h"

namespace tfjob::cmd {
namespace {

void LeaveOutCaches(config::SourceConfig& source) {
  source.cache = config::CacheKind::kNone;
  source.cache_file.clear();
  for (config::SourceConfig& part : source.datasets) LeaveOutCaches(part);
}

}  // namespace

StatusOr<config::TrainingConfig> ReadConfig(const std::string& path,
                                            const std::vector<std::string>& settings) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(config::TrainingConfig config, config::ParseTrainingConfig(text, path));
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return InvalidArgument("--set ", setting, ": expected key=value");
    RETURN_IF_ERROR(Annotate(
        config::Override(config, setting.substr(0, equals), setting.substr(equals + 1)), "--set"));
  }
  ASSIGN_OR_RETURN(config, train::WithCompiledSettings(std::move(config)));
  RETURN_IF_ERROR(Annotate(config::Validate(config), path));
  return config;
}

config::TrainingConfig WithoutCaches(config::TrainingConfig config) {
  LeaveOutCaches(config.data.train);
  return config;
}

}  // namespace tfjob::cmd
