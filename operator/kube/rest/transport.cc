#include "operator/kube/rest/transport.h"

#include "absl/strings/cord.h"

namespace tfjob::kube {
namespace {

constexpr char kTooLong[] = "tfjob.dev/response-too-long";

}  // namespace

Status MarkTooLong(Status error) {
  error.SetPayload(kTooLong, absl::Cord());
  return error;
}

bool IsTooLong(const Status& error) {
  return error.GetPayload(kTooLong).has_value();
}

}  // namespace tfjob::kube
