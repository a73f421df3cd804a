// A Lease's record of its holder.
// https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

struct LeaseRecord {
  std::string holder;                  // "": free
  Duration duration{0};                // whole seconds
  Time acquire_time;                   // when the holder acquired it
  Time renew_time;                     // for people; never compared with a clock
  int64_t transitions = 0;             // how often the holder changed
  std::string resource_version;        // of the object it was read from; "": not stored yet
  std::shared_ptr<const Json> object;  // that object, for its unknown members. May be null

  // True if the spec is the same: the lease was neither renewed nor taken in between.
  bool SameAs(const LeaseRecord& other) const;
};

// Parses a Lease object. Missing members are empty; a wrong type is InvalidArgument with its path.
StatusOr<LeaseRecord> ParseLease(std::shared_ptr<const Json> object);
// Returns the whole object to send: `record.object`, or a new one, with the members that we write.
Json ToJson(const LeaseRecord& record, const std::string& name_space, const std::string& name);

}  // namespace tfjob::kube
