#include "runtime/io/bundle_index.h"

#include <utility>
#include <vector>

#include "runtime/io/table_reader.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

constexpr int kMaxRank = 256;  // TensorFlow's limit is 254
// The largest number of slices of a variable. Every pair is compared, to find overlaps.
constexpr int kMaxSlices = 4096;
// The maximum number of comparisons of dimensions, over all variables. They take less than a
// second, and are enough for 16 matrices of kMaxSlices slices or 65,536 matrices of 64.
constexpr int64_t kMaxComparisons = int64_t{1} << 28;

// The largest entry. It suffices for kMaxSlices slices of 100 dimensions, and limits the memory
// that its message takes.
constexpr size_t kMaxEntryBytes = 4 << 20;

// Returns the value and the dimensions of an entry. `name` is used in errors.
StatusOr<std::pair<BundleEntry, BundleEntryProto>> ParseEntry(const std::string& name,
                                                              const std::string& value) {
  BundleEntryProto proto;
  if (value.size() > kMaxEntryBytes)
    return DataLoss("the entry of ", name, " has ", value.size(), " bytes");
  if (!proto.ParseFromString(value))
    return DataLoss("the entry of ", name, " is not a BundleEntryProto");
  if (proto.shape().dim_size() > kMaxRank)
    return DataLoss(name, " has ", proto.shape().dim_size(), " dimensions");
  std::vector<int64_t> dims;
  for (const auto& dim : proto.shape().dim()) {
    if (dim.size() < 0 || dim.size() > (int64_t{1} << 40))
      return DataLoss("the shape of ", name, " is invalid");
    dims.push_back(dim.size());
  }
  if (proto.offset() < 0 || proto.size() < 0)
    return DataLoss("the location of ", name, " is invalid");
  BundleEntry entry{.tensorflow_dtype = proto.dtype(),
                    .shape = Shape(std::move(dims)),
                    .size = proto.size(),
                    .location = {.shard = proto.shard_id(),
                                 .offset = proto.offset(),
                                 .size = proto.size(),
                                 .masked_crc = proto.crc32c()}};
  return std::pair(std::move(entry), std::move(proto));
}

// Reads the entries of one index.
class IndexParser {
 public:
  Status Add(const std::string& key, const std::string& value);
  StatusOr<BundleIndex> Finish() &&;

 private:
  Status AddHeader(const std::string& value);
  Status AddSlices(const std::string& name, const BundleEntryProto& proto, BundleEntry& entry);
  Status CheckComparisons() const;
  Status FindSlices(const std::string& name, const std::vector<std::string>& keys,
                    BundleEntry& entry) const;

  BundleIndex index_;
  std::map<std::string, std::string> slice_entries_;            // by their keys, not yet parsed
  std::map<std::string, std::vector<std::string>> slice_keys_;  // of each partitioned variable
};

Status IndexParser::AddHeader(const std::string& value) {
  BundleHeaderProto header;
  if (!header.ParseFromString(value) || header.num_shards() < 1)
    return DataLoss("its header is not a BundleHeaderProto");
  if (header.endianness() != 0) return Unimplemented("big-endian checkpoints are not supported");
  index_.shards = header.num_shards();
  return OkStatus();
}

Status IndexParser::Add(const std::string& key, const std::string& value) {
  if (key.empty()) return AddHeader(value);
  if (key[0] == '\0') {  // a slice of a partitioned variable
    slice_entries_[key] = value;
    return OkStatus();
  }
  ASSIGN_OR_RETURN(auto parsed, ParseEntry(key, value));
  auto& [entry, proto] = parsed;
  slice_keys_.erase(key);  // if the key occurs twice, the last entry is used
  if (proto.slices_size() > 0) RETURN_IF_ERROR(AddSlices(key, proto, entry));
  index_.entries[key] = std::move(entry);
  return OkStatus();
}

Status IndexParser::AddSlices(const std::string& name, const BundleEntryProto& proto,
                              BundleEntry& entry) {
  if (proto.slices_size() > kMaxSlices) {
    return Unimplemented(name, " consists of ", proto.slices_size(), " slices; at most ",
                         kMaxSlices, " are supported");
  }
  std::vector<std::string>& keys = slice_keys_[name];
  for (const TensorSliceProto& slice : proto.slices()) {
    if (slice.extent_size() != entry.shape.rank()) {
      return DataLoss(name, ": a slice has ", slice.extent_size(), " dimensions, but the shape is ",
                      entry.shape.ToString());
    }
    std::vector<int64_t> starts, lengths;
    for (const auto& extent : slice.extent()) {
      starts.push_back(extent.start());
      lengths.push_back(extent.has_length() ? extent.length() : -1);
    }
    keys.push_back(SliceKey(name, starts, lengths));
    for (size_t d = 0; d < lengths.size(); ++d) {
      if (!slice.extent(static_cast<int>(d)).has_length()) lengths[d] = entry.shape.dims()[d];
    }
    entry.slices.push_back({.slice = {std::move(starts), std::move(lengths)}, .location = {}});
  }
  return OkStatus();
}

Status IndexParser::CheckComparisons() const {
  int64_t left = kMaxComparisons;
  for (const auto& [name, keys] : slice_keys_) {
    const auto slices = static_cast<int64_t>(keys.size());
    const int64_t dimensions = index_.entries.at(name).shape.rank();
    left -= slices * (slices - 1) / 2 * dimensions;
    if (left >= 0) continue;
    return Unimplemented(name, " consists of ", slices, " slices of ", dimensions,
                         " dimensions; the slices of the ",
                         "variables up to this one need more than ", kMaxComparisons,
                         " comparisons of dimensions; ", "divide the variables into fewer slices");
  }
  return OkStatus();
}

Status IndexParser::FindSlices(const std::string& name, const std::vector<std::string>& keys,
                               BundleEntry& entry) const {
  std::vector<const TensorSlice*> slices;
  for (const BundleSlice& part : entry.slices) slices.push_back(&part.slice);
  RETURN_IF_ERROR(Annotate(CheckPartition(entry.shape, slices), name));
  for (size_t i = 0; i < keys.size(); ++i) {
    BundleSlice& part = entry.slices[i];
    const std::string what = StrCat(name, ", slice ", part.slice.ToString());
    const auto found = slice_entries_.find(keys[i]);
    if (found == slice_entries_.end()) return DataLoss("the index has no entry of ", what);
    ASSIGN_OR_RETURN(const auto parsed, ParseEntry(what, found->second));
    const BundleEntry& stored = parsed.first;
    if (stored.shape.dims() != part.slice.length)
      return DataLoss(what, ", is stored with the shape ", stored.shape.ToString());
    if (stored.tensorflow_dtype != entry.tensorflow_dtype) {
      return DataLoss(what, ", has TensorFlow's element type ", stored.tensorflow_dtype, ", but ",
                      name, " has ", entry.tensorflow_dtype);
    }
    part.location = stored.location;
  }
  return OkStatus();
}

StatusOr<BundleIndex> IndexParser::Finish() && {
  if (index_.shards == 0) return DataLoss("it has no header");
  RETURN_IF_ERROR(CheckComparisons());
  for (const auto& [name, keys] : slice_keys_)
    RETURN_IF_ERROR(FindSlices(name, keys, index_.entries[name]));
  return std::move(index_);
}

}  // namespace

StatusOr<BundleIndex> ReadBundleIndex(const std::string& path, const std::string& text) {
  const auto table = ReadTable(text);
  if (!table.ok())
    return Annotate(table.status(), StrCat(path, " is not a checkpoint index or is damaged"));
  IndexParser parser;
  for (const auto& [key, value] : *table) RETURN_IF_ERROR(Annotate(parser.Add(key, value), path));
  StatusOr<BundleIndex> index = std::move(parser).Finish();
  if (!index.ok()) return Annotate(index.status(), path);
  return index;
}

}  // namespace tfjob::io
