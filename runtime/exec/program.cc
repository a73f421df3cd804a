#include "runtime/exec/program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/exec/program_state.h"
#include "runtime/exec/run_slot.h"
#include "runtime/trace/trace.h"

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

// Returns an error if the caller has not placed all fetches.
Status CheckPlaces(const Plan& plan, const std::vector<const std::byte*>& fetched) {
  for (size_t i = 0; i < fetched.size(); ++i) {
    if (fetched[i] != nullptr || plan.fetches[i].value.home != Home::kCaller) continue;
    return FailedPrecondition("fetch ", plan.fetches[i].name, " has no memory: call Place first");
  }
  return OkStatus();
}

void CountWrites(const Plan& plan) {
  for (variables::Variable* variable : plan.written) variable->CountWrite();
}

}  // namespace

Program::State::State() = default;
Program::State::~State() = default;

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
  ASSIGN_OR_RETURN(Ticket ticket, Start(feeds));
  return ticket.Wait(on_ready);
}

StatusOr<Ticket> Program::Start(std::span<const Feed> feeds) {
  State& s = *state_;
  RETURN_IF_ERROR(CheckFeeds(s.feeds, feeds));
  RETURN_IF_ERROR(CheckPlaces(s.plan, s.fetched));
  if (s.runs == kMaxRuns) {
    return FailedPrecondition(kMaxRuns, " runs are in progress; wait for the oldest one first");
  }
  const size_t slot = s.runs == 1 && s.in_progress[0].slot == 0 ? 1 : 0;
  if (s.runtime->immediate()) {
    std::ranges::copy(feeds, s.bound[slot].begin());
  } else {
    s.slots[slot]->Start(feeds, s.started + 1);
  }
  s.in_progress[s.runs++] = {.number = ++s.started, .slot = slot};
  return Ticket(this, s.started);
}

Status Ticket::Wait() {
  return Wait([](int) {});
}

Status Ticket::Wait(absl::FunctionRef<void(int)> on_ready) {
  return program_->WaitFor(run_, on_ready);
}

Status Program::WaitFor(int64_t run, absl::FunctionRef<void(int)> on_ready) {
  State& s = *state_;
  if (s.runs == 0 || s.in_progress[0].number != run) {
    return FailedPrecondition("run ", run, " of the program is not the oldest in progress: ",
                              s.runs == 0 ? "none is" : StrCat(s.in_progress[0].number, " is"));
  }
  s.slot = s.in_progress[0].slot;
  const Status status =
      s.runtime->immediate() ? RunHere(s.bound[s.slot], on_ready) : s.slots[s.slot]->Wait(on_ready);
  CountWrites(s.plan);
  s.in_progress[0] = s.in_progress[1];
  if (--s.runs == 0) s.failure = {};
  return status;
}

// Runs the kernels on the calling thread.
Status Program::RunHere(std::span<const Feed> feeds, absl::FunctionRef<void(int)> on_ready) {
  State& s = *state_;
  if (!s.failure.status.ok()) return s.failure.status;
  for (const FedInput& fed : s.fed_inputs) {
    s.steps[static_cast<size_t>(fed.step)].inputs[static_cast<size_t>(fed.input)] =
        feeds[static_cast<size_t>(fed.feed)].bytes.data();
  }
  for (const Segment& segment : s.segments) {
    for (int i = segment.begin; i < segment.end; ++i) {
      Step& step = s.steps[static_cast<size_t>(i)];
      for (variables::Variable* variable : step.written) variable->BeforeWrite();
      const PlannedStep& planned = s.plan.steps[static_cast<size_t>(i)];
      const trace::Span span(trace::Category::kOp, planned.name, planned.request.op);
      s.stream.BeginStep(i);
      step.kernel->Run(step.inputs.data(), step.outputs.data(), s.workspace, s.stream);
      if (s.stream.ok()) continue;
      s.failure.status = Annotate(s.stream.TakeStatus(), planned.name);
      return s.failure.status;
    }
    for (int fetch : segment.announced) on_ready(fetch);
  }
  return OkStatus();
}

std::span<const std::byte> Program::FetchBytes(int fetch) const {
  const State& s = *state_;
  ENFORCE(!Keeps(fetch), "a fetch that the host can read");
  const auto i = static_cast<size_t>(fetch);
  const std::byte* const bytes =
      s.runtime->immediate() ? s.fetched[i] : s.slots[s.slot]->fetched(fetch);
  return {bytes, BytesOf(s.fetches[i].type)};
}

bool Program::Keeps(int fetch) const {
  ENFORCE(fetch >= 0 && fetch < std::ssize(state_->fetches), "a fetch of the program");
  return state_->kept[static_cast<size_t>(fetch)];
}

std::span<const std::byte> Program::KeptBytes(int fetch) const {
  ENFORCE(Keeps(fetch), "a fetch that stays on the device");
  const auto i = static_cast<size_t>(fetch);
  return {state_->fetched[i], BytesOf(state_->fetches[i].type)};
}

bool Program::Places(int fetch) const {
  ENFORCE(fetch >= 0 && fetch < std::ssize(state_->fetches), "a fetch of the program");
  return state_->plan.fetches[static_cast<size_t>(fetch)].value.home == Home::kCaller;
}

void Program::Place(int fetch, std::span<std::byte> memory) {
  State& s = *state_;
  ENFORCE(Places(fetch), "a placed fetch");
  const auto i = static_cast<size_t>(fetch);
  ENFORCE(memory.size() == BytesOf(s.fetches[i].type), "memory of the fetch's size");
  ENFORCE(s.runs == 0, "no run in progress");
  if (s.fetched[i] == memory.data()) return;
  s.fetched[i] = memory.data();
  for (const PlacedOperand& operand :
       std::ranges::equal_range(s.placed_operands, fetch, {}, &PlacedOperand::fetch)) {
    Step& step = s.steps[static_cast<size_t>(operand.step)];
    const auto position = static_cast<size_t>(operand.position);
    if (operand.output) {
      step.outputs[position] = memory.data();
    } else {
      step.inputs[position] = memory.data();
    }
  }
}

size_t Program::arena_bytes() const {
  return state_->memory.arena_bytes;
}
size_t Program::unshared_bytes() const {
  return state_->memory.unshared_bytes;
}

}  // namespace tfjob::exec
