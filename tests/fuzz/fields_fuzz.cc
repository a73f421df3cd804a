// Checks the readers of individual fields and of small objects with arbitrary bytes. The first byte
// of an input selects how the remaining bytes are read: as a word (w), such as a time or a
// quantity, or as the JSON of a Lease (l), of a TFJob's status (s) or of an object of an unknown
// kind (o).
//   - Reading never crashes.
//   - A value that is accepted and then printed reads back as the same value.
#include <nlohmann/json.hpp>

#include "operator/api/indexes.h"
#include "operator/api/quantity.h"
#include "operator/api/status_json.h"
#include "operator/kube/leader/lease_record.h"
#include "operator/objects/custom_resource.h"
#include "operator/serve/bind_address.h"
#include "operator/view/duration.h"
#include "runtime/base/check.h"
#include "runtime/base/clock.h"

namespace tfjob::fuzz {
namespace {

void CheckTime(std::string_view text) {
  const StatusOr<Time> time = ParseTime(text);
  if (!time.ok() || *time == Time()) return;  // an unset time is printed as ""
  const StatusOr<Time> again = ParseTime(FormatMicroTime(*time));
  ENFORCE(again.ok() && *again == *time, "a printed time must read as the same time");
  const StatusOr<Time> seconds = ParseTime(FormatTime(*time));
  ENFORCE(seconds.ok() && *seconds == TruncateToSeconds(*time), "seconds must read as the same");
}

void CheckWord(std::string_view text) {
  const StatusOr<api::IndexSet> indexes = api::IndexSet::Parse(text);
  if (indexes.ok()) {
    const StatusOr<api::IndexSet> again = api::IndexSet::Parse(indexes->ToString());
    ENFORCE(again.ok() && *again == *indexes, "printed indexes must read as the same set");
    ENFORCE(indexes->empty() == (indexes->size() == 0), "a set knows its size");
  }
  const StatusOr<api::Quantity> quantity = api::ParseQuantity(text);
  if (quantity.ok()) {
    // The maximum length of a text that can be read back. Longer texts can be printed.
    constexpr size_t kMostCharacters = 18;
    const std::string printed = ToString(*quantity);
    const StatusOr<api::Quantity> again = api::ParseQuantity(printed);
    ENFORCE(again.ok() ? *again == *quantity : printed.size() > kMostCharacters,
            StrCat("a printed quantity must read as the same: ", printed));
    (void)ToString(*quantity + *quantity);
  }
  CheckTime(text);
  const StatusOr<Duration> duration = view::ParseDuration(text);
  ENFORCE(!duration.ok() || *duration >= Duration(0), "a duration must not be negative");
  if (duration.ok()) (void)FormatDuration(*duration);
  (void)serve::ParseBindAddress(text);
}

void CheckLease(Json json) {
  const auto lease = kube::ParseLease(std::make_shared<const Json>(std::move(json)));
  if (!lease.ok()) return;
  const auto again =
      kube::ParseLease(std::make_shared<const Json>(kube::ToJson(*lease, "namespace", "name")));
  ENFORCE(again.ok(), StrCat("a written lease must read: ", Message(again.status())));
  ENFORCE(again->SameAs(*lease), "a written lease must read as the same lease");
}

void CheckStatus(const Json& json) {
  const api::TFJobStatus status = api::ReadStatus(JsonField(json));
  const Json written = api::StatusToJson(status);
  ENFORCE(api::StatusToJson(api::ReadStatus(JsonField(written))) == written,
          "a written status must read as the same status");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'w') tfjob::fuzz::CheckWord(rest);
  tfjob::StatusOr<tfjob::Json> json = tfjob::ParseJson(rest, "fuzz");
  if (!json.ok()) return 0;
  if (data[0] == 'l') tfjob::fuzz::CheckLease(*std::move(json));
  if (data[0] == 's') tfjob::fuzz::CheckStatus(*json);
  if (data[0] == 'o') (void)tfjob::objects::ParseCustomResource(*std::move(json));
  return 0;
}
