#include "tests/simulation/training/process.h"

#include <algorithm>
#include <utility>

namespace tfjob::simulation {
namespace {

constexpr Duration kWorkersDeadline{10s};  // the same as in the chief
constexpr Duration kShutdownGrace{1s};     // the same as in a ps task

rpc::Identity IdentityOf(const Process& process) {
  return {.job_uid = "uid",
          .attempt = 0,
          .task_type = process.task->type,
          .task_index = process.task->index,
          .incarnation = rpc::NewIncarnation()};
}

state::PeerEventSink EventsOf(World& world, const Process& process) {
  return [&world, &process](const state::PeerEvent& event) {
    if (!process.killed) world.story.Tell(process.name(), event.message);
  };
}

// Runs the loop of a training task, as runtime/train does.
class Trainer {
 public:
  Trainer(World& world, Process& process)
      : world_(world),
        process_(process),
        chief_(process.task->type == "chief"),
        connector_(world.network.ConnectorOf(process.place())) {}

  Status Run();

 private:
  Status Train();
  Status Join();
  Status Loop();
  Status Step();
  Status TakeResult(const ps::StepResult& result, int64_t batch);
  Status SaveIfDue();
  StatusOr<bool> SaveLast();
  Status Save(bool last);
  void OnLateStep();
  Status Stop();
  void AwaitWorkers();
  state::Snapshot InitialState() const;
  void OnEvent(const state::PeerEvent& event);
  // Calls the client, and records when the call started, because CheckWaits limits the duration of
  // calls. OnLateStep runs within such a call.
  template <typename Call>
  auto Timed(const Call& call) {
    const auto outer = std::exchange(process_.waits_since, world_.machine.elapsed());
    auto result = call();
    process_.waits_since = outer;
    return result;
  }
  bool stopping() const { return process_.killed || process_.terminating; }

  World& world_;
  Process& process_;
  const bool chief_;
  const std::unique_ptr<rpc::Connector> connector_;
  std::vector<Tensor> values_, gradients_;
  std::vector<std::span<std::byte>> value_spans_;
  std::vector<std::span<const std::byte>> gradient_spans_;
  bool servers_end_ = false;
  bool job_over_ = false;
  int64_t step_ = 0;
  int64_t drawn_ = 0;
  int64_t saved_ = -1;
  std::unique_ptr<ps::ParameterClient> client_;  // reports events until it is destroyed
};

state::Snapshot Trainer::InitialState() const {
  state::Snapshot snapshot;
  for (const state::Variable& variable : world_.plan.definition.state.variables) {
    snapshot.variables.push_back(state::VariableState::Initial(
        variable, world_.plan.definition.state.optimizer, Tensor(variable.dtype, variable.shape)));
  }
  return snapshot;
}

void Trainer::OnEvent(const state::PeerEvent& event) {
  if (event.kind == state::PeerEvent::Kind::kServerEnding) servers_end_ = true;
  if (!process_.killed) world_.story.Tell(process_.name(), event.message);
}

Status Trainer::Join() {
  ps::ClientOptions options{.identity = IdentityOf(process_),
                            .definition = world_.plan.definition,
                            .chief = chief_,
                            .liveness = world_.plan.liveness,
                            .connector = connector_.get()};
  for (int i = 0; i < world_.plan.servers; ++i)
    options.servers.push_back(StrCat("ps-", i, ":2222"));
  options.on_event = [this](const state::PeerEvent& event) { OnEvent(event); };
  options.stop_patience = world_.plan.stop_patience;
  options.max_staleness = world_.plan.max_staleness;
  options.stop_requested = [this] { return stopping() || (!chief_ && world_.run_over); };
  if (chief_) {
    options.on_late_step = [this] { OnLateStep(); };
    options.provide_state = [this]() -> StatusOr<state::Snapshot> {
      world_.story.Tell(process_.name(),
                        world_.checkpoint ? StrCat("restores step ", world_.checkpoint->global_step)
                                          : "provides the initial values");
      if (!world_.checkpoint) return InitialState();
      world_.oracle.OnRestored(*world_.checkpoint);
      return *world_.checkpoint;
    };
  }
  for (const state::Variable& variable : world_.plan.definition.state.variables) {
    values_.emplace_back(variable.dtype, variable.shape);
    gradients_.emplace_back(variable.dtype, variable.shape);
  }
  for (size_t v = 0; v < values_.size(); ++v) {
    value_spans_.push_back(values_[v].bytes());
    gradient_spans_.push_back(std::as_const(gradients_[v]).bytes());
  }
  ASSIGN_OR_RETURN(client_, ps::ParameterClient::Create(std::move(options)));
  ASSIGN_OR_RETURN(const ps::StepResult start,
                   Timed([&] { return client_->WaitReady(value_spans_); }));
  step_ = start.global_step;
  drawn_ = start.drawn;
  world_.story.Tell(process_.name(), StrCat("begins at step ", step_, ", position ", drawn_));
  return OkStatus();
}

Status Trainer::Run() {
  const Status end = Train();
  // An earlier process of the chief may already have ended the job.
  return absl::IsCancelled(end) && !stopping() ? OkStatus() : end;
}

Status Trainer::Train() {
  RETURN_IF_ERROR(Join());
  for (bool saved = false; !saved;) {
    RETURN_IF_ERROR(Loop());
    if (!chief_ || job_over_) break;
    ASSIGN_OR_RETURN(saved, SaveLast());
  }
  if (job_over_) return OkStatus();
  const Status left = Timed([&] { return client_->Leave(); });
  world_.story.Tell(process_.name(), StrCat("leaves: ", left.ToString()));
  return chief_ ? Timed([&] { return client_->Finish(); }) : OkStatus();
}

Status Trainer::Loop() {
  const int64_t max_steps = world_.plan.max_steps;
  if (chief_ && saved_ < 0) RETURN_IF_ERROR(Save(false));
  while (step_ < max_steps && !job_over_) {
    if (stopping()) return Stop();
    if (chief_ && std::exchange(servers_end_, false)) RETURN_IF_ERROR(Save(false));
    const Status stepped = Step();
    if (!stepped.ok() && stopping()) return Stop();
    if (absl::IsCancelled(stepped)) job_over_ = true;
    if (!stepped.ok() && !job_over_) return stepped;
    if (chief_ && !job_over_) RETURN_IF_ERROR(SaveIfDue());
  }
  return OkStatus();
}

Status Trainer::Stop() {
  if (process_.killed) return Cancelled("killed");
  if (chief_) {
    const Status saved = Save(false);
    if (!saved.ok()) world_.story.Tell(process_.name(), StrCat("ends unsaved: ", saved.ToString()));
  }
  Timed([&] { return client_->Withdraw(); }).IgnoreError();
  return Cancelled("asked to end");
}

Status Trainer::Step() {
  const int64_t batch = drawn_ + 1;
  if (batch >= world_.plan.batches) {
    world_.story.Violate(StrCat(process_.name(), " computes batch ", batch));
    return Internal("too many batches");
  }
  world_.oracle.SetGradients(process_.rank, batch, gradients_);
  RETURN_IF_ERROR(client_->BeginStep(gradient_spans_, value_spans_, batch));
  const Duration compute = world_.dice.Time(1ms, process_.task->compute);
  world_.machine.Sleep(compute + std::exchange(process_.hang, Duration(0)));
  if (world_.dice.Chance(0.5)) {
    client_->MarkReady(static_cast<int>(values_.size()) - 1);
    world_.machine.Sleep(world_.dice.Time(0ms, 5ms));
  }
  ASSIGN_OR_RETURN(const ps::StepResult result, Timed([&] { return client_->EndStep(); }));
  return TakeResult(result, batch);
}

Status Trainer::TakeResult(const ps::StepResult& result, int64_t batch) {
  if (process_.killed) return Cancelled("killed");
  world_.story.Tell(
      process_.name(),
      StrCat("batch ", batch, ": step ", result.global_step, ", position ", result.drawn,
             result.again ? ", again" : "", result.dropped ? ", dropped" : "",
             result.rolled_back ? ", rolled back" : ""));
  world_.oracle.CheckResult(process_.rank, batch, result, values_);
  world_.oracle.CheckStep(process_.name(), step_, result.global_step, result.rolled_back);
  step_ = result.global_step;
  drawn_ = result.drawn;
  if (saved_ > step_) saved_ = step_;
  return OkStatus();
}

// ---- checkpoints

Status Trainer::SaveIfDue() {
  return step_ >= saved_ + world_.plan.save_every ? Save(false) : OkStatus();
}

Status Trainer::Save(bool last) {
  ASSIGN_OR_RETURN(state::Snapshot snapshot, Timed([&] { return client_->TakeSnapshot(); }));
  if (world_.dice.Chance(0.5) && !last) world_.machine.Sleep(world_.plan.save_takes);
  if (process_.killed) return Cancelled("killed");
  world_.oracle.CheckSnapshot(snapshot, last);
  saved_ = snapshot.global_step;
  world_.story.Tell(process_.name(), StrCat("saves step ", saved_));
  world_.checkpoint = std::move(snapshot);
  return OkStatus();
}

// Saves a checkpoint immediately, because the servers are shutting down and might not wait for the
// end of the step in progress.
void Trainer::OnLateStep() {
  world_.story.Tell(process_.name(), "saves during the step");
  if (!Save(false).ok()) servers_end_ = true;  // Loop saves again, and returns the error
}

// Saves the last checkpoint. Returns false if the variables were rolled back.
StatusOr<bool> Trainer::SaveLast() {
  RETURN_IF_ERROR(Save(false));
  AwaitWorkers();
  if (stopping()) return Stop();
  RETURN_IF_ERROR(Save(/*last=*/world_.workers_done == world_.plan.trainers - 1));
  step_ = saved_;
  if (saved_ < world_.plan.max_steps) return false;
  if (process_.killed) return Cancelled("killed");
  world_.run_over = true;
  return true;
}

void Trainer::AwaitWorkers() {
  const Duration start = world_.machine.elapsed();
  while (world_.machine.elapsed() - start < kWorkersDeadline && !stopping()) {
    const std::vector<state::PeerState> peers = client_->Peers();
    if (std::ranges::none_of(peers, [](const state::PeerState& peer) {
          return peer.role == state::PeerRole::kTrains && peer.health != state::PeerHealth::kLost;
        })) {
      return;
    }
    world_.machine.Sleep(20ms);
  }
}

}  // namespace

Status RunTrainer(World& world, Process& process) {
  Trainer trainer(world, process);
  return trainer.Run();
}

Status RunServer(World& world, Process& process) {
  // Keeps the connector alive as long as the server, which uses it. The thread that stops the
  // server may be the last to release the server.
  struct Server {
    std::unique_ptr<rpc::Connector> connector;
    std::unique_ptr<ps::ParameterServer> server;
  };
  auto owned = std::make_shared<Server>();
  owned->connector = world.network.ConnectorOf(process.place());
  const rpc::Identity identity = IdentityOf(process);
  ASSIGN_OR_RETURN(owned->server, ps::ParameterServer::Create({
                                      .identity = identity,
                                      .max_bytes = int64_t{1} << 30,
                                      .on_event = EventsOf(world, process),
                                      .connector = owned->connector.get(),
                                      .liveness = world.plan.liveness,
                                      .step_lease_factor = world.plan.step_lease_factor,
                                      .step_lease_least = world.plan.step_lease_least,
                                  }));
  ps::ParameterServer& server = *owned->server;
  const std::shared_ptr<ps::ParameterServer> shared(owned, &server);
  process.server = shared;
  world.network.Listen(process.place(), ps::kParameterService, identity, server);
  if (process.killed || process.terminating) server.Stop();
  Status end = server.WaitUntilFinished();
  world.network.StopListening(process.number, kShutdownGrace);
  return end;
}

}  // namespace tfjob::simulation
