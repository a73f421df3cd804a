#include "operator/objects/packed_resource.h"

#include <nlohmann/json.hpp>

#include "operator/objects/custom_resource.h"
#include "runtime/base/check.h"
#include "runtime/base/json_view.h"

namespace tfjob::objects {
namespace {

// Parses packed JSON. The fast parser rejects only JSON that is nested too deeply, which ParseJson
// can still parse.
Json ParsePacked(const std::string& text) {
  thread_local JsonDocument document;
  if (const auto view = document.Parse(text); view.ok()) return ToJson(*view);
  StatusOr<Json> json = ParseJson(text, "");
  ENFORCE(json.ok(), "the text of a packed resource does not parse");
  return *std::move(json);
}

}  // namespace

std::shared_ptr<const CustomResource> PackedResource::Unpack() const {
  Json object = ParsePacked(text);
  object["apiVersion"] = api_version;
  object["kind"] = kind;
  object["metadata"] = ToJson(metadata);
  auto resource = std::make_shared<CustomResource>();
  resource->metadata = metadata;
  resource->api_version = api_version;
  resource->kind = kind;
  resource->object = std::make_shared<const Json>(std::move(object));
  resource->problem = problem;
  return resource;
}

}  // namespace tfjob::objects
