// Maps kinds to the paths of their resources (group, version and plural), and builds queries.
#pragma once

#include <string>
#include <vector>

#include "operator/client/client.h"

namespace tfjob::kube {

// Returns the API versions in which a server may serve the kind, newest first. Most kinds have only
// one.
std::vector<std::string> CandidateApiVersions(objects::Kind kind);
bool HasOneVersion(objects::Kind kind);
// Returns the plural that paths contain, such as "pods".
std::string_view PluralOf(objects::Kind kind);

// Returns the path of a version's resources, such as "/api/v1" or "/apis/kubeflow.org/v1".
std::string VersionPath(std::string_view api_version);
// Returns a path such as "/apis/kubeflow.org/v1/namespaces/ns/tfjobs". If `name_space` is "", the
// path covers all namespaces.
std::string CollectionPath(objects::Kind kind, std::string_view api_version,
                           const std::string& name_space);
// Returns the path of an object or, if `subresource` is not empty, of this subresource ("status").
std::string ObjectPath(const client::Key& key, std::string_view api_version,
                       std::string_view subresource = "");

// Returns the selector as text, "k=v,k2=v2", not escaped.
std::string SelectorText(const client::LabelSelector& selector);
// Percent-encodes all characters except letters, digits and "-._~".
std::string Escape(std::string_view text);

// Builds the query part of a request target: "?a=b&c=d".
class Query {
 public:
  Query& Add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace tfjob::kube
