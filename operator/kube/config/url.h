// Parses the parts of a URL that are needed to reach a server.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

struct Url {
  std::string scheme;  // lower case
  std::string user;    // "user" or "user:password", as written
  std::string host;    // without brackets
  int port = 0;        // 0: not given
  std::string path;    // "" or "/…", without a trailing slash

  // Prints the URL with brackets around an IPv6 address, and without the user.
  std::string Print() const;
  // Returns "host" or "host:port", as written, without the user.
  std::string Authority() const;
};

// Parses an absolute URL "scheme://[user@]host[:port][/path]". Returns InvalidArgument for anything
// else, including control characters, spaces, queries and fragments. The message says what was
// expected and what was found, but never contains the user.
StatusOr<Url> ParseUrl(std::string_view text);

}  // namespace tfjob::kube
