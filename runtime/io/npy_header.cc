#include "runtime/io/npy_header.h"

#include <charconv>
#include <optional>

namespace tfjob::io {
namespace {

constexpr size_t kMostRank = 32;  // NumPy 1's limit; NumPy 2's is 64

// Reads Python literals from the front of a string.
class Literals {
 public:
  explicit Literals(std::string_view text) : rest_(text) {}

  // Skips spaces and, if it follows, `token`. Returns whether `token` was skipped.
  bool Take(std::string_view token) {
    while (!rest_.empty() && std::string_view(" \n\t").find(rest_[0]) != std::string_view::npos)
      rest_.remove_prefix(1);
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::optional<std::string_view> Text() {
    const std::string_view quote = Take("'") ? "'" : Take("\"") ? "\"" : "";
    const size_t end = rest_.find(quote);
    if (quote.empty() || end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<bool> Bool() {
    if (Take("True")) return true;
    if (Take("False")) return false;
    return std::nullopt;
  }
  std::optional<Shape> Tuple() {
    std::vector<int64_t> dims;
    if (!Take("(")) return std::nullopt;
    while (!Take(")")) {
      int64_t dim = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (error != std::errc() || dim < 0 || dims.size() == kMostRank) return std::nullopt;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      dims.push_back(dim);
      Take("L");  // Python 2
      if (!Take(",")) {
        if (!Take(")")) return std::nullopt;
        break;
      }
      Take("");
    }
    return Shape(std::move(dims));
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

bool ParseType(std::string_view descr, NpyLayout& layout) {
  constexpr std::string_view kKnown[] = {"f2", "f4", "f8", "i1", "i2", "i4",
                                         "i8", "u1", "u2", "u4", "u8", "b1"};
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return false;
  for (std::string_view known : kKnown) {
    if (descr.substr(1) != known) continue;
    layout.kind = descr[1];
    layout.item = static_cast<size_t>(descr[2] - '0');
    layout.swap = descr[0] == '>' && layout.item > 1;
    return true;
  }
  return false;
}

}  // namespace

StatusOr<NpyLayout> ParseNpyLayout(std::string_view text, std::string_view what) {
  const auto malformed = [&] {
    return InvalidArgument(what, ": expected the header of a NumPy array, got \"",
                           text.substr(0, 80), "\"");
  };
  NpyLayout layout;
  Literals literals(text);
  if (!literals.Take("{")) return malformed();
  std::optional<std::string_view> descr;
  std::optional<bool> fortran;
  std::optional<Shape> shape;
  while (!literals.Take("}")) {
    const std::optional<std::string_view> key = literals.Text();
    if (!key || !literals.Take(":")) return malformed();
    if (*key == "descr" && literals.Take("["))
      return Unimplemented(what, ": an array of records is not supported; save one array each");
    if (*key == "descr") descr = literals.Text();
    if (*key == "fortran_order") fortran = literals.Bool();
    if (*key == "shape") shape = literals.Tuple();
    if (!literals.Take(",") && !literals.rest().starts_with("}")) return malformed();
  }
  if (!descr || !fortran || !shape) return malformed();
  if (!ParseType(*descr, layout)) {
    return Unimplemented(what, ": arrays of type '", descr->substr(0, 40),
                         "' are not supported; expected numbers: convert the array with astype");
  }
  layout.fortran = *fortran;
  layout.shape = *std::move(shape);
  return layout;
}

}  // namespace tfjob::io
