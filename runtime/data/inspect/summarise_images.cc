// Summarises images and folders of images. All images are decoded, one after the other.
#include <utility>

#include "runtime/data/images/decode/image_decoder.h"
#include "runtime/data/images/image_files.h"
#include "runtime/data/images/image_source.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {
namespace {

void AddNumber(std::string_view name, std::string_view kind, int64_t number, FileSummary& summary) {
  FieldSummary* const field = summary.Field(name, kind);
  if (field == nullptr) return;
  ++field->examples;
  field->integers.Add(number);
}

class ImageSummary {
 public:
  ImageSummary(FileSummary summary, const SummaryOptions& options)
      : summary_(std::move(summary)), options_(options) {}

  // Adds a file. `class_name` is null for an image that is not in the folder of a class.
  Status Add(const std::string& path, uint64_t bytes, const std::string* class_name) {
    ASSIGN_OR_RETURN(const std::string_view content, ReadImageFile(path, bytes, buffer_));
    const StatusOr<DecodedImage> image = decoder_.Decode(content);
    if (!image.ok()) {
      summary_.AddDamage(Message(Annotate(image.status(), path)));
      return OkStatus();
    }
    const bool show = summary_.examples++ < options_.examples;
    if (options_.fields) AddFields(*image, bytes, class_name);
    if (options_.fields && show) Show(*image, path, class_name);
    return OkStatus();
  }
  FileSummary& summary() { return summary_; }

 private:
  void AddFields(const DecodedImage& image, uint64_t bytes, const std::string* class_name) {
    if (FieldSummary* const field = summary_.Field("image", image.format)) {
      ++field->examples;
      field->bytes.Add(static_cast<int64_t>(bytes));
    }
    AddNumber("height", "pixels", image.height, summary_);
    AddNumber("width", "pixels", image.width, summary_);
    AddNumber("channels", "number", image.file_channels, summary_);
    if (class_name == nullptr) return;
    if (FieldSummary* const field = summary_.Field(*class_name, "class")) ++field->examples;
  }

  void Show(const DecodedImage& image, const std::string& path, const std::string* class_name) {
    std::vector<std::string> values = {NamedText(
        "image", StrCat(image.format, ", ", image.width, " × ", image.height, " pixels, ",
                        image.file_channels, image.file_channels == 1 ? " channel" : " channels"))};
    if (class_name != nullptr) values.push_back(NamedText("class", ValueText(*class_name)));
    summary_.AddExample(path, std::move(values));
  }

  FileSummary summary_;
  const SummaryOptions& options_;
  ImageDecoder decoder_{DecodeOptions()};
  std::string buffer_;
};

StatusOr<FileSummary> SummariseFolder(const std::string& path, const SummaryOptions& options,
                                      const StopSource& stop) {
  ASSIGN_OR_RETURN(const ImageFiles files, ImageFiles::List(path, {}));
  ImageSummary images(FileSummary(path, "folder of images", options.most_damage), options);
  if (options.fields) {
    for (const std::string& name : files.classes()) images.summary().Field(name, "class");
  }
  for (int64_t i = 0; i < files.size(); ++i) {
    if (stop.requested()) return Cancelled("stopped while reading ", path);
    const std::string& name = files.classes()[static_cast<size_t>(files.ClassOf(i))];
    RETURN_IF_ERROR(images.Add(files.Path(i), files.Bytes(i), &name));
  }
  return std::move(images.summary());
}

}  // namespace

StatusOr<FileSummary> SummariseImages(const std::string& path, const SummaryOptions& options,
                                      const StopSource& stop) {
  if (IsFolder(path)) return SummariseFolder(path, options, stop);
  ASSIGN_OR_RETURN(const io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  ImageSummary images(FileSummary(path, "image", options.most_damage), options);
  RETURN_IF_ERROR(images.Add(path, file.size(), nullptr));
  return std::move(images.summary());
}

}  // namespace tfjob::data
