// Decodes pods and services that an API server sends as protobuf. As in decode.h, an object that
// cannot be read does not affect the other objects of its list or stream.
#pragma once

#include <string_view>

#include "operator/kube/client/decode.h"

namespace tfjob::kube {

// Returns whether objects of the kind can be read from protobuf. This is true only of pods and
// services: they are numerous, and custom resources have no protobuf form.
bool HasProtobuf(objects::Kind kind);

// Decode an envelope (operator/kube/rest/envelope.h) that contains an object or a page of a list.
// Return InvalidArgument if it contains anything else, or an object of a kind without protobuf.
StatusOr<client::Object> DecodeProtobufObject(objects::Kind kind, std::string_view bytes);
StatusOr<ListPage> DecodeProtobufPage(objects::Kind kind, std::string_view bytes,
                                      const Packer& pack);

// Decodes one frame of a watch: a meta/v1 WatchEvent. Returns InvalidArgument if it is not an event
// with a resourceVersion.
StatusOr<WatchEvent> DecodeProtobufEvent(objects::Kind kind, std::string_view frame);

}  // namespace tfjob::kube
