// Checks that the TF_CONFIG of a job's tasks fits into their environment.
#pragma once

#include <cstddef>

#include "operator/api/tfjob.h"
#include "operator/render/address.h"
#include "runtime/base/status.h"

namespace tfjob::render {

class ClusterSpec;

// The maximum size of TF_CONFIG in bytes. Linux refuses to start a program if one string of its
// environment is longer than 128 KiB (MAX_ARG_STRLEN in linux/binfmts.h), including the name, the
// "=" and the final NUL.
inline constexpr size_t kMaxTfConfig = 128 * 1024 - sizeof("TF_CONFIG=");

// Returns InvalidArgument if the TF_CONFIG of a task would be too long for its container to start.
// The message contains the largest number of replicas that fits. `cluster` contains the addresses
// of the job's tasks.
Status CheckTfConfigSize(const api::TFJob& job, const ClusterSpec& cluster,
                         const AddressScheme& address);

}  // namespace tfjob::render
