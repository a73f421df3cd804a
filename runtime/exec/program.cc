#include "runtime/exec/program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/exec/program_state.h"

namespace tfjob::exec {
namespace {

size_t BytesOf(const graph::TensorType& type) {
  return static_cast<size_t>(type.shape.num_elements()) * SizeOf(type.dtype);
}

int FindPort(const std::vector<Port>& ports, std::string_view name) {
  const auto found = std::ranges::find(ports, name, &Port::name);
  return found == ports.end() ? -1 : static_cast<int>(found - ports.begin());
}

Status FeedError(const Port& port, const Feed& feed) {
  if (feed.bytes.data() == nullptr) {
    return InvalidArgument("feed ", port.name, " is missing: expected ", port.type.ToString());
  }
  return InvalidArgument("feed ", port.name, ": expected ", port.type.ToString(), " in ",
                         BytesOf(port.type), " bytes, got ", Name(feed.dtype), " in ",
                         feed.bytes.size(), " bytes");
}

Status CheckFeeds(const std::vector<Port>& ports, std::span<const Feed> feeds) {
  if (feeds.size() != ports.size()) {
    const std::string names = absl::StrJoin(
        ports, ", ", [](std::string* out, const Port& port) { out->append(port.name); });
    return InvalidArgument("expected ", ports.size(), " feeds (", names, "), got ", feeds.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const bool fits = feeds[i].dtype == ports[i].type.dtype &&
                      feeds[i].bytes.size() == BytesOf(ports[i].type) &&
                      (feeds[i].bytes.data() != nullptr || feeds[i].bytes.empty());
    if (!fits) return FeedError(ports[i], feeds[i]);
  }
  return OkStatus();
}

void CountWrites(const Plan& plan) {
  for (variables::Variable* variable : plan.written) variable->CountWrite();
}

}  // namespace

Program::Program(std::unique_ptr<State> state) : state_(std::move(state)) {}
Program::~Program() = default;

const std::vector<Port>& Program::feeds() const {
  return state_->feeds;
}
const std::vector<Port>& Program::fetches() const {
  return state_->fetches;
}
int Program::FindFeed(std::string_view name) const {
  return FindPort(state_->feeds, name);
}
int Program::FindFetch(std::string_view name) const {
  return FindPort(state_->fetches, name);
}

const std::vector<variables::Variable*>& Program::written() const {
  return state_->plan.written;
}

Status Program::Run(std::span<const Feed> feeds) {
  return Run(feeds, [](int) {});
}

Status Program::Run(std::span<const Feed> feeds, absl::FunctionRef<void(int)> on_ready) {
  State& s = *state_;
  RETURN_IF_ERROR(CheckFeeds(s.feeds, feeds));
  for (const FedInput& fed : s.fed_inputs) {
    s.steps[static_cast<size_t>(fed.step)].inputs[static_cast<size_t>(fed.input)] =
        feeds[static_cast<size_t>(fed.feed)].bytes.data();
  }
  for (const Segment& segment : s.segments) {
    for (int i = segment.begin; i < segment.end; ++i) {
      Step& step = s.steps[static_cast<size_t>(i)];
      for (variables::Variable* variable : step.written) variable->BeforeWrite();
      step.kernel->Run(step.inputs.data(), step.outputs.data(), s.workspace, s.stream);
      if (!s.stream.ok()) {
        CountWrites(s.plan);
        return Annotate(s.stream.TakeStatus(), s.plan.steps[static_cast<size_t>(i)].name);
      }
    }
    for (int fetch : segment.announced) on_ready(fetch);
  }
  CountWrites(s.plan);
  return OkStatus();
}

std::span<const std::byte> Program::FetchBytes(int fetch) const {
  ENFORCE(fetch >= 0 && fetch < static_cast<int>(state_->fetches.size()), "a fetch of the program");
  const auto i = static_cast<size_t>(fetch);
  return {state_->fetched[i], BytesOf(state_->fetches[i].type)};
}

size_t Program::arena_bytes() const {
  return state_->memory.arena_bytes;
}
size_t Program::unshared_bytes() const {
  return state_->memory.unshared_bytes;
}

}  // namespace tfjob::exec
