#include "operator/kube/config/url.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace tfjob::kube {
namespace {

bool IsScheme(std::string_view text) {
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) || c == '+' || c == '-' || c == '.';
  };
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

bool IsHost(std::string_view text, bool bracketed) {
  const auto is_allowed = [bracketed](unsigned char c) {
    if (bracketed) return std::isxdigit(c) || c == ':' || c == '.';
    return std::isalnum(c) || c == '-' || c == '.' || c == '_';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_allowed);
}

// Splits "host:port". Returns false if the host is not a name, an IPv4 address or an IPv6 address
// in brackets, or if the port is invalid.
bool SplitAuthority(std::string_view text, Url& url) {
  std::string_view port;
  bool has_port = false;
  const bool bracketed = !text.empty() && text[0] == '[';
  const size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed) {
    if (end == text.npos) return false;
    url.host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    has_port = !rest.empty();
    if (has_port && rest[0] != ':') return false;
    port = has_port ? rest.substr(1) : rest;
  } else {
    url.host = text.substr(0, end);
    has_port = end != text.npos;
    if (has_port) port = text.substr(end + 1);
  }
  if (!IsHost(url.host, bracketed)) return false;
  if (!has_port) return true;
  const bool digits =
      std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c); });
  return digits && absl::SimpleAtoi(internal::Piece(port), &url.port) && url.port > 0 &&
         url.port < 65536;
}

}  // namespace

std::string Url::Print() const {
  return StrCat(scheme, "://", Authority(), path);
}

std::string Url::Authority() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return StrCat(ipv6 ? "[" : "", host, ipv6 ? "]" : "", port == 0 ? "" : ":",
                port == 0 ? "" : StrCat(port));
}

StatusOr<Url> ParseUrl(std::string_view text) {
  constexpr std::string_view kMark = "://";
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; })) {
    return InvalidArgument("expected a URL, got spaces or other characters not allowed in one");
  }
  Url url;
  const size_t mark = text.find(kMark);
  if (mark == text.npos || !IsScheme(text.substr(0, mark))) {
    return InvalidArgument("expected a URL scheme://host:port, got no scheme");
  }
  url.scheme = absl::AsciiStrToLower(internal::Piece(text.substr(0, mark)));
  text.remove_prefix(mark + kMark.size());
  const size_t slash = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, slash);
  std::string_view path = text.substr(slash);
  if (path.find_first_of("?#") != path.npos) {
    return InvalidArgument("expected a URL without a query, got one");
  }
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  url.path = path;
  if (const size_t at = authority.rfind('@'); at != authority.npos) {
    url.user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  if (SplitAuthority(authority, url)) return url;
  // If an '@' follows the authority, do not print the authority: it may be a user and the beginning
  // of a password.
  const bool cut = path.find('@') != path.npos;
  const std::string got = cut ? "a '/' before '@': write '/' in a user or password as %2F"
                              : StrCat("\"", authority, "\"");
  return InvalidArgument("expected host, host:port or [IPv6 address]:port after ", url.scheme,
                         "://, got ", got);
}

}  // namespace tfjob::kube
