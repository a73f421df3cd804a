// One stored object. Pods and services are held decoded, as readers and watchers share them, beside
// their spec and status as text; custom resources decoded only (their decoded form is the whole
// object); events as text only, since nobody decides by them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/client/client.h"

namespace tfjob::store {

struct Record {
  client::Object object;  // holds a null pointer for stored events
  std::string body;    // the object without status (and, but for events, metadata) as JSON; not for
                       // custom resources
  std::string status;  // as JSON; empty: none
  std::map<std::string, std::string> annotations;  // of pods: their decoded form has none
  int64_t grace_period_seconds = 0;                // a pod's spec.terminationGracePeriodSeconds
};

// A new object as it will be stored: `metadata` as stamped by the server, the status dropped (pods:
// Pending).
StatusOr<Record> MakeRecord(client::Kind kind, const Json& object, objects::ObjectMeta metadata);
// The record with `metadata`, its own status, and everything else from `object`.
StatusOr<Record> WithBody(const Record& record, client::Kind kind, const Json& object,
                          objects::ObjectMeta metadata);
// The record with `metadata` and the status of `object`.
StatusOr<Record> WithStatus(const Record& record, client::Kind kind, const Json& object,
                            objects::ObjectMeta metadata);
// The same object under other metadata.
Record WithMetadata(const Record& record, client::Kind kind, objects::ObjectMeta metadata);
// Drops the decoded form where it is not kept.
void Compact(Record& record, client::Kind kind);

// Whether WithBody, WithStatus would change nothing but metadata.
bool SameBody(const Record& record, client::Kind kind, const Json& object);
bool SameStatus(const Record& record, client::Kind kind, const Json& object);

objects::ObjectMeta MetadataOf(const Record& record);
Json WholeObject(const Record& record);
client::Object Decoded(const Record& record);

// About how many bytes of heap it takes.
size_t Bytes(const Record& record);

}  // namespace tfjob::store
