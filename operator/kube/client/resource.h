// Where an API server keeps each kind: group, version, plural → paths and queries.
#pragma once

#include <string>
#include <vector>

#include "operator/client/client.h"

namespace tfjob::kube {

// The versions to look for when the server's is not known, newest first; one for most kinds.
std::vector<std::string> CandidateApiVersions(client::Kind kind);
bool HasOneVersion(client::Kind kind);
// "pods".
std::string_view PluralOf(client::Kind kind);

// "/api/v1", "/apis/kubeflow.org/v1": the resources of one version.
std::string VersionPath(std::string_view api_version);
// "/apis/kubeflow.org/v1/namespaces/ns/tfjobs"; all namespaces when it is "".
std::string CollectionPath(client::Kind kind, std::string_view api_version,
                           const std::string& name_space);
// One object, or its `subresource` ("status").
std::string ObjectPath(const client::Key& key, std::string_view api_version,
                       std::string_view subresource = "");

// "k=v,k2=v2", not escaped.
std::string SelectorText(const client::LabelSelector& selector);
// Percent-encodes everything but letters, digits and "-._~".
std::string Escape(std::string_view text);

// Collects "?a=b&c=d".
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace tfjob::kube
