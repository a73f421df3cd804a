#include "operator/local/process/unsupported.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tfjob::process {
namespace {

struct Unsupported {
  std::string_view field;
  std::string_view consequence;
};

constexpr std::array kPodFields = {
    Unsupported{"activeDeadlineSeconds", "the pod may run for longer"},
    Unsupported{"affinity", "every pod runs on this machine"},
    Unsupported{"dnsConfig", "names are resolved as on this machine"},
    Unsupported{"hostAliases", "names are resolved as on this machine"},
    Unsupported{"imagePullSecrets", "images are not pulled"},
    Unsupported{"nodeSelector", "every pod runs on this machine"},
    Unsupported{"runtimeClassName", "containers are processes of this machine"},
    Unsupported{"securityContext", "containers run as the user who started the program"},
    Unsupported{"shareProcessNamespace", "all processes of this machine see each other"},
    Unsupported{"tolerations", "every pod runs on this machine"},
    Unsupported{"topologySpreadConstraints", "every pod runs on this machine"},
};

constexpr std::array kContainerFields = {
    Unsupported{"lifecycle", "no hook is called"},
    Unsupported{"livenessProbe", "a container is alive while its process is"},
    Unsupported{"readinessProbe", "a container is ready while its process runs"},
    Unsupported{"resources", "the process may use the whole machine"},
    Unsupported{"securityContext", "containers run as the user who started the program"},
    Unsupported{"startupProbe", "a container is started when its process is"},
    Unsupported{"stdin", "standard input is empty"},
    Unsupported{"tty", "there is no terminal"},
    Unsupported{"volumeDevices", "no device is mapped"},
};

// The members of a security context that only remove rights or concern only a cluster's volumes.
constexpr std::array<std::string_view, 9> kRestrictions = {
    "allowPrivilegeEscalation", "appArmorProfile",        "fsGroup",
    "fsGroupChangePolicy",      "readOnlyRootFilesystem", "runAsNonRoot",
    "seLinuxOptions",           "seccompProfile",         "supplementalGroups"};

// Returns whether the security context grants no right and names no user. On this machine,
// containers have the rights of the user who started this program, so ignoring such a context
// affects only programs that need other rights.
bool OnlyRestricts(const JsonField& context) {
  const auto members = context.Members();
  if (!members.ok()) return false;
  return std::ranges::all_of(*members, [](const auto& member) {
    const auto& [name, value] = member;
    if (!value.present()) return true;
    if (name == "allowPrivilegeEscalation") return DescribeJson(*value.value()) == "false";
    if (name == "capabilities") return !value["add"].present();
    return std::ranges::find(kRestrictions, name) != kRestrictions.end();
  });
}

template <size_t N>
void Collect(const JsonField& object, const std::array<Unsupported, N>& fields,
             std::vector<std::string>& warnings) {
  for (const auto& [field, consequence] : fields) {
    const JsonField value = object[field];
    if (!value.present() || DescribeJson(*value.value()) == "false") continue;
    if (field == "securityContext" && OnlyRestricts(value)) continue;
    warnings.push_back(StrCat(value.path(), " has no effect on this machine: ", consequence));
  }
}

void CollectFromVolumes(const JsonField& spec, std::vector<std::string>& warnings) {
  const auto volumes = spec["volumes"].Elements();
  if (!volumes.ok()) return;
  for (const JsonField& volume : *volumes) {
    if (const JsonField claim = volume["persistentVolumeClaim"]; claim.present()) {
      warnings.push_back(StrCat(claim.path(),
                                " becomes a folder of this machine (--claims-dir), which stays "
                                "after the run: nothing is claimed"));
    }
    for (const char* field : {"medium", "sizeLimit"}) {
      const JsonField value = volume["emptyDir"][field];
      if (value.present()) {
        warnings.push_back(
            StrCat(value.path(), " has no effect on this machine: the volume is a folder on disk"));
      }
    }
  }
}

}  // namespace

std::vector<std::string> UnsupportedFields(const JsonField& pod) {
  std::vector<std::string> warnings;
  const JsonField spec = pod["spec"];
  Collect(spec, kPodFields, warnings);
  for (const char* list : {"initContainers", "containers"}) {
    const auto containers = spec[list].Elements();
    if (!containers.ok()) continue;
    for (const JsonField& container : *containers) Collect(container, kContainerFields, warnings);
  }
  CollectFromVolumes(spec, warnings);
  return warnings;
}

}  // namespace tfjob::process
