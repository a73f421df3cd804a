#include "runtime/io/npz.h"

#include <array>

#include "runtime/base/did_you_mean.h"
#include "runtime/io/zip_writer.h"

namespace tfjob::io {
namespace {

constexpr std::string_view kNpySuffix = ".npy";

}  // namespace

StatusOr<NpzReader> NpzReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ZipReader> zip, ZipReader::Open(path));
  return NpzReader(std::move(zip));
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : zip_->members()) {
    if (name.ends_with(kNpySuffix))
      names.push_back(name.substr(0, name.size() - kNpySuffix.size()));
  }
  return names;
}

bool NpzReader::Has(const std::string& name) const {
  return zip_->members().contains(StrCat(name, kNpySuffix));
}

StatusOr<std::string> NpzReader::MemberOf(const std::string& name) const {
  if (Has(name)) return StrCat(name, kNpySuffix);
  return NotFound(zip_->path(), " has no array \"", name, "\"", DidYouMean(name, names()));
}

StatusOr<Tensor> NpzReader::Read(const std::string& name) const {
  ASSIGN_OR_RETURN(const std::string member_name, MemberOf(name));
  ASSIGN_OR_RETURN(const std::unique_ptr<ZipStream> stream, zip_->Stream(member_name));
  const ZipMember& member = zip_->members().at(member_name);
  return ReadNpyFrom(StrCat(zip_->path(), ": array ", name), member.size, member.packed,
                     [&](std::span<std::byte> bytes) { return stream->Read(bytes); });
}

Status WriteNpz(const std::string& path, std::span<const std::pair<std::string, Tensor>> arrays,
                FileSystem& files) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ZipWriter> zip, ZipWriter::Create(path, files));
  for (const auto& [name, tensor] : arrays) {
    const auto made = NpyHeader(tensor.dtype(), tensor.shape());
    RETURN_IF_ERROR(Annotate(made.status(), StrCat(path, ": array ", name)));
    const std::string& header = *made;
    const std::span<const std::byte> bytes = tensor.bytes();
    const std::array<std::string_view, 2> parts = {
        header, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
    RETURN_IF_ERROR(zip->Add(StrCat(name, kNpySuffix), parts));
  }
  return zip->Finish();
}

}  // namespace tfjob::io
