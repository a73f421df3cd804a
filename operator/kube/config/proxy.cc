#include "operator/kube/config/proxy.h"

#include <arpa/inet.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace tfjob::kube {
namespace {

// Represents an IP address of 4 or 16 bytes.
struct Address {
  std::array<unsigned char, 16> bytes{};
  int bits = 0;
};

std::optional<Address> ParseAddress(const std::string& text) {
  Address address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
    return address;
  }
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
    return address;
  }
  return std::nullopt;
}

bool SharePrefix(const Address& a, const Address& b, int bits) {
  if (a.bits != b.bits || bits < 0 || bits > a.bits) return false;
  const size_t whole = static_cast<size_t>(bits) / 8;
  if (std::memcmp(a.bytes.data(), b.bytes.data(), whole) != 0) return false;
  const int rest = bits % 8;
  return rest == 0 || (a.bytes[whole] ^ b.bytes[whole]) >> (8 - rest) == 0;
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  const std::optional<Address> address = ParseAddress(host);
  if (!address) return false;
  if (address->bits == 32) return address->bytes[0] == 127;
  return SharePrefix(*address, *ParseAddress("::1"), 128);
}

bool InNetwork(const std::string& entry, const std::string& host) {
  const size_t slash = entry.find('/');
  const std::optional<Address> network = ParseAddress(entry.substr(0, slash));
  const std::optional<Address> address = ParseAddress(host);
  int bits = 0;
  return network && address && absl::SimpleAtoi(entry.substr(slash + 1), &bits) &&
         SharePrefix(*network, *address, bits);
}

// Removes a ":port" suffix and enclosing brackets from an entry. Returns the port; 0 if the entry
// has no port.
int TakePort(std::string& entry) {
  const bool bracketed = entry[0] == '[';
  const size_t colon = entry.rfind(':');
  const size_t bracket = entry.rfind(']');
  int port = 0;
  // An entry with several colons but no brackets is an IPv6 address without a port.
  const bool has_port =
      colon != entry.npos &&
      (bracketed ? bracket != entry.npos && colon == bracket + 1 : entry.find(':') == colon) &&
      absl::SimpleAtoi(entry.substr(colon + 1), &port);
  if (has_port) entry.resize(colon);
  if (bracketed && entry.size() >= 2 && entry.back() == ']')
    entry = entry.substr(1, entry.size() - 2);
  return has_port ? port : 0;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.npos, end) == 0;
}

bool EntryMatches(std::string entry, const std::string& host, int port) {
  if (entry == "*") return true;
  if (entry.find('/') != entry.npos) return InNetwork(entry, host);
  const int wanted = TakePort(entry);
  if (entry.empty() || (wanted != 0 && wanted != port)) return false;
  if (const std::optional<Address> address = ParseAddress(entry)) {
    const std::optional<Address> own = ParseAddress(host);
    return own && SharePrefix(*address, *own, address->bits);
  }
  if (entry.compare(0, 2, "*.") == 0) entry.erase(0, 1);
  if (entry[0] == '.') return EndsWith(host, entry);
  return host == entry || EndsWith(host, StrCat(".", entry));
}

// Returns the name and value of the first variable that is set and not empty.
std::pair<const char*, std::string> FirstOf(std::initializer_list<const char*> names,
                                            const EnvironmentLookup& environment) {
  for (const char* name : names) {
    const std::optional<std::string> value = environment(name);
    if (value && !value->empty()) return {name, *value};
  }
  return {};
}

}  // namespace

bool NoProxyMatches(std::string_view no_proxy, std::string_view host, int port) {
  const std::string name = absl::AsciiStrToLower(internal::Piece(host));
  const std::vector<std::string> entries = absl::StrSplit(internal::Piece(no_proxy), ',');
  for (const std::string& entry : entries) {
    const std::string text = absl::AsciiStrToLower(absl::StripAsciiWhitespace(entry));
    if (!text.empty() && EntryMatches(text, name, port)) return true;
  }
  return false;
}

StatusOr<std::string> ParseProxyUrl(std::string_view text) {
  ASSIGN_OR_RETURN(Url url, ParseUrl(text));
  if (url.scheme != "http") {
    return InvalidArgument("expected a proxy http://host:port, got one of scheme \"", url.scheme,
                           "\", which is not supported");
  }
  // Reject a path that contains an '@': the path may be the end of a password that contains a '/'
  // and whose beginning looks like a port. Ignore any other path, because a proxy does not need
  // one.
  if (url.path.find('@') != url.path.npos) {
    return InvalidArgument(
        "expected a proxy http://user:password@host:port, got a '/' before '@': "
        "write '/' in a user or password as %2F");
  }
  if (url.port == 0) url.port = 80;
  url.path.clear();
  if (url.user.empty()) return url.Print();
  constexpr std::string_view kScheme = "http://";
  return StrCat(kScheme, url.user, "@", url.Print().substr(kScheme.size()));
}

StatusOr<std::string> ProxyFromEnvironment(const Url& server,
                                           const EnvironmentLookup& environment) {
  const bool https = server.scheme == "https";
  const auto [name, value] = https ? FirstOf({"HTTPS_PROXY", "https_proxy"}, environment)
                                   : FirstOf({"HTTP_PROXY", "http_proxy"}, environment);
  if (value.empty()) return std::string();
  const std::string host = absl::AsciiStrToLower(server.host);
  const int port = server.port != 0 ? server.port : https ? 443 : 80;
  const std::string no_proxy = FirstOf({"NO_PROXY", "no_proxy"}, environment).second;
  if (IsLoopback(host) || NoProxyMatches(no_proxy, host, port)) return std::string();
  const bool has_scheme = value.find("://") != value.npos;
  StatusOr<std::string> proxy = ParseProxyUrl(has_scheme ? value : StrCat("http://", value));
  if (!proxy.ok()) {
    return Annotate(proxy.status(), StrCat("the environment variable ", name));
  }
  return proxy;
}

}  // namespace tfjob::kube
