#include "operator/kube/rest/envelope.h"

#include "runtime/base/protobuf_reader.h"

namespace tfjob::kube {
namespace {

constexpr std::string_view kType = "application/vnd.kubernetes.protobuf";
constexpr std::string_view kMagic("k8s\0", 4);

StatusOr<std::string_view> KindOf(std::string_view type_meta) {
  ProtobufReader reader(type_meta);
  std::string_view kind;
  while (reader.Next()) {
    if (reader.field() == 2) kind = reader.Bytes();
  }
  RETURN_IF_ERROR(reader.status());
  return kind;
}

}  // namespace

bool IsProtobuf(std::string_view content_type) {
  return content_type.starts_with(kType);
}

bool IsEnvelope(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

StatusOr<Envelope> OpenEnvelope(std::string_view bytes) {
  if (!IsEnvelope(bytes)) return InvalidArgument("protobuf: expected an object after \"k8s\\0\"");
  ProtobufReader reader(bytes.substr(kMagic.size()));
  Envelope envelope;
  std::string_view encoding;
  std::string_view type;
  while (reader.Next()) {
    switch (reader.field()) {
      case 1: {
        ASSIGN_OR_RETURN(envelope.kind, KindOf(reader.Bytes()));
        break;
      }
      case 2:
        envelope.message = reader.Bytes();
        break;
      case 3:
        encoding = reader.Bytes();
        break;
      case 4:
        type = reader.Bytes();
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  if (!encoding.empty() || !(type.empty() || IsProtobuf(type))) {
    return InvalidArgument("protobuf: the object in the envelope is encoded in another way");
  }
  return envelope;
}

}  // namespace tfjob::kube
