// Implements how a link tracks the tasks that were asked to stop.
#include <nlohmann/json.hpp>

#include "runtime/base/json.h"
#include "runtime/ps/client/link.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

std::set<std::string> ParseEndings(const std::string& body) {
  std::set<std::string> tasks;
  StatusOr<Json> document = ParseJson(body, "server state");
  if (!document.ok() || !JsonField(*document)["ending"].present()) return tasks;
  StatusOr<std::vector<JsonField>> list = JsonField(*document)["ending"].Elements();
  if (!list.ok()) return tasks;
  for (const JsonField& task : *list) tasks.insert(task.StringOr("").value_or(""));
  return tasks;
}

}  // namespace

bool Link::Ending() {
  MutexLock lock(context_.mutex);
  return live_ != nullptr && ending_;
}

void Link::SayTaken() {
  MutexLock lock(context_.mutex);
  if (live_ != nullptr) live_->Send({.type = wire::kTaken});
}

// Reports each task once, and again only if the task was restarted and is asked to stop again.
void Link::NoteEndings(bool ending, const std::string& body) {
  std::set<std::string> tasks, news;
  if (server_ == 0) tasks = ParseEndings(body);
  bool server_ends = false;
  {
    MutexLock lock(context_.mutex);
    server_ends = ending && !ending_;
    ending_ = ending;
    if (server_ == 0) {
      for (const std::string& task : tasks) {
        if (!context_.ending_tasks.contains(task)) news.insert(task);
      }
      context_.ending_tasks = std::move(tasks);
    }
  }
  if (server_ends) {
    Say(state::PeerEvent::Kind::kServerEnding,
        StrCat(name_, " was asked to end; it waits for the chief to copy its state"));
  }
  if (!context_.options.on_event) return;
  for (const std::string& task : news) {
    context_.options.on_event({.kind = state::PeerEvent::Kind::kEnding,
                               .peer = task,
                               .address = "",
                               .message = StrCat(task, " was asked to end and has left")});
  }
}

}  // namespace tfjob::ps
