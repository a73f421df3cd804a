// Runs custom training loops in jobs of several tasks, each task on its own thread, and compares
// them with loops on one device.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "runtime/api/loops/test_job_loops.h"

namespace tfjob::api::loops_test {
namespace {

// Expects ‖(to - from) - (expected - from)‖ <= 1e-5 ‖expected - from‖ over all variables.
void ExpectSameUpdate(const Values& from, const Values& to, const Values& expected, int step) {
  double difference = 0, update = 0;
  for (size_t v = 0; v < from->variables.size(); ++v) {
    const auto before = from->variables[v].value.data<float>();
    const auto after = to->variables[v].value.data<float>();
    const auto wanted = expected->variables[v].value.data<float>();
    for (size_t i = 0; i < before.size(); ++i) {
      difference += std::pow(static_cast<double>(after[i]) - wanted[i], 2);
      update += std::pow(static_cast<double>(wanted[i]) - before[i], 2);
    }
  }
  EXPECT_GT(update, 0) << "step " << step;
  EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(update)) << "step " << step;
}

// The results of a loop: the values of its models before the first call and after each call, and
// the number that each call returned.
struct Record {
  std::vector<std::vector<Values>> values;  // by model
  std::vector<double> numbers;
};

Symbol MeanLoss(Step& step, const Symbol& logits) {
  return -ops::Sum(ops::LogSigmoid(logits)) / step.NumExamples();
}

// With the default epsilon of 1e-7, the update of a variable with almost no gradient would depend
// on the rounding of this gradient, which differs between processors.
const Adam kSmoothAdam = {.learning_rate = 0.01, .epsilon = 1e-4};

// Trains a GAN: two steps of the discriminator per step of the generator. With `follow`, starts
// each call from the values of that record.
class GanLoop {
 public:
  explicit GanLoop(const Place& place)
      : place_(place),
        session_(place.strategy, {.seed = 3, .threads = 1}),
        generator_(
            session_
                .Compile(Sequential({Input{.shape = {4}}, Dense{.units = 16, .activation = "tanh"},
                                     Dense{.units = 3}},
                                    "generator"),
                         {.optimizer = kSmoothAdam})
                .value()),
        discriminator_(
            session_
                .Compile(Sequential({Input{.shape = {3}}, Dense{.units = 16, .activation = "tanh"},
                                     Dense{.units = 1}},
                                    "discriminator"),
                         {.optimizer = SGD{.learning_rate = 0.1, .momentum = 0.9}})
                .value()) {}

  Record Run(int rounds, const Record* follow) {
    Function train_discriminator = DiscriminatorStep(), train_generator = GeneratorStep();
    Record record{.values = {{ValuesOf(generator_)}, {ValuesOf(discriminator_)}}, .numbers = {}};
    // The last batch has fewer examples than tasks.
    const std::vector<int64_t> sizes = {10, 10, 7, 2};
    for (int call = 0; call < rounds * 3; ++call) {
      if (follow != nullptr) {
        SetValues(generator_, follow->values[0][static_cast<size_t>(call)]);
        SetValues(discriminator_, follow->values[1][static_cast<size_t>(call)]);
      }
      const int64_t rows = sizes[static_cast<size_t>(call) % sizes.size()];
      const Batch batch{.inputs = {{"real", Rows(place_, call, rows, 3)},
                                   {"noise", Rows(place_, 1000 + call, rows, 4)}}};
      const StepResults results =
          (call % 3 < 2 ? train_discriminator : train_generator)(batch).value();
      record.numbers.push_back(results.number("loss"));
      const auto own = tfjob::data::PartOf(rows, place_.rank, place_.ranks).size;
      EXPECT_EQ(results.at("rows").shape()[0], own) << "each task gets its own rows";
      record.values[0].push_back(ValuesOf(generator_));
      record.values[1].push_back(ValuesOf(discriminator_));
    }
    return record;
  }

 private:
  Function DiscriminatorStep() {
    return session_
        .Function({{.shape = {3}, .name = "real"}, {.shape = {4}, .name = "noise"}},
                  [&](Step& step, const Symbols& in) {
                    const Symbol fake = step.Call(generator_, in[1]);
                    const Symbol loss = MeanLoss(step, step.Call(discriminator_, in[0])) +
                                        MeanLoss(step, -step.Call(discriminator_, fake));
                    step.Minimize(discriminator_, loss);
                    step.Return("loss", step.Reduce(Reduction::kSum, loss));
                    step.Return("rows", fake);
                  })
        .value();
  }
  Function GeneratorStep() {
    return session_
        .Function({{.shape = {4}, .name = "noise"}},
                  [&](Step& step, const Symbols& in) {
                    const Symbol fake = step.Call(generator_, in[0]);
                    const Symbol loss = MeanLoss(step, step.Call(discriminator_, fake));
                    step.Minimize(generator_, loss);
                    step.Return("loss", step.Reduce(Reduction::kSum, loss));
                    step.Return("rows", fake);
                  })
        .value();
  }

  const Place place_;
  const Session session_;
  const CompiledModel generator_, discriminator_;
};

void CompareRecords(const std::vector<Record>& tasks, const Record& alone) {
  for (size_t m = 0; m < alone.values.size(); ++m) {
    for (size_t i = 0; i < alone.values[m].size(); ++i) {
      for (const Record& task : tasks) ExpectSameBits(task.values[m][i], tasks[0].values[m][i]);
      if (i == 0 || alone.values[m][i]->global_step == tasks[0].values[m][i - 1]->global_step)
        continue;
      ExpectSameUpdate(tasks[0].values[m][i - 1], tasks[0].values[m][i], alone.values[m][i],
                       static_cast<int>(i));
    }
  }
  for (const Record& task : tasks) {
    ASSERT_EQ(task.numbers.size(), alone.numbers.size());
    for (size_t i = 0; i < alone.numbers.size(); ++i)
      EXPECT_NEAR(task.numbers[i], alone.numbers[i], 1e-5 * std::abs(alone.numbers[i])) << i;
  }
}

TEST(JobLoops, AGanTrainsAsOnOneDevice) {
  for (const int tasks : {2, 3}) {
    std::vector<Record> records(static_cast<size_t>(tasks));
    OnAllTasks(Tasks(tasks), [&](const Place& place) {
      records[static_cast<size_t>(place.rank)] = GanLoop(place).Run(34, nullptr);
    });
    CompareRecords(records, GanLoop({}).Run(34, &records[0]));
  }
}

// The metrics that one call on a batch returned.
struct Reported {
  double loss = 0, accuracy = 0;
};

Reported Report(const Metrics& metrics) {
  return {.loss = metrics["loss"], .accuracy = metrics["accuracy"]};
}

struct StepRecord {
  std::vector<Values> values;
  std::vector<Reported> trained, tested;
};

// Takes steps on batches of different sizes. With `follow`, starts each step from the values of
// that record.
StepRecord TakeSteps(const Place& place, const StepRecord* follow) {
  CompiledModel model = Classifier(place, Adam{.learning_rate = 0.01});
  StepRecord record;
  // In a job of three tasks, the first batch has no example for the last task.
  const std::vector<int64_t> sizes = {2, 9, 9, 1, 8};
  for (int call = 0; call < 30; ++call) {
    const int64_t rows = sizes[static_cast<size_t>(call) % sizes.size()];
    const Batch batch{.x = Rows(place, call, rows, 5), .y = Labels(place, call, rows)};
    const auto i = static_cast<size_t>(call);
    if (follow != nullptr && call > 0) SetValues(model, follow->values[i - 1]);
    if (call % 2 == 0) {
      const BatchReport report = model.Step(batch).value();
      EXPECT_EQ(report.examples, rows);
      EXPECT_EQ(report.step, call + 1);
      record.trained.push_back(Report(report.metrics));
    } else {
      model.ResetMetrics();
      record.trained.push_back(Report(model.TrainOnBatch(batch).value()));
    }
    record.values.push_back(ValuesOf(model));
    model.ResetMetrics();
    record.tested.push_back(Report(model.TestOnBatch(batch).value()));
  }
  return record;
}

void ExpectNear(const std::vector<Reported>& one, const std::vector<Reported>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i].loss, other[i].loss, 2e-5 * (1 + std::abs(other[i].loss))) << i;
    EXPECT_NEAR(one[i].accuracy, other[i].accuracy, 1e-9) << i;
  }
}

TEST(JobLoops, StepsOnBatchesAreThoseOfOneDevice) {
  for (const int tasks : {2, 3}) {
    std::vector<StepRecord> records(static_cast<size_t>(tasks));
    OnAllTasks(Tasks(tasks), [&](const Place& place) {
      records[static_cast<size_t>(place.rank)] = TakeSteps(place, nullptr);
    });
    const StepRecord alone = TakeSteps({}, &records[0]);
    for (const StepRecord& record : records) {
      ExpectNear(record.trained, alone.trained);
      ExpectNear(record.tested, alone.tested);
      for (size_t i = 0; i < alone.values.size(); ++i) {
        ExpectSameBits(record.values[i], records[0].values[i]);
        if (i == 0) continue;
        ExpectSameUpdate(record.values[i - 1], record.values[i], alone.values[i],
                         static_cast<int>(i));
      }
    }
  }
}

TEST(JobLoops, GradientsMayBeSentInHalfAsManyBytes) {
  config::StrategyConfig config;
  config.kind = config::StrategyKind::kMultiWorkerMirrored;
  config.compression = config::Compression::kBFloat16;
  std::vector<Values> values(2);
  OnAllTasks(
      Tasks(2),
      [&](const Place& place) {
        CompiledModel model = Classifier(place, SGD{.learning_rate = 0.1});
        for (int call = 0; call < 3; ++call) {
          (void)model.Step({.x = Rows(place, call, 8, 5), .y = Labels(place, call, 8)}).value();
        }
        values[static_cast<size_t>(place.rank)] = ValuesOf(model);
        LinearLoop loop(place);
        const auto predict = [&](Step& step, const Symbols& in) {
          step.Return("y", step.Call(loop.model, in[0]));
        };
        const Status refused = loop.session.Function({{.shape = {1}}}, predict).status();
        EXPECT_EQ(refused.code(), StatusCode::kUnimplemented) << refused;
      },
      config);
  ExpectSameBits(values[0], values[1]);
}

TEST(JobLoops, DistributeGivesEachTaskItsPart) {
  OnAllTasks(Tasks(3), [](const Place& place) {
    LinearLoop loop(place);
    EXPECT_EQ(loop.session.NumReplicasInSync(), 3);
    Function train_step = loop.TrainStep();
    std::vector<float> numbers;
    for (int i = 1; i <= 31; ++i) numbers.push_back(static_cast<float>(i) / 31);
    const data::Arrays dataset = {.x = Column(numbers), .y = Column(numbers)};
    double sum = 0, last = 0;
    int64_t batches = 0, own = 0;
    const std::vector<int64_t> replicas = {3, 3, 3, 1};
    for (const Batch& batch :
         loop.session.Distribute(dataset, {.batch_size = 10, .epochs = 4}).value()) {
      const StepResults results = train_step(batch).value();
      const auto expected = static_cast<double>(replicas[static_cast<size_t>(batches++) % 4]);
      EXPECT_EQ(results.number("replicas"), expected);
      EXPECT_NEAR(results.number("mean_of_sums") * expected, results.number("sum"), 1e-4);
      sum += results.number("sum");
      last = results.number("mean_loss");
      own += results.at("errors").shape()[0];
    }
    EXPECT_EQ(batches, 16) << "all tasks end together";
    EXPECT_NEAR(sum, 4 * 16, 1e-3) << "each example once per epoch";
    EXPECT_EQ(own, place.rank == 0 ? 52 : 36) << "the last batches have one example";
    EXPECT_LT(last, 1);
    EXPECT_EQ(loop.model.step(), 16);
  });
}

// The fake device runs operations late, and locks its memory.
TEST(JobLoops, TasksMayComputeOnDevicesWithTheirOwnMemory) {
  std::vector<Values> values(2);
  const auto train = [&](const Place& place) {
    LinearLoop loop(place);
    Function train_step = loop.TrainStep();
    CompiledModel classifier =
        loop.session
            .Compile(
                Sequential({Dense{.units = 3}}, "classifier"),
                {.optimizer = SGD{}, .loss = SparseCategoricalCrossentropy{.from_logits = true}})
            .value();
    for (int call = 0; call < 3; ++call) {
      const Batch batch{.inputs = {{"x", Rows(place, call, 5, 1)}, {"y", Rows(place, 9, 5, 1)}}};
      EXPECT_EQ(train_step(batch).value().number("replicas"), place.ranks);
      const Batch classes{.x = Rows(place, call, 5, 4), .y = Labels(place, call, 5)};
      EXPECT_EQ(classifier.Step(classes).value().examples, 5);
      (void)classifier.TestOnBatch(classes).value();
    }
    values[static_cast<size_t>(place.rank)] = ValuesOf(loop.model);
  };
  OnAllTasks(Tasks(2), train, {}, "fake");
  ExpectSameBits(values[0], values[1]);
  const std::vector<Values> fake = values;
  OnAllTasks(Tasks(2), train);
  ExpectSameUpdate(ValuesOf(LinearLoop({}).model), fake[0], values[0], 3);
}

TEST(JobLoops, TheValuesOfTheFirstTaskAreThoseOfAll) {
  std::vector<Values> values(2);
  const std::string folder = testing::TempDir() + "/common_values";
  std::filesystem::remove_all(folder);
  OnAllTasks(Tasks(2), [&](const Place& place) {
    LinearLoop loop(place);
    Function train_step = loop.TrainStep();
    const auto own = static_cast<float>(10 * place.rank);
    loop.model.SetWeights({{"dense/kernel", Tensor::Of({1, 1}, std::vector<float>{own}).value()}})
        .value();
    const Batch batch{.inputs = {{"x", Column({1})}, {"y", Column({0})}}};
    // The kernel is 0 in both tasks, so the error is 0.
    EXPECT_EQ(train_step(batch).value().number("mean_loss"), 0);
    // Each task may save, at any time, without waiting for the other.
    loop.model.SaveCheckpoint(StrCat(folder, "/", place.rank)).value();
    loop.model.Save(StrCat(folder, "/", place.rank, ".safetensors")).value();
    // Reading a checkpoint in one of the tasks is enough.
    (void)train_step({.inputs = {{"x", Column({1})}, {"y", Column({2})}}}).value();
    EXPECT_EQ(loop.model.step(), 2);
    if (place.rank == 0) loop.model.LoadCheckpoint(folder + "/0").value();
    EXPECT_EQ(train_step(batch).value().number("mean_loss"), 0);
    EXPECT_EQ(loop.model.step(), 2);
    // A copy is trained independently.
    const CompiledModel copy = loop.model;
    EXPECT_EQ(copy.step(), 2);
    values[static_cast<size_t>(place.rank)] = ValuesOf(loop.model);
  });
  ExpectSameBits(values[0], values[1]);
}

}  // namespace
}  // namespace tfjob::api::loops_test
