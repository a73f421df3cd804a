#include <optional>
#include <utility>
#include <vector>

#include "operator/objects/protobuf.h"
#include "runtime/base/protobuf_reader.h"

namespace tfjob::objects {
namespace {

using State = ContainerStatus::State;

Time ReadTimeField(ProtobufReader& reader) {
  const StatusOr<Time> time = ParseTimeProtobuf(reader.Bytes());
  reader.Fail(time.status());
  return time.value_or(Time());
}

// Contains the messages inside a ContainerState.
struct StateMessages {
  std::optional<std::string_view> waiting;
  std::optional<std::string_view> running;
  std::optional<std::string_view> terminated;
};

StatusOr<StateMessages> SplitState(std::string_view message) {
  ProtobufReader reader(message);
  StateMessages state;
  while (reader.Next()) {
    if (reader.field() == 1) state.waiting = reader.Bytes();
    if (reader.field() == 2) state.running = reader.Bytes();
    if (reader.field() == 3) state.terminated = reader.Bytes();
  }
  RETURN_IF_ERROR(reader.status());
  return state;
}

Status ReadTerminated(std::string_view message, ContainerStatus& container) {
  ProtobufReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        container.exit_code = reader.Int32();
        break;
      case 2:
        container.signal = reader.Int32();
        break;
      case 3:
        container.reason = reader.Text();
        break;
      case 4:
        container.message = reader.Text();
        break;
      case 5:
        container.started_at = ReadTimeField(reader);
        break;
      case 6:
        container.finished_at = ReadTimeField(reader);
        break;
    }
  }
  return reader.status();
}

Status ReadWaiting(std::string_view message, ContainerStatus& container) {
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) container.reason = reader.Text();
    if (reader.field() == 2) container.message = reader.Text();
  }
  return reader.status();
}

Status ReadStateProtobuf(std::string_view message, ContainerStatus& container) {
  ASSIGN_OR_RETURN(const StateMessages state, SplitState(message));
  if (state.running) {
    container.state = State::kRunning;
    ProtobufReader reader(*state.running);
    while (reader.Next()) {
      if (reader.field() == 1) container.started_at = ReadTimeField(reader);
    }
    return reader.status();
  }
  if (state.terminated) {
    container.state = State::kTerminated;
    return ReadTerminated(*state.terminated, container);
  }
  return state.waiting ? ReadWaiting(*state.waiting, container) : OkStatus();
}

Status ReadLastState(std::string_view message, ContainerStatus& container) {
  ASSIGN_OR_RETURN(const StateMessages state, SplitState(message));
  if (!state.terminated) return OkStatus();
  ProtobufReader reader(*state.terminated);
  while (reader.Next()) {
    if (reader.field() == 1) container.last_exit_code = reader.Int32();
    if (reader.field() == 4) container.last_message = reader.Text();
  }
  return reader.status();
}

StatusOr<ContainerStatus> ReadContainer(std::string_view message, bool init) {
  ProtobufReader reader(message);
  ContainerStatus container;
  container.init = init;
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        container.name = reader.Text();
        break;
      case 2:
        reader.Fail(ReadStateProtobuf(reader.Bytes(), container));
        break;
      case 3:
        reader.Fail(ReadLastState(reader.Bytes(), container));
        break;
      case 4:
        container.ready = reader.Bool();
        break;
      case 5:
        container.restart_count = reader.Int32();
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  return container;
}

StatusOr<PodCondition> ReadCondition(std::string_view message) {
  ProtobufReader reader(message);
  PodCondition condition;
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        condition.type = reader.Text();
        break;
      case 2:
        condition.status = reader.Text();
        break;
      case 4:
        condition.last_transition_time = ReadTimeField(reader);
        break;
      case 5:
        condition.reason = reader.Text();
        break;
      case 6:
        condition.message = reader.Text();
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  return condition;
}

// Appends the element or, if it is an error, makes `reader` fail with this error.
template <typename T>
void Append(StatusOr<T> element, std::vector<T>& list, ProtobufReader& reader) {
  if (element.ok()) {
    list.push_back(*std::move(element));
  } else {
    reader.Fail(element.status());
  }
}

// Reads a field of the status. Appends the entries of containerStatuses to `containers` rather than
// to Pod::containers, where they must follow the init containers: in the message, they may come
// first.
void ReadStatusField(ProtobufReader& reader, Pod& pod, std::vector<ContainerStatus>& containers) {
  switch (reader.field()) {
    case 1:
      pod.phase = ParsePhase(reader.Text());
      break;
    case 2:
      Append(ReadCondition(reader.Bytes()), pod.conditions, reader);
      break;
    case 3:
      pod.message = reader.Text();
      break;
    case 4:
      pod.reason = reader.Text();
      break;
    case 5:
      pod.host_ip = reader.Text();
      break;
    case 6:
      pod.pod_ip = reader.Text();
      break;
    case 7:
      pod.start_time = ReadTimeField(reader);
      break;
    case 8:
      Append(ReadContainer(reader.Bytes(), false), containers, reader);
      break;
    case 10:
      Append(ReadContainer(reader.Bytes(), true), pod.containers, reader);
      break;
  }
}

Status ReadStatusProtobuf(std::string_view message, Pod& pod) {
  ProtobufReader reader(message);
  std::vector<ContainerStatus> containers;
  while (reader.Next()) ReadStatusField(reader, pod, containers);
  pod.containers.reserve(pod.containers.size() + containers.size());
  for (ContainerStatus& container : containers) pod.containers.push_back(std::move(container));
  return reader.status();
}

StatusOr<bool> NamesPodGroup(std::string_view scheduling_group) {
  ProtobufReader reader(scheduling_group);
  bool names = false;
  while (reader.Next()) names |= reader.field() == 1;
  RETURN_IF_ERROR(reader.status());
  return names;
}

Status ReadSpecProtobuf(std::string_view message, Pod& pod) {
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 10) pod.node_name = reader.Text();
    if (reader.field() == 43) {
      ASSIGN_OR_RETURN(pod.in_scheduling_group, NamesPodGroup(reader.Bytes()));
    }
  }
  return reader.status();
}

}  // namespace

StatusOr<Pod> ParsePodProtobuf(std::string_view pod) {
  ProtobufReader reader(pod);
  Pod result;
  while (reader.Next()) {
    switch (reader.field()) {
      case 1: {
        ASSIGN_OR_RETURN(result.metadata, ParseObjectMetaProtobuf(reader.Bytes()));
        break;
      }
      case 2:
        reader.Fail(ReadSpecProtobuf(reader.Bytes(), result));
        break;
      case 3:
        reader.Fail(ReadStatusProtobuf(reader.Bytes(), result));
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  result.key_id = KeyIdOf(result.metadata);
  result.metadata.annotations.clear();  // as ParsePod does
  return result;
}

}  // namespace tfjob::objects
