#include "operator/serve/bind_address.h"

#include <charconv>

namespace tfjob::serve {
namespace {

Status Malformed(std::string_view text) {
  return InvalidArgument("address \"", text,
                         "\": expected :PORT, IP:PORT, [IPv6]:PORT, or 0 to switch it off");
}

}  // namespace

StatusOr<std::optional<BindAddress>> ParseBindAddress(std::string_view text) {
  if (text.empty() || text == "0") return std::nullopt;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return Malformed(text);
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Malformed(text);
  }
  BindAddress address{std::string(host), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc() || end != digits.data() + digits.size()) return Malformed(text);
  return address;
}

}  // namespace tfjob::serve
