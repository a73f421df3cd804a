// Implements a group whose tasks are processes: the member's side, which joins the group and
// connects to the leader and the other members. Private to this package.
#pragma once

#include <memory>

#include "runtime/collectives/endpoint/endpoint.h"

namespace tfjob::collectives {

std::unique_ptr<Group> MakeRemoteGroup(std::shared_ptr<Endpoint::State> state,
                                       GroupOptions options);

}  // namespace tfjob::collectives
