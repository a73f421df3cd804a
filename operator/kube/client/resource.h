// Maps each kind to its place in the API: group, version and plural to paths and queries.
#pragma once

#include <string>
#include <vector>

#include "operator/client/client.h"

namespace tfjob::kube {

// Versions to try if the server's version is not known, newest first. Most kinds have only one.
std::vector<std::string> CandidateApiVersions(client::Kind kind);
bool HasOneVersion(client::Kind kind);
// "pods".
std::string_view PluralOf(client::Kind kind);

// "/api/v1", "/apis/kubeflow.org/v1": the path of one version's resources.
std::string VersionPath(std::string_view api_version);
// "/apis/kubeflow.org/v1/namespaces/ns/tfjobs"; all namespaces if `name_space` is "".
std::string CollectionPath(client::Kind kind, std::string_view api_version,
                           const std::string& name_space);
// The path of one object, or of its `subresource` ("status").
std::string ObjectPath(const client::Key& key, std::string_view api_version,
                       std::string_view subresource = "");

// "k=v,k2=v2", not escaped.
std::string SelectorText(const client::LabelSelector& selector);
// Percent-encodes all characters except letters, digits and "-._~".
std::string Escape(std::string_view text);

// Builds "?a=b&c=d".
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace tfjob::kube
