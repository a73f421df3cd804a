#include "operator/keys/key_ring.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "operator/keys/job_key.h"

namespace tfjob::keys {
namespace {

constexpr size_t kMaxLabel = 63;

bool IsLabel(std::string_view name) {
  const auto fits = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  };
  return !name.empty() && name.size() <= kMaxLabel && std::all_of(name.begin(), name.end(), fits) &&
         name.front() != '-' && name.back() != '-';
}

// Removes the digits at the start of `text` and returns them without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

bool StartsWithDigit(std::string_view text) {
  return !text.empty() && absl::ascii_isdigit(text[0]);
}

// Compares the ages of two names. Returns a negative number if `a` is older than `b`, a positive
// number if it is newer, and 0 if the names differ at most in leading zeros.
int CompareAge(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (StartsWithDigit(a) && StartsWithDigit(b)) {
      const std::string_view one = TakeNumber(a), other = TakeNumber(b);
      if (one.size() != other.size()) return one.size() < other.size() ? -1 : 1;
      if (const int order = one.compare(other); order != 0) return order;
    } else {
      if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return static_cast<int>(b.empty()) - static_cast<int>(a.empty());
}

bool IsOlder(std::string_view a, std::string_view b) {
  const int order = CompareAge(a, b);
  return order == 0 ? a < b : order < 0;
}

Status CheckSecret(std::string_view secret) {
  if (secret.size() < KeyRing::kMinSecretBytes || secret.size() > KeyRing::kMaxSecretBytes) {
    return InvalidArgument("expected ", KeyRing::kMinSecretBytes, " to ", KeyRing::kMaxSecretBytes,
                           " random bytes, got ", secret.size());
  }
  if (secret.find_first_not_of(secret[0]) == std::string_view::npos) {
    return InvalidArgument("expected random bytes, got ", secret.size(), " equal ones");
  }
  return OkStatus();
}

}  // namespace

Status KeyRing::Add(const std::string& name, std::string_view secret) {
  if (!IsLabel(name)) {
    return InvalidArgument(
        "the name of a key: expected lower-case letters, digits and '-', at most ", kMaxLabel,
        ", with a letter or a digit at both ends");
  }
  RETURN_IF_ERROR(CheckSecret(secret));
  const auto at =
      std::lower_bound(keys_.begin(), keys_.end(), name,
                       [](const Key& key, const std::string& of) { return IsOlder(key.name, of); });
  if (at != keys_.end() && at->name == name)
    return AlreadyExists("there are two keys of this name");
  keys_.insert(at, {name, StrCat(name, ".", Fingerprint(secret)), std::string(secret)});
  return OkStatus();
}

std::vector<std::string> KeyRing::ids() const {
  std::vector<std::string> ids;
  ids.reserve(keys_.size());
  for (const Key& key : keys_) ids.push_back(key.id);
  return ids;
}

bool KeyRing::MayGet(std::string_view id) const {
  return keys_.empty() || CompareAge(keys_.back().name, id.substr(0, id.find('.'))) < 0;
}

std::string KeyRing::JobKey(std::string_view id, std::string_view job_uid) const {
  for (const Key& key : keys_) {
    if (key.id == id) return DeriveJobKey(key.secret, job_uid);
  }
  return "";
}

}  // namespace tfjob::keys
