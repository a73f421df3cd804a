// Defines the part of a Lease that records its holder.
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
  Time acquire_time;                   // when the holder acquired the lease
  Time renew_time;                     // for users; never compared with a clock
  int64_t transitions = 0;             // how many times the holder has changed
  std::string resource_version;        // that of `object`; "" if the lease is not stored yet
  std::shared_ptr<const Json> object;  // what was read, kept for its unknown members; may be null

  // Returns true if the specs are the same, that is, if the lease was neither renewed nor acquired
  // between the two reads.
  bool SameAs(const LeaseRecord& other) const;
};

// Parses a Lease object. Leaves missing members empty. Returns InvalidArgument, with the path, if a
// member has the wrong type.
StatusOr<LeaseRecord> ParseLease(std::shared_ptr<const Json> object);
// Returns the whole object to send: `record.object` (or a new object if it is null), with the spec
// and metadata set from the arguments.
Json ToJson(const LeaseRecord& record, const std::string& name_space, const std::string& name);

}  // namespace tfjob::kube
