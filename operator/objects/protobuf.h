// Decodes the protobuf messages in which API servers send objects, directly into the structs that
// the operator keeps. The results are the same as those of the JSON readers (ParsePod,
// ParseService, ParseObjectMeta).
//
// The numbers of the fields are those of core/v1/generated.proto (k8s.io/api) and
// meta/v1/generated.proto (k8s.io/apimachinery). Kubernetes never changes them.
#pragma once

#include <string_view>

#include "operator/objects/metadata.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"

namespace tfjob::objects {

// Parse a message. Return InvalidArgument if the message is malformed, or if a field that is read
// has the wrong type or a value out of range. Ignore other fields.
StatusOr<ObjectMeta> ParseObjectMetaProtobuf(std::string_view metadata);
StatusOr<Pod> ParsePodProtobuf(std::string_view pod);
StatusOr<Service> ParseServiceProtobuf(std::string_view service);

// Reads a meta/v1 Time. As in JSON, a time before 1970 is read as unset. Returns InvalidArgument
// for a time after the year 9999.
StatusOr<Time> ParseTimeProtobuf(std::string_view time);

}  // namespace tfjob::objects
