#include <array>
#include <limits>

#include "runtime/data/array_checks.h"
#include "runtime/data/byte_source.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int kMaxRank = 8;

std::string Hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

StatusOr<int> ReadMagic(ByteSource& source) {
  std::array<std::byte, 4> magic;
  RETURN_IF_ERROR(source.ReadAll(magic, "IDX magic"));
  const int type = static_cast<int>(magic[2]);
  const int rank = static_cast<int>(magic[3]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || rank < 1 || rank > kMaxRank) {
    return InvalidArgument(source.path(),
                           ": not an IDX file: expected the magic 0000 08 and a rank from 1 to ",
                           kMaxRank, ", got ", Hex(magic));
  }
  if (type != kUnsignedByte) {
    return InvalidArgument(source.path(), ": IDX type ", Hex(std::span(magic).subspan(2, 1)),
                           " is not supported; expected 08, unsigned bytes");
  }
  return rank;
}

StatusOr<Shape> ReadDimensions(ByteSource& source, int rank) {
  std::vector<int64_t> dims;
  uint64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    std::array<std::byte, 4> word;
    RETURN_IF_ERROR(source.ReadAll(word, "IDX dimensions"));
    uint32_t dim = 0;
    for (std::byte byte : word) dim = dim << 8 | static_cast<uint32_t>(byte);
    dims.push_back(dim);
    const bool fits = dim == 0 || elements <= std::numeric_limits<uint64_t>::max() / dim;
    elements = fits ? elements * dim : std::numeric_limits<uint64_t>::max();
  }
  const Shape shape(dims);
  if (dims[0] == 0)
    return InvalidArgument(source.path(), ": the file has zero rows; expected at least one");
  if (elements == 0)
    return InvalidArgument(source.path(), ": rows of shape ", shape.ToString(), " are empty");
  if (elements > source.max_bytes()) {
    return DataLoss(source.path(), ": the header declares shape ", shape.ToString(), ", ", elements,
                    " bytes, more than the file can hold: it is truncated or damaged");
  }
  return shape;
}

StatusOr<Shape> ReadHeader(ByteSource& source) {
  ASSIGN_OR_RETURN(const int rank, ReadMagic(source));
  return ReadDimensions(source, rank);
}

}  // namespace

StatusOr<IdxHeader> ReadIdxHeader(const std::string& path) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  ASSIGN_OR_RETURN(Shape shape, ReadHeader(source));
  const uint64_t begin = 4 + 4 * static_cast<uint64_t>(shape.rank());
  return IdxHeader{.shape = std::move(shape), .begin = begin};
}

StatusOr<Tensor> ReadIdx(const std::string& path) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  ASSIGN_OR_RETURN(const Shape shape, ReadHeader(source));
  Tensor tensor(DType::kUInt8, shape);
  RETURN_IF_ERROR(source.ReadAll(tensor.bytes(), StrCat("data of shape ", shape.ToString())));
  // Reading to the end also makes zlib check the checksum.
  std::array<std::byte, 1> more;
  ASSIGN_OR_RETURN(size_t extra, source.Read(more));
  if (extra != 0) {
    return DataLoss(path, ": expected the end of the file after data of shape ", shape.ToString(),
                    ", got more bytes");
  }
  return tensor;
}

Status CheckIdxShapes(const IdxOptions& options, const Shape& images, const Shape& labels) {
  if (labels.rank() != 1) {
    return InvalidArgument(options.labels,
                           ": expected labels of rank 1 (magic 00000801), got shape ",
                           labels.ToString(), "; is this the images file?");
  }
  if (images.rank() < 2) {
    return InvalidArgument(options.images,
                           ": expected images of rank 2 or more (magic 00000803), got shape ",
                           images.ToString(), "; is this the labels file?");
  }
  if (images.dim(0) == labels.dim(0)) return OkStatus();
  return InvalidArgument(options.images, " has ", images.dim(0), " rows, but ", options.labels,
                         " has ", labels.dim(0), "; expected as many labels as images");
}

StatusOr<Dataset> LoadIdx(const IdxOptions& options) {
  ASSIGN_OR_RETURN(Tensor images, ReadIdx(options.images));
  ASSIGN_OR_RETURN(Tensor labels, ReadIdx(options.labels));
  RETURN_IF_ERROR(CheckIdxShapes(options, images.shape(), labels.shape()));
  Dataset dataset;
  dataset.arrays.push_back({kFeaturesArray, options.images, std::move(images)});
  dataset.arrays.push_back({kLabelsArray, options.labels, std::move(labels)});
  return dataset;
}

}  // namespace tfjob::data
