// Represents a stored object. Pods and services are kept in decoded form, which readers and
// watchers share, and their spec and status also as text. Custom resources are kept only in decoded
// form, which contains the whole object. Events are kept only as text, because no decision depends
// on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/client/client.h"

namespace tfjob::store {

struct Record {
  client::Object object;  // null for stored events
  std::string body;       // as JSON, without status and, except for events, without metadata; empty
                          // for custom resources
  std::string status;     // as JSON; empty if there is none
  // A pod's annotations. The decoded form contains only one of them, the id of the pod's key.
  std::map<std::string, std::string> annotations;
  int64_t grace_period_seconds = 0;  // spec.terminationGracePeriodSeconds of a pod
};

// Returns the record of a new object. `metadata` is the object's metadata as completed by the
// server. Drops the status (a pod becomes Pending).
StatusOr<Record> MakeRecord(objects::Kind kind, const Json& object, objects::ObjectMeta metadata);
// Returns a copy of the record with `metadata` and the body of `object`. The status stays the same.
StatusOr<Record> WithBody(const Record& record, objects::Kind kind, const Json& object,
                          objects::ObjectMeta metadata);
// Returns a copy of the record with `metadata` and the status of `object`. The body stays the same.
StatusOr<Record> WithStatus(const Record& record, objects::Kind kind, const Json& object,
                            objects::ObjectMeta metadata);
// Returns a copy of the record with `metadata`.
Record WithMetadata(const Record& record, objects::Kind kind, objects::ObjectMeta metadata);
// Drops the decoded form if objects of this kind are stored without it.
void Compact(Record& record, objects::Kind kind);

// Return whether WithBody (or WithStatus) would change only the metadata.
bool SameBody(const Record& record, objects::Kind kind, const Json& object);
bool SameStatus(const Record& record, objects::Kind kind, const Json& object);

objects::ObjectMeta MetadataOf(const Record& record);
Json WholeObject(const Record& record);
client::Object Decoded(const Record& record);

// Returns the approximate number of heap bytes that the record uses.
size_t Bytes(const Record& record);

}  // namespace tfjob::store
