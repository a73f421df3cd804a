#include "operator/cli/verbs/events.h"

#include <algorithm>

#include "operator/cli/verbs/access_error.h"
#include "operator/client/client.h"
#include "operator/objects/custom_resource.h"

namespace tfjob::cli {
namespace {

std::string Text(const JsonField& field) {
  return field.StringOr("").value_or("");
}

// Returns the newest of an event's times. Which times are set depends on the client that wrote the
// event and on how often it occurred.
Time LastTime(const JsonField& event) {
  Time last;
  for (const JsonField& field :
       {event["series"]["lastObservedTime"], event["lastTimestamp"], event["eventTime"],
        event["firstTimestamp"], event["metadata"]["creationTimestamp"]}) {
    const auto time = ParseTime(Text(field));
    if (time.ok()) last = std::max(last, *time);
  }
  return last;
}

}  // namespace

EventLine ReadEvent(const Json& json) {
  const JsonField event(json);
  const JsonField about = event["involvedObject"];
  EventLine line;
  line.last = LastTime(event);
  line.count =
      std::max(event["count"].IntOr(1).value_or(1), event["series"]["count"].IntOr(1).value_or(1));
  line.warning = Text(event["type"]) == "Warning";
  line.reason = Text(event["reason"]);
  line.message = Text(event["message"]);
  line.object = StrCat(Text(about["kind"]), " ", Text(about["name"]));
  line.object_uid = Text(about["uid"]);
  return line;
}

StatusOr<std::vector<EventLine>> EventsAbout(Cluster& cluster, const std::string& name_space,
                                             const std::set<std::string>& uids) {
  const auto objects = cluster.client().List(objects::Kind::kEvent, name_space, {});
  if (!objects.ok()) {
    return Explain(objects.status(), cluster, StrCat("the events of namespace ", name_space));
  }
  std::vector<EventLine> lines;
  for (const client::Object& object : *objects) {
    const auto& event = std::get<std::shared_ptr<const objects::CustomResource>>(object);
    EventLine line = ReadEvent(*event->object);
    if (uids.contains(line.object_uid)) lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const EventLine& a, const EventLine& b) { return a.last < b.last; });
  return lines;
}

}  // namespace tfjob::cli
