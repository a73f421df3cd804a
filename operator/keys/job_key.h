// Derives the keys of jobs from the operator's own secret keys. With the job's key (TFJOB_KEY), the
// tasks of a job authenticate each other. Pure, except RandomSecret.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::keys {

// Returns the job's key, which consists of 64 lower-case hex digits. It is the HMAC-SHA256, under
// `secret`, of the text "tfjob.dev/job-key/v1", a zero byte and the job's UID. In a shell, with the
// secret in hexadecimal:
//
//   printf 'tfjob.dev/job-key/v1\0%s' $UID | openssl dgst -sha256 -mac HMAC -macopt hexkey:$SECRET
//
// A UID is never used twice, so no two jobs share a key. A job's key reveals nothing about the
// secret or other keys.
std::string DeriveJobKey(std::string_view secret, std::string_view job_uid);

// Returns the first 8 hex digits of the HMAC-SHA256 of "tfjob.dev/key-fingerprint/v1" under
// `secret`. The fingerprint distinguishes secrets that were stored under the same name. It is not
// secret.
std::string Fingerprint(std::string_view secret);

// Returns 32 random bytes for use as a secret, or Unavailable if the machine cannot provide
// randomness.
StatusOr<std::string> RandomSecret();

}  // namespace tfjob::keys
