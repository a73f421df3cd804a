#include <chrono>
#include <utility>

#include "operator/kube/rest/api_error.h"
#include "operator/kube/rest/envelope.h"
#include "runtime/base/protobuf_reader.h"

namespace tfjob::kube {
namespace {

StatusOr<std::string> ReadCauseReason(std::string_view message) {
  ProtobufReader reader(message);
  std::string reason;
  while (reader.Next()) {
    if (reader.field() == 1) reason = reader.Text();
  }
  RETURN_IF_ERROR(reader.status());
  return reason;
}

Status ReadDetails(std::string_view message, ApiError& error) {
  ProtobufReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        error.name = reader.Text();
        break;
      case 4: {
        ASSIGN_OR_RETURN(std::string reason, ReadCauseReason(reader.Bytes()));
        error.causes.push_back(std::move(reason));
        break;
      }
      case 5: {
        const int32_t seconds = reader.Int32();
        if (seconds > 0) error.retry_after = std::chrono::seconds(seconds);
        break;
      }
    }
  }
  return reader.status();
}

Status ReadApiStatus(std::string_view message, ApiError& error) {
  ProtobufReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case 3:
        error.message = reader.Text();
        break;
      case 4:
        error.reason = reader.Text();
        break;
      case 5:
        reader.Fail(ReadDetails(reader.Bytes(), error));
        break;
      case 6:
        error.code = reader.Int32();
        break;
    }
  }
  return reader.status();
}

}  // namespace

StatusOr<ApiError> ParseApiErrorProtobuf(std::string_view bytes) {
  ASSIGN_OR_RETURN(const Envelope envelope, OpenEnvelope(bytes));
  if (envelope.kind != "Status") return InvalidArgument("protobuf: expected a Status");
  ApiError error;
  error.is_status = true;
  RETURN_IF_ERROR(ReadApiStatus(envelope.message, error));
  if (error.code == 0) error.code = 500;
  if (error.message.empty()) {
    error.message = error.reason.empty() ? "no message" : error.reason;
  }
  return error;
}

}  // namespace tfjob::kube
