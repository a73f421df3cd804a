// Opens the envelope in which API servers send objects as protobuf: the four bytes "k8s\0" and a
// runtime.Unknown that contains the type of the object and its message.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
#pragma once

#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// Values for the Accept header. A server or a proxy that does not support protobuf answers in JSON.
inline constexpr char kAcceptJson[] = "application/json";
inline constexpr char kAcceptProtobuf[] = "application/vnd.kubernetes.protobuf, application/json";

// Returns whether a response with this Content-Type contains objects in envelopes.
bool IsProtobuf(std::string_view content_type);
// Returns whether the bytes start like an envelope. JSON never does.
bool IsEnvelope(std::string_view bytes);

struct Envelope {
  std::string_view kind;     // "Pod", "PodList", "Status"; valid as long as the bytes are
  std::string_view message;  // an encoded object of that kind; valid as long as the bytes are
};
// Opens the envelope. Returns InvalidArgument if the bytes are not an envelope, or if its content
// is encoded in another way (compressed, or not protobuf).
StatusOr<Envelope> OpenEnvelope(std::string_view bytes);

}  // namespace tfjob::kube
