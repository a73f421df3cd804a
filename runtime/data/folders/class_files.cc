#include "runtime/data/folders/class_files.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/fnv1a.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {
namespace {

constexpr size_t kMostFolders = size_t{1} << 24;

struct Entries {
  std::vector<std::string> folders, others;  // sorted
};

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Returns whether an entry is a folder. A link to a folder does not count.
StatusOr<bool> IsFolder(const std::string& path, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0) return ErrnoStatus(errno, path);
  return S_ISDIR(found.st_mode);
}

// Lists a folder. Omits entries whose names start with a dot.
StatusOr<Entries> EntriesOf(const std::string& path) {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (folder == nullptr) return ErrnoStatus(errno, path);
  Entries entries;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr && errno != 0) return ErrnoStatus(errno, path);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    ASSIGN_OR_RETURN(const bool is_folder, IsFolder(StrCat(path, "/", name), *entry));
    (is_folder ? entries.folders : entries.others).push_back(name);
  }
  std::ranges::sort(entries.folders);
  std::ranges::sort(entries.others);
  return entries;
}

// Returns the sorted paths of a folder and of all folders below it.
StatusOr<std::vector<std::string>> FoldersBelow(const std::string& path) {
  std::vector<std::string> found = {path};
  for (size_t i = 0; i < found.size(); ++i) {
    ASSIGN_OR_RETURN(const Entries entries, EntriesOf(found[i]));
    for (const std::string& name : entries.folders) found.push_back(StrCat(found[i], "/", name));
    if (found.size() > kMostFolders)
      return InvalidArgument(path, ": expected at most ", kMostFolders, " folders");
  }
  std::ranges::sort(found);
  return found;
}

Status CheckClasses(const std::string& folder, const ClassFolder& options,
                    const std::vector<std::string>& found) {
  if (found.empty()) {
    return InvalidArgument(folder, ": expected a folder for each class, with the ", options.content,
                           " of the class, but there are no folders");
  }
  for (const std::string& name : options.classes) {
    if (std::ranges::find(found, name) != found.end()) continue;
    return NotFound(folder, ": expected a folder ", name, ", which classes names, but there is ",
                    "none", DidYouMean(name, found));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<std::string>> ClassesIn(const std::string& folder) {
  ASSIGN_OR_RETURN(Entries entries, EntriesOf(folder));
  for (const std::string& name : entries.others) {
    struct stat found{};
    if (stat(StrCat(folder, "/", name).c_str(), &found) == 0 && S_ISDIR(found.st_mode))
      entries.folders.push_back(name);
  }
  std::ranges::sort(entries.folders);
  return entries.folders;
}

StatusOr<ClassFiles> ClassFiles::List(const ClassFolder& folder) {
  ClassFiles files(folder);
  files.folder_ = folder.path;
  while (files.folder_.size() > 1 && files.folder_.ends_with('/')) files.folder_.pop_back();
  ASSIGN_OR_RETURN(const std::vector<std::string> found, ClassesIn(files.folder_));
  RETURN_IF_ERROR(CheckClasses(files.folder_, folder, found));
  files.classes_ = folder.classes.empty() ? found : folder.classes;
  for (size_t label = 0; label < files.classes_.size(); ++label) {
    RETURN_IF_ERROR(files.AddClass(StrCat(files.folder_, "/", files.classes_[label]),
                                   static_cast<int64_t>(label)));
  }
  if (files.size() > 0) return files;
  return InvalidArgument(files.folder_, ": expected ", folder.content,
                         " in the folders of the classes (", files.classes_[0],
                         files.classes_.size() > 1 ? ", …" : "", "), but they have no files");
}

Status ClassFiles::AddClass(const std::string& path, int64_t label) {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, FoldersBelow(path));
  for (const std::string& below : folders) RETURN_IF_ERROR(AddFolder(below, label));
  return OkStatus();
}

Status ClassFiles::AddFolder(const std::string& path, int64_t label) {
  ASSIGN_OR_RETURN(const Entries entries, EntriesOf(path));
  for (const std::string& name : entries.others) {
    const std::string file = StrCat(path, "/", name);
    struct stat found{};
    if (stat(file.c_str(), &found) != 0) return ErrnoStatus(errno, file);
    if (S_ISDIR(found.st_mode)) continue;  // a link to a folder
    if (!S_ISREG(found.st_mode))
      return InvalidArgument(file, ": expected a file, got another kind of entry");
    if (found.st_size > options_.most_bytes) {
      return InvalidArgument(file, ": expected a file of at most ", options_.most_bytes,
                             " bytes, got ", found.st_size);
    }
    names_ += name;
    files_.push_back({.name_end = names_.size(),
                      .bytes = static_cast<uint32_t>(found.st_size),
                      .folder = static_cast<uint32_t>(folders_.size())});
  }
  folders_.push_back({path, label});
  return OkStatus();
}

std::string_view ClassFiles::Name(int64_t file) const {
  const auto i = static_cast<size_t>(file);
  const size_t begin = i == 0 ? 0 : files_[i - 1].name_end;
  return std::string_view(names_).substr(begin, files_[i].name_end - begin);
}

std::string ClassFiles::Path(int64_t file) const {
  return StrCat(FolderOf(file).path, "/", Name(file));
}

uint64_t ClassFiles::Hash() const {
  Fnv1a hash;
  for (const std::string& name : classes_) hash.Add(name).AddWord(name.size());
  for (int64_t i = 0; i < size(); ++i) {
    // The hash omits the path of folder_, because the path may differ from task to task.
    const Folder& folder = FolderOf(i);
    hash.AddWord(static_cast<uint64_t>(folder.label))
        .Add(std::string_view(folder.path).substr(folder_.size()))
        .Add("/")
        .Add(Name(i))
        .AddWord(Bytes(i));
  }
  return hash.hash();
}

uint64_t ClassFiles::TotalBytes() const {
  uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.bytes;
  return bytes;
}

size_t ClassFiles::MemoryBytes() const {
  size_t bytes = names_.size() + files_.size() * sizeof(File);
  for (const Folder& folder : folders_) bytes += sizeof(Folder) + folder.path.size();
  return bytes;
}

void ClassFiles::Filter(absl::FunctionRef<bool(int64_t file)> keep) {
  std::vector<File> files;
  std::string names;
  for (int64_t i = 0; i < size(); ++i) {
    if (!keep(i)) continue;
    names += Name(i);
    files.push_back(files_[static_cast<size_t>(i)]);
    files.back().name_end = names.size();
  }
  files_ = std::move(files);
  names_ = std::move(names);
}

StatusOr<std::string_view> ReadClassFile(const std::string& path, uint64_t size,
                                         std::string& buffer) {
  ASSIGN_OR_RETURN(const io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  if (file.size() != size) {
    return FailedPrecondition(path, ": the file has changed since this task listed it: it had ",
                              size, " bytes, and has ", file.size(),
                              "; change files only between runs");
  }
  buffer.resize(size);
  RETURN_IF_ERROR(file.Read(0, std::as_writable_bytes(std::span(buffer))));
  return std::string_view(buffer);
}

}  // namespace tfjob::data
