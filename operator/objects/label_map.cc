#include "operator/objects/label_map.h"

#include <cstring>

namespace tfjob::objects {
namespace {

constexpr size_t kLengths = 2 * sizeof(uint32_t);

void Append(std::string_view key, std::string_view value, std::string& packed) {
  const uint32_t lengths[] = {static_cast<uint32_t>(key.size()),
                              static_cast<uint32_t>(value.size())};
  packed.append(reinterpret_cast<const char*>(lengths), kLengths);
  packed.append(key).append(value);
}

}  // namespace

LabelMap::value_type LabelMap::const_iterator::operator*() const {
  uint32_t lengths[2];
  std::memcpy(lengths, at_, kLengths);
  const char* key = at_ + kLengths;
  return {{key, lengths[0]}, {key + lengths[0], lengths[1]}};
}

LabelMap::const_iterator& LabelMap::const_iterator::operator++() {
  const auto [key, value] = **this;
  at_ = value.data() + value.size();
  return *this;
}

LabelMap::LabelMap(const std::map<std::string, std::string>& labels) {
  size_t size = 0;
  for (const auto& [key, value] : labels) size += kLengths + key.size() + value.size();
  packed_.reserve(size);
  for (const auto& [key, value] : labels) Append(key, value, packed_);
}

LabelMap::operator std::map<std::string, std::string>() const {
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : *this) labels.emplace_hint(labels.end(), key, value);
  return labels;
}

std::string_view LabelMap::Find(std::string_view key) const {
  for (const auto& [name, value] : *this) {
    if (name == key) return value;
  }
  return {};
}

void LabelMap::Set(const std::string& key, std::string value) {
  std::map<std::string, std::string> labels = *this;
  labels[key] = std::move(value);
  *this = labels;
}

}  // namespace tfjob::objects
