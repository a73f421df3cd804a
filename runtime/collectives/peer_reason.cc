#include "runtime/collectives/peer_reason.h"

#include <string>

#include "runtime/base/json.h"

namespace tfjob::collectives {

Status ReasonOfPeer(uint32_t code, std::string_view text, StatusCode otherwise) {
  const bool known = code > 0 && code <= static_cast<uint32_t>(StatusCode::kUnauthenticated);
  const bool utf8 = IsUtf8(text);
  std::string printable(text);
  for (char& c : printable) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) c = '?';
  }
  return Status(known ? static_cast<StatusCode>(code) : otherwise, printable);
}

}  // namespace tfjob::collectives
