#include "operator/kube/config/load.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "operator/kube/config/kubeconfig.h"
#include "runtime/base/file.h"

namespace tfjob::kube {
namespace {

class Loader {
 public:
  explicit Loader(const LoadOptions& options) : options_(options) {}

  StatusOr<ClusterConfig> Load() {
    if (!options_.kubeconfig.empty()) return FromFiles({options_.kubeconfig}, true);
    const std::string list = options_.in_cluster.environment("KUBECONFIG").value_or("");
    const bool controller = options_.order == LoadOrder::kController;
    if (!list.empty()) {
      const std::vector<std::string> files = absl::StrSplit(list, ':', absl::SkipEmpty());
      StatusOr<ClusterConfig> config = FromFiles(files, false);
      // If KUBECONFIG is set, a controller does not try any other place.
      if (config.status().code() != StatusCode::kNotFound || controller) return Or(config);
    }
    const auto in_cluster = [this] { return FromPod(); };
    const auto home = [this, &list] { return list.empty() ? FromHome() : NotFound(""); };
    StatusOr<ClusterConfig> config = controller ? in_cluster() : home();
    if (config.status().code() == StatusCode::kNotFound)
      config = controller ? home() : in_cluster();
    return Or(config);
  }

 private:
  // Returns `config` or, if no configuration was found, an error that lists the places that were
  // tried.
  StatusOr<ClusterConfig> Or(StatusOr<ClusterConfig> config) {
    if (config.status().code() != StatusCode::kNotFound) return config;
    return NotFound("no cluster is configured: ", absl::StrJoin(tried_, "; "),
                    "; name a kubeconfig with --kubeconfig or KUBECONFIG");
  }

  StatusOr<ClusterConfig> FromFiles(const std::vector<std::string>& files, bool must_exist) {
    std::vector<Kubeconfig> parsed;
    for (const std::string& file : files) {
      std::error_code error;
      if (!must_exist && !std::filesystem::exists(file, error)) {
        tried_.push_back(StrCat(file, " does not exist"));
        continue;
      }
      const StatusOr<std::string> text = ReadFile(file);
      if (!text.ok()) return InvalidArgument("the kubeconfig: ", Message(text.status()));
      ASSIGN_OR_RETURN(Kubeconfig config, ParseKubeconfig(*text, file));
      parsed.push_back(std::move(config));
    }
    if (parsed.empty()) return NotFound("");
    ResolveOptions resolve;
    resolve.context = options_.context;
    resolve.environment = options_.in_cluster.environment;
    resolve.clock = options_.in_cluster.clock;
    return ResolveKubeconfig(MergeKubeconfigs(std::move(parsed)), resolve);
  }

  StatusOr<ClusterConfig> FromPod() {
    if (!options_.context.empty()) {
      return NotFound("");
    }
    StatusOr<ClusterConfig> config = InClusterConfig(options_.in_cluster);
    if (config.status().code() == StatusCode::kNotFound) {
      tried_.emplace_back(Message(config.status()));
    }
    return config;
  }

  StatusOr<ClusterConfig> FromHome() {
    const std::string home = options_.in_cluster.environment("HOME").value_or("");
    if (home.empty()) {
      tried_.emplace_back("HOME is not set");
      return NotFound("");
    }
    return FromFiles({StrCat(home, "/.kube/config")}, false);
  }

  const LoadOptions& options_;
  std::vector<std::string> tried_;
};

}  // namespace

StatusOr<ClusterConfig> LoadClusterConfig(const LoadOptions& options) {
  return Loader(options).Load();
}

}  // namespace tfjob::kube
