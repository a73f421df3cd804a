// The parts of a URL that reach a server.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

struct Url {
  std::string scheme;  // lower case
  std::string user;    // "user" or "user:password", as it was written
  std::string host;    // without brackets
  int port = 0;        // 0: none was given
  std::string path;    // "" or "/…", no slash at the end

  // With brackets around an IPv6 address; without user, query and fragment.
  std::string Print() const;
  // "host" or "host:port", as it was written, without user.
  std::string Authority() const;
};

// An absolute URL "scheme://[user@]host[:port][/path]". InvalidArgument without naming the text's
// user part: what was expected and what came. Control characters and spaces are refused.
StatusOr<Url> ParseUrl(std::string_view text);

}  // namespace tfjob::kube
