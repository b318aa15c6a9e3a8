#include "backend/cuda/pass_choices.h"

#include <algorithm>
#include <array>
#include <utility>

#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

// Larger batches take several passes, each of at most so many queries.
constexpr unsigned kLargestBatch = 1'024;
constexpr std::array<unsigned, 8> kBatches{1, 32, kLargestBatch, 64, 128, 8, 16, 256};

constexpr auto kClasses = [] {
  struct Hits {
    unsigned max, timed;
  };
  constexpr std::array<Hits, 3> kHits{{{32, 10}, {128, 100}, {kHitsMax, 1'000}}};
  std::array<PassClass, kBatches.size() * kHits.size()> classes;
  std::size_t next = 0;
  for (const Hits hits : kHits) {
    for (const unsigned batch : kBatches) classes[next++] = {batch, hits.max, hits.timed};
  }
  return classes;
}();

// A choice must be faster than the rules' by this share: less is noise.
constexpr double kGain = 0.03;
// Times of one plan that differ by more were not of a card that rests.
constexpr double kDrift = 0.25;

// A variant this much slower than the fastest is not tried in other forms. On an H200 no form of
// finish, exchange, gate or tile took a third off a pass.
constexpr double kHopeless = 1.5;

constexpr std::array<unsigned, 4> kSecondGates{0, 4, 8, 16};
constexpr std::array<unsigned, 3> kHalvesOfTile{1, 4, 8};
// The rows that pass a filter: one in so many. Rarer ones are lists whatever is measured.
constexpr std::array<unsigned, 5> kListShares{128, 64, 32, 16, 8};

// The trials of one class.
class ClassTrials {
 public:
  ClassTrials(const ChoiceTask& task, const PassClass& of)
      : task_(task), class_(of), demand_(task.demand(of)) {}

  struct Timed {
    PassChoice choice;
    double seconds = 0;
  };

  // False where the rules have no pass that answers the class, and where the trials are stopped.
  bool Run() {
    const auto planned = PlanPass(task_.card, task_.tuning, task_.workspace, task_.segment, demand_);
    if (!planned || planned->slots < demand_.queries) return false;
    const std::optional<double> before = Time(*planned);
    if (!before) return false;
    rules_ = {ChoiceOf(*planned), *before};
    best_ = rules_;
    TryForms(rules_);
    TryOtherVariants();
    const std::optional<double> after = Time(*planned);
    if (!after) return false;
    const auto [least, most] = std::minmax(*before, *after);
    if (most > (1 + kDrift) * least) stopped_ = true;
    if (best_.seconds > (1 - kGain) * least) best_ = rules_;
    return !stopped_;
  }

  bool stopped() const { return stopped_; }
  const Timed& best() const { return best_; }
  const Timed& rules() const { return rules_; }

 private:
  std::optional<double> Time(const PassPlan& plan) {
    if (stopped_) return std::nullopt;
    const Trial trial = task_.time(plan, class_);
    stopped_ = trial.end == Trial::End::kStopped;
    if (trial.end != Trial::End::kTimed) return std::nullopt;
    return trial.seconds;
  }

  std::optional<PassPlan> PlanOf(const KernelVariant& variant, const PassChoice* choice) const {
    PassDemand demand = demand_;
    demand.choice = choice;
    auto plan = PlanVariant(variant, task_.card, task_.tuning, task_.workspace, task_.segment,
                            demand);
    if (plan && plan->slots < demand.queries) plan.reset();
    return plan;
  }

  void TryOtherVariants() {
    for (const KernelVariant& variant : KernelVariants()) {
      if (&variant == rules_.choice.variant) continue;
      const auto plan = PlanOf(variant, nullptr);
      if (!plan) continue;
      const std::optional<double> seconds = Time(*plan);
      if (!seconds) continue;
      const Timed plain{ChoiceOf(*plan), *seconds};
      if (plain.seconds < best_.seconds) best_ = plain;
      if (plain.seconds <= kHopeless * best_.seconds) TryForms(plain);
    }
  }

  // Changes one part of the form after the other, and keeps what is faster.
  void TryForms(const Timed& plain) {
    Timed fastest = plain;
    const auto with = [&](auto part, auto value) {
      PassChoice other = fastest.choice;
      other.*part = value;
      Try(other, fastest);
    };
    with(&PassChoice::finishes_in_one_launch, !plain.choice.finishes_in_one_launch);
    with(&PassChoice::is_mapped, !plain.choice.is_mapped);
    if (plain.choice.tile_rows == 0) {
      for (const unsigned share : kSecondGates) with(&PassChoice::second_gate_share, share);
    } else {
      for (const unsigned halves : kHalvesOfTile) {
        const unsigned granules = plain.choice.tile_rows / kernels::kTileGranule * halves / 2;
        with(&PassChoice::tile_rows, std::max(granules, 1U) * kernels::kTileGranule);
      }
    }
    if (fastest.seconds < best_.seconds) best_ = fastest;
  }

  void Try(const PassChoice& choice, Timed& fastest) {
    const auto plan = PlanOf(*choice.variant, &choice);
    // A part that the variant does not admit leads back to what is known.
    if (!plan || ChoiceOf(*plan) == fastest.choice) return;
    const std::optional<double> seconds = Time(*plan);
    if (seconds && *seconds < fastest.seconds) fastest = {ChoiceOf(*plan), *seconds};
  }

  const ChoiceTask& task_;
  const PassClass& class_;
  const PassDemand demand_;
  bool stopped_ = false;
  Timed rules_;
  Timed best_;
};

// Lists win where few rows pass: walks from few rows to many until a list is slower.
void MeasureGatherShare(const ChoiceTask& task, PassChoices& choices) {
  unsigned share = 2 * kListShares.front();
  for (const unsigned one_row_in : kListShares) {
    const Trial list = task.time_filtered(one_row_in, true);
    const Trial mask = task.time_filtered(one_row_in, false);
    if (list.end != Trial::End::kTimed || mask.end != Trial::End::kTimed) return;
    if (list.seconds > mask.seconds) break;
    share = one_row_in;
  }
  choices.set_gather_share(share);
}

}  // namespace

std::span<const PassClass> PassClasses() { return kClasses; }

PassChoices::PassChoices(const GpuChoices& kept) : PassChoices() {
  gather_share_ = kept.gather_share;
  queries_of_pass_ = kept.queries_of_pass;
  for (const GpuPassChoice& pass : kept.passes) {
    const auto of = std::ranges::find_if(kClasses, [&](const PassClass& each) {
      return each.queries_max == pass.queries_max && each.hits_max == pass.hits_max;
    });
    const auto variant = std::ranges::find(KernelVariants(), pass.variant, &KernelVariant::name);
    if (of == kClasses.end() || variant == KernelVariants().end()) continue;
    Set(static_cast<std::size_t>(of - kClasses.begin()),
        {&*variant, pass.finishes_in_one_launch, pass.is_mapped, pass.second_gate_share,
         pass.tile_rows},
        pass.seconds, pass.rules_seconds);
  }
}

GpuChoices PassChoices::ToKeep() const {
  GpuChoices kept;
  kept.gather_share = gather_share_;
  kept.queries_of_pass = queries_of_pass_;
  for (std::size_t i = 0; i < by_class_.size(); ++i) {
    if (!by_class_[i]) continue;
    const auto& [choice, seconds, rules_seconds] = *by_class_[i];
    kept.passes.push_back({kClasses[i].queries_max, kClasses[i].hits_max,
                           std::string(choice.variant->name), choice.finishes_in_one_launch,
                           choice.is_mapped, choice.second_gate_share, choice.tile_rows, seconds,
                           rules_seconds});
  }
  return kept;
}

const PassChoice* PassChoices::Find(unsigned queries, unsigned hits_max) const {
  const unsigned in_pass = std::min(queries, kLargestBatch);
  std::size_t found = by_class_.size();
  for (std::size_t i = 0; i < by_class_.size(); ++i) {
    const PassClass& each = kClasses[i];
    if (each.queries_max < in_pass || each.hits_max < hits_max) continue;
    if (found == by_class_.size() ||
        std::pair(each.hits_max, each.queries_max) <
            std::pair(kClasses[found].hits_max, kClasses[found].queries_max)) {
      found = i;
    }
  }
  if (found == by_class_.size() || !by_class_[found]) return nullptr;
  return &by_class_[found]->choice;
}

void MeasureChoices(const ChoiceTask& task, PassChoices& choices) {
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    // After the shortest answers, and before the classes that take the most time.
    if (i == kBatches.size() && choices.gather_share() == 0) MeasureGatherShare(task, choices);
    if (choices.Has(i) || kClasses[i].queries_max > task.segment.row_count) continue;
    ClassTrials trials(task, kClasses[i]);
    if (trials.Run()) {
      choices.Set(i, trials.best().choice, trials.best().seconds, trials.rules().seconds);
    }
    if (trials.stopped()) return;
  }
}

}  // namespace simile::backend::cuda
