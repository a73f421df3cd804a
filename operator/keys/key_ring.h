// Contains the operator's secret keys. The keys of new jobs are derived from the newest secret key.
// Older secret keys remain in use for jobs that started with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::keys {

// Stores secrets in order of age. A value type. Const member functions are thread-safe and pure.
class KeyRing {
 public:
  static constexpr size_t kMinSecretBytes = 32;
  static constexpr size_t kMaxSecretBytes = 4096;

  // Adds a secret, whose bytes are used exactly as they are. Returns InvalidArgument if `name` is
  // not a DNS label: at most 63 lower-case letters, digits and '-', with a letter or a digit at
  // both ends. Also returns InvalidArgument if the secret is shorter than kMinSecretBytes, is
  // longer than kMaxSecretBytes or consists of equal bytes. Returns AlreadyExists if the ring has a
  // secret with this name. Errors never contain bytes of the secret.
  Status Add(const std::string& name, std::string_view secret);

  // Returns the ids of the keys, from the oldest to the newest. An id is `<name>.<fingerprint>`
  // (job_key.h), so the id changes if another secret is stored under the same name.
  //
  // Names determine the order, because the files of a Secret all have the same time. Names are
  // compared from left to right. Sequences of digits are compared as numbers, and everything else
  // by character: "9" is older than "10", "2026-9" than "2026-11", "a" than "b". If two names are
  // equal in this order ("1" and "01"), the name that comes first in byte order is older.
  std::vector<std::string> ids() const;

  // Returns the job key that is derived from the key with this id (DeriveJobKey); "" if the ring
  // has no such key.
  std::string JobKey(std::string_view id, std::string_view job_uid) const;

  // Returns true if the name in this key id is newer than the name of every key in the ring. In
  // this case, the ring may receive the key later.
  bool MayGet(std::string_view id) const;

  bool operator==(const KeyRing&) const = default;

 private:
  struct Key {
    std::string name;
    std::string id;
    std::string secret;

    bool operator==(const Key&) const = default;
  };

  std::vector<Key> keys_;  // the oldest first
};

}  // namespace tfjob::keys
