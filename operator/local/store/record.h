// One stored object. Pods and services are held decoded, as readers and watchers share them, with
// their spec and status as text. Custom resources are held only in decoded form, which is the whole
// object. Events are held only as text, since no decision depends on them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/client/client.h"

namespace tfjob::store {

struct Record {
  client::Object object;  // a null pointer for stored events
  std::string body;    // the object without status (and, except for events, metadata) as JSON; not
                       // for custom resources
  std::string status;  // as JSON; empty: none
  std::map<std::string, std::string> annotations;  // for pods: their decoded form has none
  int64_t grace_period_seconds = 0;                // a pod's spec.terminationGracePeriodSeconds
};

// Returns a new object as it will be stored: `metadata` as stamped by the server, the status
// dropped (pods: Pending).
StatusOr<Record> MakeRecord(client::Kind kind, const Json& object, objects::ObjectMeta metadata);
// Returns the record with `metadata`, its own status, and everything else from `object`.
StatusOr<Record> WithBody(const Record& record, client::Kind kind, const Json& object,
                          objects::ObjectMeta metadata);
// Returns the record with `metadata` and the status of `object`.
StatusOr<Record> WithStatus(const Record& record, client::Kind kind, const Json& object,
                            objects::ObjectMeta metadata);
// Returns the same object with other metadata.
Record WithMetadata(const Record& record, client::Kind kind, objects::ObjectMeta metadata);
// Drops the decoded form for kinds that do not keep it.
void Compact(Record& record, client::Kind kind);

// True if WithBody or WithStatus would change only metadata.
bool SameBody(const Record& record, client::Kind kind, const Json& object);
bool SameStatus(const Record& record, client::Kind kind, const Json& object);

objects::ObjectMeta MetadataOf(const Record& record);
Json WholeObject(const Record& record);
client::Object Decoded(const Record& record);

// The approximate number of heap bytes that it takes.
size_t Bytes(const Record& record);

}  // namespace tfjob::store
