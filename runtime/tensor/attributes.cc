#include "runtime/tensor/attributes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/tensor/half.h"

namespace tfjob {
namespace {

constexpr size_t kElementsPrinted = 8;

std::string Print(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

template <typename T>
std::string PrintElements(const Tensor& tensor) {
  std::string text;
  const auto values = tensor.data<T>();
  for (size_t i = 0; i < std::min(values.size(), kElementsPrinted); ++i) {
    if (i > 0) text += ',';
    if constexpr (std::is_floating_point_v<T> || sizeof(T) == 2) {
      using Real = std::conditional_t<sizeof(T) == 2, float, T>;
      char digits[32];
      const auto value = static_cast<Real>(values[i]);
      text.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
    } else {
      text += std::to_string(values[i]);
    }
  }
  return text + (values.size() > kElementsPrinted ? ",…" : "");
}

std::string Print(const Tensor& tensor) {
  std::string text = std::string(Name(tensor.dtype())) + tensor.shape().ToString() + "{";
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return text + PrintElements<float>(tensor) + "}";
    case DType::kFloat64:
      return text + PrintElements<double>(tensor) + "}";
    case DType::kInt32:
      return text + PrintElements<int32_t>(tensor) + "}";
    case DType::kInt64:
      return text + PrintElements<int64_t>(tensor) + "}";
    case DType::kUInt8:
      return text + PrintElements<uint8_t>(tensor) + "}";
    case DType::kBool:
      return text + PrintElements<bool>(tensor) + "}";
    case DType::kBFloat16:
      return text + PrintElements<BFloat16>(tensor) + "}";
    case DType::kFloat16:
      return text + PrintElements<Float16>(tensor) + "}";
  }
  return text + "}";
}

struct Printer {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return Print(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return "\"" + value + "\""; }
  std::string operator()(const std::vector<int64_t>& value) const {
    return Shape(value).ToString();
  }
  std::string operator()(DType value) const { return std::string(Name(value)); }
  std::string operator()(const Shape& value) const { return value.ToString(); }
  std::string operator()(const Tensor& value) const { return Print(value); }
  std::string operator()(const GraphPointer& value) const { return value->ToString(); }
};

bool Equal(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&b](const auto& left) {
        using T = std::decay_t<decltype(left)>;
        const T& right = std::get<T>(b);
        if constexpr (std::is_same_v<T, Tensor>) {
          return left.dtype() == right.dtype() && left.shape() == right.shape() &&
                 std::ranges::equal(left.bytes(), right.bytes());
        } else if constexpr (std::is_same_v<T, GraphPointer>) {
          return left == right || left->Equals(*right);
        } else {
          return left == right;
        }
      },
      a);
}

}  // namespace

std::string Attributes::ToString() const {
  return absl::StrJoin(values_, ", ", [](std::string* out, const auto& attribute) {
    absl::StrAppend(out, attribute.first, "=", std::visit(Printer(), attribute.second));
  });
}

bool Attributes::operator==(const Attributes& other) const {
  return std::ranges::equal(values_, other.values_, [](const auto& a, const auto& b) {
    return a.first == b.first && Equal(a.second, b.second);
  });
}

}  // namespace tfjob
