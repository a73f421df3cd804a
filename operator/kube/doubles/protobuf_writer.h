// Writes pods, services and statuses in the protobuf form that an API server uses, for tests.
// Supports the fields that the operator reads, and a few that it skips.
#pragma once

#include <string>
#include <string_view>

#include "operator/client/client.h"
#include "runtime/base/json.h"

namespace tfjob::kube {

// Return the encoded message of the JSON object, without an envelope. The kind is kPod or kService.
std::string WriteProtobuf(objects::Kind kind, const Json& object);

// Return an envelope that contains, respectively: the object; the list (an object with the members
// "items" and "metadata"); the metav1.Status; the protobuf message.
std::string WriteEnvelope(objects::Kind kind, const Json& object);
std::string WriteListEnvelope(objects::Kind kind, const Json& list);
std::string WriteStatusEnvelope(const Json& status);
std::string WriteEnvelope(std::string_view kind, std::string_view message);

// Returns a watch frame, including its length, for an event about the object in `envelope`.
std::string WriteEventFrame(std::string_view type, std::string_view envelope);

// Returns a field of a message.
std::string WriteField(int number, std::string_view bytes);
std::string WriteField(int number, int64_t value);

}  // namespace tfjob::kube
