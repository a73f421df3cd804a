#include "operator/kube/client/resource.h"

namespace tfjob::kube {

using objects::Kind;

std::vector<std::string> CandidateApiVersions(Kind kind) {
  if (kind == Kind::kWorkload) {
    return {"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2",
            "scheduling.k8s.io/v1alpha1"};
  }
  if (kind == Kind::kNativePodGroup) {
    return {"scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3",
            "scheduling.k8s.io/v1alpha2"};
  }
  return {std::string(client::NewestApiVersion(kind))};
}

bool HasOneVersion(Kind kind) {
  return kind != Kind::kWorkload && kind != Kind::kNativePodGroup;
}

std::string_view PluralOf(Kind kind) {
  switch (kind) {
    case Kind::kTFJob:
      return "tfjobs";
    case Kind::kPod:
      return "pods";
    case Kind::kService:
      return "services";
    case Kind::kConfigMap:
      return "configmaps";
    case Kind::kEvent:
      return "events";
    case Kind::kPodGroup:
    case Kind::kCoschedulingPodGroup:
    case Kind::kNativePodGroup:
      return "podgroups";
    case Kind::kWorkload:
      return "workloads";
    case Kind::kNetworkPolicy:
      return "networkpolicies";
    case Kind::kLease:
      return "leases";
    case Kind::kNode:
      return "nodes";
  }
  return "";
}

std::string VersionPath(std::string_view api_version) {
  const bool core = api_version.find('/') == std::string_view::npos;
  return StrCat(core ? "/api/" : "/apis/", api_version);
}

std::string CollectionPath(Kind kind, std::string_view api_version, const std::string& name_space) {
  const bool whole = name_space.empty() || client::IsClusterScoped(kind);
  const std::string part = whole ? "" : StrCat("/namespaces/", Escape(name_space));
  return StrCat(VersionPath(api_version), part, "/", PluralOf(kind));
}

std::string ObjectPath(const client::Key& key, std::string_view api_version,
                       std::string_view subresource) {
  return StrCat(CollectionPath(key.kind, api_version, key.name_space), "/", Escape(key.name),
                subresource.empty() ? "" : "/", subresource);
}

std::string SelectorText(const client::LabelSelector& selector) {
  std::string text;
  for (const auto& [key, value] : selector) {
    text += StrCat(text.empty() ? "" : ",", key, "=", value);
  }
  return text;
}

std::string Escape(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      escaped += c;
    } else {
      escaped += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return escaped;
}

Query& Query::Add(std::string_view name, std::string_view value) {
  text_ += StrCat(text_.empty() ? "?" : "&", name, "=", Escape(value));
  return *this;
}

}  // namespace tfjob::kube
