// What a Lease says about its holder. https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/
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
  Time acquire_time;                   // when the holder took it
  Time renew_time;                     // for people; never compared with a clock
  int64_t transitions = 0;             // how often it changed hands
  std::string resource_version;        // of the object that it was read from; "": not stored yet
  std::shared_ptr<const Json> object;  // that object: what we do not know of is kept. May be null

  // Whether the spec is the same: nobody has renewed or taken it in between.
  bool SameAs(const LeaseRecord& other) const;
};

// A Lease object. Absent members are empty; a wrong type is InvalidArgument with its path.
StatusOr<LeaseRecord> ParseLease(std::shared_ptr<const Json> object);
// The whole object to send: `record.object`, or a new one, with the members that we write.
Json ToJson(const LeaseRecord& record, const std::string& name_space, const std::string& name);

}  // namespace tfjob::kube
